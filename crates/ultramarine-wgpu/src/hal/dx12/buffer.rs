//! Buffers.

use super::{Api, Device};
use crate::hal::{Made, Place};
use wgpu_hal::{BufferDescriptor, Device as _, DeviceError, MemoryFlags};
use wgpu_types::BufferUses;
use windows::Win32::Graphics::{Direct3D12 as d3d, Dxgi::Common as dxgi};

/// A buffer whose size is not 0.
pub fn create_buffer(device: &Device, size: u64, place: Place) -> Result<Made, DeviceError> {
    if place != Place::Device {
        return create_mapped(device, size);
    }
    let usage = BufferUses::STORAGE_READ_WRITE | BufferUses::COPY_SRC | BufferUses::COPY_DST;
    let memory_flags = MemoryFlags::empty();
    let descriptor = BufferDescriptor { label: None, size, usage, memory_flags };
    // SAFETY: the size is not 0.
    let buffer = unsafe { device.create_buffer(&descriptor) }?;
    Ok(Made { buffer, handle: 0 })
}

/// A buffer in the host's memory that both sides read and write. The hal's own mappable buffers are either written or read
/// by the host, and kernels cannot use them.
fn create_mapped(device: &Device, size: u64) -> Result<Made, DeviceError> {
    let heap = d3d::D3D12_HEAP_PROPERTIES {
        Type: d3d::D3D12_HEAP_TYPE_CUSTOM,
        CPUPageProperty: d3d::D3D12_CPU_PAGE_PROPERTY_WRITE_BACK,
        MemoryPoolPreference: d3d::D3D12_MEMORY_POOL_L0,
        CreationNodeMask: 0,
        VisibleNodeMask: 0,
    };
    let described = d3d::D3D12_RESOURCE_DESC {
        Dimension: d3d::D3D12_RESOURCE_DIMENSION_BUFFER,
        Alignment: 0,
        Width: size,
        Height: 1,
        DepthOrArraySize: 1,
        MipLevels: 1,
        Format: dxgi::DXGI_FORMAT_UNKNOWN,
        SampleDesc: dxgi::DXGI_SAMPLE_DESC { Count: 1, Quality: 0 },
        Layout: d3d::D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
        Flags: d3d::D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS,
    };
    let mut made: Option<d3d::ID3D12Resource> = None;
    // SAFETY: both structs are complete, and the output pointer is writable.
    let code = unsafe {
        device.raw_device().CreateCommittedResource(
            &heap,
            d3d::D3D12_HEAP_FLAG_NONE,
            &described,
            d3d::D3D12_RESOURCE_STATE_COMMON,
            None,
            &mut made,
        )
    };
    let made = code.ok().and(made).ok_or(DeviceError::OutOfMemory)?;
    // SAFETY: the resource is a buffer of that size.
    let buffer = unsafe { <Api as wgpu_hal::Api>::Device::buffer_from_raw(made, size) };
    // SAFETY: the buffer is the device's.
    unsafe { device.add_raw_buffer(&buffer) };
    Ok(Made { buffer, handle: 0 })
}
