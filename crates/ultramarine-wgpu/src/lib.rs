//! The Vulkan backend, as a plugin behind the contract: any vendor's GPU, through wgpu's hal. The same crate is the Metal
//! backend on Apple's systems and the DirectX 12 backend on Windows.
//!
//! It finds Vulkan's loader when it is asked for a score. Kernels are WGSL (`kernels/`), which naga compiles to SPIR-V
//! (MSL, HLSL) and the driver for the device, at their first use.
//!
//! Modules from the lowest floor to the highest; each imports from lower ones alone:
//!
//! * [`dtype`]: dtypes, and the types of WGSL that stand for them;
//! * [`shader`]: programs as text, and what hals take: SPIR-V, MSL, HLSL;
//! * [`hal`]: adapters and their properties, the device, barriers, kernels for the driver: a module for each hal;
//! * [`context`]: a device with its fence and its layouts, errors, loss;
//! * [`memory`]: buffers, and pools of memory for the host;
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
pub mod hal;
pub mod interfaces;
pub mod launch;
pub mod memory;
pub mod ops;
pub mod program;
pub mod shader;
pub mod streams;

ultramarine_abi::export_backend! {
    backend: backend::Wgpu,
    name: hal::NAME,
    variant: "",
    device_type: hal::DEVICE_TYPE,
    version: env!("CARGO_PKG_VERSION"),
}
