//! Kernels from source to the code that hals take: WGSL through naga, followed by passes for
//! features that naga does not support.
//!
//! * [`source`](mod@source): programs as source, made from [`library`] functions and the operation's
//!   own;
//! * [`vector`]: loads and stores of several elements;
//! * [`compile`]: WGSL to SPIR-V, and the buffers that a kernel writes;
//! * [`patch`]: IEEE 754 semantics of floating point;
//! * [`narrow`]: buffers of bytes;
//! * [`shared`]: shared memory in kernels of Vulkan's memory model;
//! * [`halves`]: float16 and bfloat16 matrices in such kernels, and conversions by the device;
//! * [`msl`], [`hlsl`]: the counterparts for Metal and DirectX 12, which produce [`text`]; [`msl_kernel`]: users' kernels
//!   for Metal. They are compiled and tested on all targets.

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
