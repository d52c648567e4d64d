//! All that is Vulkan's own: the adapters and their properties, the device with its features, barriers. The rest of the
//! crate names the hal's types by the aliases here.

mod adapters;
mod budget;
mod open;
mod properties;

pub use adapters::{Adapters, Found};
pub use budget::free_memory;
pub use open::{Opened, open};
pub use properties::{FloatControls, Properties};

use ash::vk;

/// The hal.
pub type Api = wgpu_hal::api::Vulkan;
/// A device.
pub type Device = <Api as wgpu_hal::Api>::Device;
/// A queue.
pub type Queue = <Api as wgpu_hal::Api>::Queue;
/// A fence with values that grow.
pub type Fence = <Api as wgpu_hal::Api>::Fence;
/// A buffer.
pub type Buffer = <Api as wgpu_hal::Api>::Buffer;
/// A recorder of commands.
pub type CommandEncoder = <Api as wgpu_hal::Api>::CommandEncoder;
/// Queries for timestamps.
pub type QuerySet = <Api as wgpu_hal::Api>::QuerySet;
/// Recorded commands.
pub type CommandBuffer = <Api as wgpu_hal::Api>::CommandBuffer;
/// Buffers bound to a kernel.
pub type BindGroup = <Api as wgpu_hal::Api>::BindGroup;
/// The shape of bind groups.
pub type BindGroupLayout = <Api as wgpu_hal::Api>::BindGroupLayout;
/// The parameters of pipelines.
pub type PipelineLayout = <Api as wgpu_hal::Api>::PipelineLayout;
/// A compiled kernel.
pub type ComputePipeline = <Api as wgpu_hal::Api>::ComputePipeline;

/// DLPack's type of these devices.
pub const DEVICE_TYPE: i32 = ultramarine_abi::dlpack::device_type::VULKAN;

/// Lets all that follows in the queue see what came before it, by kernels and copies; and the host, once the fence is
/// reached.
pub fn barrier(device: &Device, encoder: &CommandEncoder) {
    let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
    let written = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
    let read = vk::AccessFlags::SHADER_READ | vk::AccessFlags::TRANSFER_READ;
    let memory = [vk::MemoryBarrier::default()
        .src_access_mask(written)
        .dst_access_mask(written | read | vk::AccessFlags::HOST_READ)];
    // SAFETY: the encoder is recording, outside of a render pass.
    unsafe {
        device.raw_device().cmd_pipeline_barrier(
            encoder.raw_handle(),
            stages,
            stages | vk::PipelineStageFlags::HOST,
            vk::DependencyFlags::empty(),
            &memory,
            &[],
            &[],
        );
    }
}
