//! The Vulkan backend, as a plugin behind the contract: any vendor's GPU, through wgpu's hal.
//!
//! It finds Vulkan's loader when it is asked for a score. Kernels are WGSL (`kernels/`), which naga compiles to SPIR-V
//! and the driver for the device, at their first use.
//!
//! Modules from the lowest floor to the highest; each imports from lower ones alone:
//!
//! * [`vulkan`]: adapters and their properties, the device, barriers;
//! * [`context`]: a device with its fence and its layouts, errors, loss;
//! * [`memory`]: buffers, and pools of memory for the host;
//! * [`dtype`]: dtypes, and the types of WGSL that stand for them;
//! * [`shader`]: programs as text, SPIR-V and its passes;
//! * [`program`]: kernels on the device;
//! * [`streams`]: the queue, streams, events, copies from and to the host;
//! * [`functions`]: the elementary functions;
//! * [`launch`]: devices, plans, tensors as kernels see them, launches;
//! * [`ops`]: the families of operations;
//! * [`interfaces`], [`backend`]: the optional interfaces of the contract, and its functions.

pub mod backend;
pub mod context;
pub mod dtype;
pub mod functions;
pub mod interfaces;
pub mod launch;
pub mod memory;
pub mod ops;
pub mod program;
pub mod shader;
pub mod streams;
pub mod vulkan;

ultramarine_abi::export_backend! {
    backend: backend::Wgpu,
    name: "vulkan",
    variant: "",
    device_type: vulkan::DEVICE_TYPE,
    version: env!("CARGO_PKG_VERSION"),
}
