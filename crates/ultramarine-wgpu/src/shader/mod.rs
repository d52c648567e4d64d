//! Kernels from text to what the hals take: WGSL through naga, then what naga has no words for.
//!
//! * [`source`](mod@source): programs as text, made of [`library`] functions and of the operation's own;
//! * [`vector`]: loads and stores of several elements;
//! * [`compile`]: WGSL to SPIR-V, and the buffers that a kernel writes;
//! * [`patch`]: numbers as IEEE 754 has them;
//! * [`narrow`]: buffers of bytes;
//! * [`shared`]: shared memory in kernels of Vulkan's memory model;
//! * [`halves`]: matrices of float16 and of bfloat16 in such kernels, and conversions by the device;
//! * [`msl`], [`hlsl`]: the same for Metal and DirectX 12, as [`text`]; [`msl_kernel`]: users' kernels for Metal. They are
//!   compiled for all targets, and tested.

pub mod compile;
pub mod halves;
pub mod hlsl;
pub mod library;
pub mod msl;
pub mod msl_kernel;
pub mod narrow;
pub mod patch;
pub mod shared;
pub mod source;
pub mod spirv;
pub mod text;
pub mod vector;

pub use source::{Program, Tensor};
