//! The CUDA backend, as a plugin behind the contract.
//!
//! It is built without any of NVIDIA's files and finds their libraries when it is asked for a
//! score ([`sys`]): the driver, and later NVRTC and cuBLASLt. Kernels are CUDA C (`kernels/`),
//! compiled by NVRTC for the device at their first use and kept on disk ([`program`]).
//!
//! * [`discover`]: whether there is a GPU, without starting the driver; [`backend`]: devices and
//!   what they say; [`device`]: a device's context and what belongs to it;
//! * [`allocator`], [`statistics`], [`staging`]: memory, its counts, copies to and from it;
//! * [`stream`], [`event`]: queues and timeline events;
//! * [`failure`], [`context`], [`suspects`]: errors, and what becomes of a context after one;
//! * [`plan`], [`job`], [`view`], [`walk`], [`launch`]: requests decoded, commands run, tensors
//!   as kernels see them;
//! * [`ops`]: a file for each family of operations;
//! * [`interfaces`]: the optional interfaces: [`memory`] of other libraries, [`peer`] copies,
//!   [`profile`] ranges, [`user_kernel`]s.

pub mod about;
pub mod allocator;
pub mod backend;
pub mod context;
pub mod device;
pub mod discover;
pub mod dtype;
pub mod event;
pub mod failure;
pub mod interfaces;
pub mod job;
pub mod launch;
pub mod memory;
pub mod ops;
pub mod peer;
pub mod plan;
pub mod profile;
pub mod program;
pub mod staging;
pub mod statistics;
pub mod stream;
pub mod stream_memory;
pub mod suspects;
pub mod sys;
pub mod user_kernel;
pub mod view;
pub mod walk;

ultramarine_abi::export_backend! {
    backend: backend::Cuda,
    name: "cuda",
    variant: "",
    device_type: ultramarine_abi::dlpack::device_type::CUDA,
    version: env!("CARGO_PKG_VERSION"),
}
