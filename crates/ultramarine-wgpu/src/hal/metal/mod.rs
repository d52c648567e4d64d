//! Metal. This code has never run: it is type-checked, and the generated source of the kernels is tested
//! (`shader/msl.rs`).

mod code;
mod foreign;

pub use code::{Code, msl, with_group};
pub use foreign::take;

use super::{Buffer, CommandEncoder, Device, Exposed, Found, Made, Opened, Place, Properties};
use objc2_metal::{MTLDevice as _, MTLResourceOptions};
use wgpu_hal::{Adapter as _, Device as _, DeviceError, Instance as _, InstanceDescriptor};
use wgpu_types::{BufferUses, Features, InstanceFlags, MemoryHints};

/// The hal's API.
pub type Api = wgpu_hal::api::Metal;
/// The backend's name.
pub const NAME: &str = "metal";
/// DLPack's type for these devices.
pub const DEVICE_TYPE: i32 = ultramarine_abi::dlpack::device_type::METAL;
/// Languages in which users can write kernels.
pub const LANGUAGES: &str = "msl wgsl";
/// Kernels do not rely on seeing other workgroups' writes, because that was never tested.
pub const COHERENT: bool = false;
/// The name of the limit on a buffer's size, for messages.
pub const LIMIT: &str = "maxBufferLength";

/// Invocations of a SIMD-group, the same on all of Apple's GPUs.
const SUBGROUP: u32 = 32;
/// Features that kernels require; all Metal 3 devices have them.
const FEATURES: Features =
    Features::SHADER_INT64.union(Features::SHADER_I16).union(Features::IMMEDIATES);

/// The adapters that the system reports.
pub fn exposed() -> Result<Vec<Exposed>, String> {
    if !objc2::available!(macos = 15.0, ios = 18.0, tvos = 18.0, visionos = 2.0, ..) {
        return Err("exact arithmetic needs Metal 3.2. Update to macOS 15 or iOS 18".to_owned());
    }
    let descriptor = InstanceDescriptor {
        name: "ultramarine",
        flags: InstanceFlags::empty(),
        memory_budget_thresholds: Default::default(),
        backend_options: Default::default(),
        telemetry: None,
        display: None,
    };
    // SAFETY: there is no other requirement.
    let instance = unsafe { <Api as wgpu_hal::Api>::Instance::init(&descriptor) };
    let instance = instance.map_err(|why| format!("Metal does not start ({why})"))?;
    // SAFETY: no surface is requested.
    let exposed = unsafe { instance.enumerate_adapters(None) };
    match exposed.is_empty() {
        true => Err("Metal finds no device. In a virtual machine, give it a GPU".to_owned()),
        false => Ok(exposed),
    }
}

/// The properties of an adapter, or an error that says what it lacks.
pub fn properties(exposed: &Exposed) -> Result<Properties, String> {
    let memory = exposed.adapter.raw_device().recommendedMaxWorkingSetSize();
    let properties = Properties::of_limits(exposed, FEATURES, memory)?;
    Ok(Properties { subgroup: SUBGROUP, driver: "Metal".to_owned(), ..properties })
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

/// A buffer whose size is not 0. The host can map it if `place` requires it, and also wherever host and device
/// share the memory.
pub fn create_buffer(device: &Device, size: u64, place: Place) -> Result<Made, DeviceError> {
    let raw = device.raw_device();
    let options = match place != Place::Device || raw.hasUnifiedMemory() {
        true => MTLResourceOptions::StorageModeShared,
        false => MTLResourceOptions::StorageModePrivate,
    };
    let length = usize::try_from(size).map_err(|_| DeviceError::OutOfMemory)?;
    let made = raw.newBufferWithLength_options(length, options).ok_or(DeviceError::OutOfMemory)?;
    let handle = objc2::rc::Retained::as_ptr(&made) as *const () as u64;
    // SAFETY: the buffer has that size.
    let buffer = unsafe { <Api as wgpu_hal::Api>::Device::buffer_from_raw(made, size) };
    // SAFETY: the buffer is the device's.
    unsafe { device.add_raw_buffer(&buffer) };
    Ok(Made { buffer, handle })
}

/// Barriers of a list. None are needed, because an encoder runs its kernels one after the other, and Metal tracks the
/// buffers that encoders use.
#[derive(Default)]
pub struct Barriers(());

impl Barriers {
    /// Called at the end of a list; does nothing.
    pub fn end(&mut self, _device: &Device, _encoder: &mut CommandEncoder) {}

    /// Does nothing. `uses` would return the buffers that the next action uses, each with its use.
    pub fn before<E>(
        &mut self,
        _device: &Device,
        _encoder: &mut CommandEncoder,
        _hazard: (bool, bool),
        _uses: impl FnOnce() -> Result<Vec<(*const Buffer, BufferUses)>, E>,
    ) -> Result<(), E> {
        Ok(())
    }
}
