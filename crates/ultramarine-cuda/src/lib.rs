//! The CUDA backend, as a plugin that implements the contract.
//!
//! It is built without any of NVIDIA's files, and loads their libraries at run time ([`sys`]): the driver when the host asks for
//! a score, later NVRTC, cuBLASLt, cuFFT, cuSOLVER, cuBLAS, cuDNN and NCCL. Kernels are CUDA C (`kernels/`). NVRTC compiles them
//! for the device at their first use, and they are cached on disk ([`program`]).
//!
//! The modules, from the lowest layer to the highest. Each module imports only from lower ones:
//!
//! * [`sys`]: tables of functions of NVIDIA's libraries;
//! * [`context`]: a device's primary context, its properties, errors and their attribution;
//! * [`memory`]: the allocator, buffers, imported memory;
//! * [`streams`], [`events`], [`timestamps`]: queues with copies from and to the host, timeline events, times;
//! * [`graph`]: commands as nodes of the driver's graphs;
//! * [`program`]: compiles kernels from CUDA C to functions on the device, and stores them;
//! * [`launch`]: devices, plans, tensors as kernels see them, launches;
//! * [`ops`]: the families of operations;
//! * [`collective`]: groups of GPUs, through NCCL;
//! * [`interfaces`], [`backend`]: the optional interfaces of the contract, and its functions.

pub mod backend;
pub mod collective;
pub mod context;
pub mod events;
pub mod graph;
pub mod interfaces;
pub mod launch;
pub mod memory;
pub mod ops;
pub mod program;
pub mod streams;
pub mod sys;
pub mod timestamps;

ultramarine_abi::export_backend! {
    backend: backend::Cuda,
    name: "cuda",
    variant: "",
    device_type: ultramarine_abi::dlpack::device_type::CUDA,
    version: env!("CARGO_PKG_VERSION"),
}
