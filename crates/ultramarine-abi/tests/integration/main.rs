//! The contract in three languages: plugins, tensors and primitives in C, C++ and Rust, compiled against the headers,
//! and the layouts that all of them must share.

mod compile;
mod dlpack;
mod extension;
mod layout;
mod plugins;
mod recordings;
