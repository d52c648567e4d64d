//! Layers of neural networks.

mod softmax;
