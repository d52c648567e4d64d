//! Layers of neural networks: attention, cross entropy, softmax, norms, rotary position embeddings.
//!
//! Each layer is one operation with rules of its own. Devices without a kernel for it run its composition of simpler
//! operations, which fuse with their neighbours ([`crate::ops::Composite`]).

pub(crate) mod attention;
pub(crate) mod cross_entropy;
pub(crate) mod gated_delta;
pub(crate) mod norm;
pub(crate) mod rope;
pub(crate) mod softmax;

use crate::ops::rules::builders::compute_dtype;
