//! The Vulkan backend, as a plugin of the contract. It supports GPUs of any vendor through wgpu's hal. The same crate
//! is the Metal backend on Apple's systems and the DirectX 12 backend on Windows.
//!
//! It looks for Vulkan's loader when the host asks for its score. Kernels are WGSL (`kernels/`). At their first use,
//! naga compiles them to SPIR-V (MSL, HLSL), and the driver compiles these for the device.
//!
//! The modules, from the lowest layer to the highest. Each module imports only from lower ones:
//!
//! * [`dtype`]: dtypes, and the WGSL types that represent them;
//! * [`shader`]: programs as source, and the code that hals take: SPIR-V, MSL, HLSL;
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
