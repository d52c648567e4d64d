//! Layers of neural networks: softmax, norms, rotary position embeddings.
//!
//! Each is one operation with rules of its own. Devices without a kernel for it run its composition of simpler
//! operations, which fuse with their neighbours ([`crate::ops::Composite`]).

pub(crate) mod norm;
pub(crate) mod rope;
pub(crate) mod softmax;

use crate::ops::rules::builders::compute_dtype;
