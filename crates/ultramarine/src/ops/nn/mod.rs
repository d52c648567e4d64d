//! Layers of neural networks: softmax, norms, rotary position embeddings.
//!
//! Each is an operation of its own on devices that have a kernel for it. Elsewhere it is made of simpler operations,
//! which fuse with their neighbours.

pub(crate) mod norm;
pub(crate) mod rope;
mod softmax;
