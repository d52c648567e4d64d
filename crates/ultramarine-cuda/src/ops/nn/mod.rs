//! Softmax, norms and rotary position embeddings.

pub mod norm;
pub mod rope;
mod row_kernels;
pub mod softmax;
