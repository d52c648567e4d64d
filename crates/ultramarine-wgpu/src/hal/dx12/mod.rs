//! DirectX 12. This code has never run: it is type-checked, and the generated source of the kernels is tested
//! (`shader/hlsl.rs`).

mod barriers;
mod buffer;
mod code;

pub use barriers::Barriers;
pub use buffer::create_buffer;
pub use code::Code;

use super::{Buffer, CommandEncoder, Device, Exposed, Found, Opened, Properties};
use wgpu_hal::{Adapter as _, Instance as _, InstanceDescriptor};
use wgpu_types::{BackendOptions, Dx12Compiler, Features, InstanceFlags, MemoryHints};

/// The hal's API.
pub type Api = wgpu_hal::api::Dx12;
/// The backend's name.
pub const NAME: &str = "dx12";
/// DLPack has no device type for DirectX.
pub const DEVICE_TYPE: i32 = ultramarine_abi::dlpack::device_type::EXT_DEV;
/// Languages in which users can write kernels.
pub const LANGUAGES: &str = "wgsl";
/// Kernels do not rely on seeing other workgroups' writes, because that was never tested.
pub const COHERENT: bool = false;
/// The name of the limit on a buffer's size, for messages.
pub const LIMIT: &str = "the size of a view in DirectX 12";

/// Features that kernels require: shader model 6.2, which Windows's own compiler lacks.
const FEATURES: Features =
    Features::SHADER_INT64.union(Features::SHADER_I16).union(Features::IMMEDIATES);

/// The adapters that the system reports.
pub fn exposed() -> Result<Vec<Exposed>, String> {
    let mut backend_options = BackendOptions::default();
    backend_options.dx12.shader_compiler = Dx12Compiler::default_dynamic_dxc();
    let descriptor = InstanceDescriptor {
        name: "ultramarine",
        flags: InstanceFlags::empty(),
        memory_budget_thresholds: Default::default(),
        backend_options,
        telemetry: None,
        display: None,
    };
    // SAFETY: there is no other requirement.
    let instance = unsafe { <Api as wgpu_hal::Api>::Instance::init(&descriptor) };
    let instance = instance.map_err(|why| {
        format!(
            "DirectX 12 does not start ({why}). Install the GPU's driver, and put dxcompiler.dll of Microsoft's \
             DirectXShaderCompiler on the PATH"
        )
    })?;
    // SAFETY: no surface is requested.
    let exposed = unsafe { instance.enumerate_adapters(None) };
    match exposed.is_empty() {
        true => Err("DirectX 12 finds no device. Install the GPU's driver".to_owned()),
        false => Ok(exposed),
    }
}

/// The properties of an adapter, or an error that says what it lacks.
pub fn properties(exposed: &Exposed) -> Result<Properties, String> {
    // SAFETY: the adapter is alive.
    let described = unsafe { exposed.adapter.raw_adapter().GetDesc() };
    let described = described.map_err(|why| format!("{}: {why}", exposed.info.name))?;
    let memory = match described.DedicatedVideoMemory {
        0 => described.SharedSystemMemory,
        dedicated => dedicated,
    };
    Properties::of_limits(exposed, FEATURES, memory as u64)
}

/// Free bytes of the device; not queried here.
pub fn free_memory(_device: &Device) -> Option<u64> {
    None
}

/// Opens an adapter.
pub fn open(found: &Found) -> Result<Opened, String> {
    let limits = &found.exposed.capabilities.limits;
    let hints = MemoryHints::Performance;
    // SAFETY: the features and limits are the adapter's own.
    let opened = unsafe { found.exposed.adapter.open(FEATURES, limits, &hints) };
    let opened = opened.map_err(|why| format!("{} does not open: {why}", found.properties.name))?;
    Ok(Opened { device: opened.device, queue: opened.queue })
}
