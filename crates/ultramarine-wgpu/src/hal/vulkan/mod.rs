//! Vulkan, through wgpu's hal, and through ash where the hal lacks something: opening adapters,
//! properties, command lists, and kernels in SPIR-V.

mod bfloat16;
mod budget;
mod code;
mod compiled;
mod list;
mod open;
mod properties;

pub use budget::free_memory;
pub use code::Code;
pub use compiled::compiled;
pub use list::List;
pub use open::open;

use super::{Buffer, CommandEncoder, Device, Exposed, Made, Place, Properties};
use ash::vk;
use core::ffi::CStr;
use wgpu_hal::{
    BufferDescriptor, Device as _, DeviceError, Instance as _, InstanceDescriptor, MemoryFlags,
};
use wgpu_types::{BufferUses, InstanceFlags};

/// The hal's API.
pub type Api = wgpu_hal::api::Vulkan;
/// The backend's name.
pub const NAME: &str = "vulkan";
/// DLPack's type for these devices.
pub const DEVICE_TYPE: i32 = ultramarine_abi::dlpack::device_type::VULKAN;
/// Languages in which users can write kernels.
pub const LANGUAGES: &str = "wgsl spirv";
/// After barriers, workgroups see what other workgroups of their kernel wrote, in memory that is
/// declared coherent.
pub const COHERENT: bool = true;
/// The name of the limit on a buffer's size, for messages.
pub const LIMIT: &str = "maxStorageBufferRange";

/// The adapters that the loader lists.
pub fn exposed() -> Result<Vec<Exposed>, String> {
    let descriptor = InstanceDescriptor {
        name: "ultramarine",
        flags: InstanceFlags::empty(),
        memory_budget_thresholds: Default::default(),
        backend_options: Default::default(),
        telemetry: None,
        display: None,
    };
    // SAFETY: the only requirement is a correct Vulkan loader.
    let instance = unsafe { <Api as wgpu_hal::Api>::Instance::init(&descriptor) };
    let instance = instance.map_err(|why| {
        format!(
            "Vulkan does not start ({why}). Install the loader and the GPU's driver (Debian: libvulkan1 and \
             mesa-vulkan-drivers, or NVIDIA's driver)"
        )
    })?;
    // SAFETY: no surface is requested.
    let exposed = unsafe { instance.enumerate_adapters(None) };
    if exposed.is_empty() {
        return Err("Vulkan's loader finds no device. Install the GPU's driver (Debian: \
                    mesa-vulkan-drivers, or NVIDIA's driver); in a container, start it with access to the GPU"
            .to_owned());
    }
    Ok(exposed)
}

/// The properties of an adapter, or an error that says what it lacks.
pub fn properties(exposed: &Exposed) -> Result<Properties, String> {
    Properties::of(exposed.adapter.raw_physical_device(), exposed)
}

/// Returns true if a device has an extension.
fn offers(instance: &ash::Instance, device: vk::PhysicalDevice, name: &CStr) -> bool {
    // SAFETY: the device is the instance's.
    let extensions = unsafe { instance.enumerate_device_extension_properties(device) };
    extensions.unwrap_or_default().iter().any(|e| e.extension_name_as_c_str() == Ok(name))
}

/// A buffer whose size is not 0.
pub fn create_buffer(device: &Device, size: u64, place: Place) -> Result<Made, DeviceError> {
    let usage = BufferUses::STORAGE_READ_WRITE | BufferUses::COPY_SRC | BufferUses::COPY_DST;
    let mapped = match place {
        Place::Device => BufferUses::empty(),
        Place::Upload => BufferUses::MAP_WRITE,
        Place::Download => BufferUses::MAP_READ,
    };
    let (usage, memory_flags) = (usage | mapped, MemoryFlags::PREFER_COHERENT);
    let descriptor = BufferDescriptor { label: None, size, usage, memory_flags };
    // SAFETY: the size is not 0.
    let buffer = unsafe { device.create_buffer(&descriptor) }?;
    Ok(Made { buffer, handle: 0 })
}

/// Barriers of a list. A barrier orders all memory, whatever an action uses. It includes copies and the host only where
/// they occur, because drivers take longer for these.
#[derive(Default)]
pub struct Barriers {
    /// True if there were copies.
    copied: bool,
    /// True if the last barrier lets only kernels proceed.
    kernels_alone: bool,
}

impl Barriers {
    /// Called at the end of a list. Orders all later work in the queue after the list, and also the host once the
    /// fence is reached.
    pub fn end(&mut self, device: &Device, encoder: &mut CommandEncoder) {
        let host = (vk::PipelineStageFlags::HOST, vk::AccessFlags::HOST_READ);
        barrier(device, encoder, [KERNELS, COPIES], &[KERNELS, COPIES, host]);
    }

    /// Orders the next action after the earlier ones if there is a `hazard`, that is, if the action uses memory that
    /// earlier ones have not finished with. `copies` is true for a copy and false for a kernel. `uses` returns the
    /// buffers that the action uses, each with its use.
    pub fn before<E>(
        &mut self,
        device: &Device,
        encoder: &mut CommandEncoder,
        (hazard, copies): (bool, bool),
        _uses: impl FnOnce() -> Result<Vec<(*const Buffer, BufferUses)>, E>,
    ) -> Result<(), E> {
        if hazard || copies && self.kernels_alone {
            let from = if self.copied { COPIES } else { KERNELS };
            let to = if copies { COPIES } else { KERNELS };
            barrier(device, encoder, [KERNELS, from], &[KERNELS, to]);
            self.kernels_alone = !copies;
        }
        self.copied |= copies;
        Ok(())
    }
}

type Scope = (vk::PipelineStageFlags, vk::AccessFlags);
const KERNELS: Scope = (
    vk::PipelineStageFlags::COMPUTE_SHADER,
    vk::AccessFlags::from_raw(
        vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::SHADER_WRITE.as_raw(),
    ),
);
const COPIES: Scope = (
    vk::PipelineStageFlags::TRANSFER,
    vk::AccessFlags::from_raw(
        vk::AccessFlags::TRANSFER_READ.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
    ),
);

/// Makes the writes of earlier stages visible to later stages of the queue.
fn barrier(device: &Device, encoder: &CommandEncoder, from: [Scope; 2], to: &[Scope]) {
    let both = |all: &[Scope]| {
        let none = (vk::PipelineStageFlags::empty(), vk::AccessFlags::empty());
        all.iter().fold(none, |(stages, access), scope| (stages | scope.0, access | scope.1))
    };
    let ((before, written), (behind, access)) = (both(&from), both(to));
    let writes = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
    let memory =
        [vk::MemoryBarrier::default().src_access_mask(written & writes).dst_access_mask(access)];
    // SAFETY: the encoder is recording, outside of a render pass.
    unsafe {
        device.raw_device().cmd_pipeline_barrier(
            encoder.raw_handle(),
            before,
            behind,
            vk::DependencyFlags::empty(),
            &memory,
            &[],
            &[],
        );
    }
}
