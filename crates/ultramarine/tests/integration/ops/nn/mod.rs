//! Layers of neural networks.

mod attention;
mod softmax;
