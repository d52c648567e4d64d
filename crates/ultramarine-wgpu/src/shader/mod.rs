//! Kernels from text to SPIR-V: WGSL through naga, then what naga has no words for.
//!
//! * [`source`](mod@source): programs as text, made of [`library`] functions and of the operation's own;
//! * [`vector`]: loads and stores of several elements;
//! * [`compile`]: WGSL to SPIR-V;
//! * [`patch`]: numbers as IEEE 754 has them;
//! * [`narrow`]: buffers of bytes;
//! * [`writes`]: the buffers that a kernel writes.

pub mod compile;
pub mod library;
pub mod narrow;
pub mod patch;
pub mod source;
pub mod spirv;
pub mod vector;
pub mod writes;

pub use source::{Program, Tensor};
