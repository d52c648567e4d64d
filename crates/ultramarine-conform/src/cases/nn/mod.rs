//! Layers of neural networks.

pub mod norm;
pub mod rope;
pub mod softmax;
