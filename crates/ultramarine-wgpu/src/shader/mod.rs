//! Kernels from source to the form for the hals: naga processes WGSL, and passes add features that
//! naga does not support.
//!
//! * [`source`](mod@source): sources of programs, made of [`library`] functions and the operation's
//!   own functions
//! * [`vector`]: loads and stores of several elements
//! * [`compile`]: WGSL to SPIR-V, and the buffers that a kernel writes
//! * [`patch`]: IEEE 754 floating-point semantics
//! * [`narrow`]: buffers of bytes
//! * [`shared`]: shared memory in kernels with Vulkan's memory model
//! * [`halves`]: matrices of float16 and of bfloat16 in such kernels, and conversions by the device
//! * [`msl`], [`hlsl`]: the corresponding steps for Metal and DirectX 12, whose result is a [`text`];
//!   [`msl_kernel`]: users' kernels for Metal. These modules are compiled and tested on all targets.

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
