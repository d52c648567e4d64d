//! Opening an adapter. The device is made here and not by the hal. The hal would not request the features for
//! one-byte elements in buffers, and would always request the driver's bounds checks.

use super::bfloat16;
use crate::hal::{Found, Opened, Units};
use ash::vk;
use std::ffi::CStr;
use wgpu_types::{Features, MemoryHints};

/// Opens an adapter.
pub fn open(found: &Found) -> Result<Opened, String> {
    let adapter = &found.exposed.adapter;
    let wanted = Features::SHADER_F64
        | Features::SHADER_INT64
        | Features::SHADER_I16
        | Features::IMMEDIATES
        | Features::MAPPABLE_PRIMARY_BUFFERS;
    let [units, bfloat16] = found.properties.units.map(|how| how == Some(Units::Native));
    let wanted = match units {
        true => wanted | Features::SHADER_F16 | Features::EXPERIMENTAL_COOPERATIVE_MATRIX,
        false => wanted,
    };
    let wanted = wanted & found.exposed.features;
    let mut extensions: Vec<&'static CStr> = adapter.required_device_extensions(wanted);
    if bfloat16 {
        extensions.push(bfloat16::NAME);
    }
    let names: Vec<_> = extensions.iter().map(|name| name.as_ptr()).collect();
    let priorities = [1.0];
    let queues =
        [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&priorities)];
    let mut of_11 = vk::PhysicalDeviceVulkan11Features::default()
        .storage_buffer16_bit_access(true)
        .uniform_and_storage_buffer16_bit_access(true);
    let mut of_12 = vk::PhysicalDeviceVulkan12Features::default()
        .storage_buffer8_bit_access(true)
        .shader_int8(true)
        .shader_float16(units)
        .vulkan_memory_model(units)
        .timeline_semaphore(true);
    let mut matrices =
        vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let core = vk::PhysicalDeviceFeatures::default()
        .shader_int64(true)
        .shader_int16(true)
        .shader_float64(found.properties.float64);
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&names)
        .enabled_features(&core)
        .push_next(&mut of_11)
        .push_next(&mut of_12);
    let info = if units { info.push_next(&mut matrices) } else { info };
    let mut halves = bfloat16::Features::of(true);
    let info = if bfloat16 { info.push_next(&mut halves) } else { info };
    let instance = adapter.shared_instance().raw_instance();
    let name = &found.properties.name;
    // SAFETY: the adapter is the instance's, and reported all features and extensions that are requested.
    let raw = unsafe { instance.create_device(adapter.raw_physical_device(), &info, None) };
    let raw = raw.map_err(|code| format!("vkCreateDevice of {name} failed: {code}"))?;
    // SAFETY: the device was made from this adapter with these extensions, and the hal takes ownership of it; family
    // 0 has a queue.
    let opened = unsafe {
        adapter.device_from_raw(
            raw,
            None,
            &extensions,
            wanted,
            &found.exposed.capabilities.limits,
            &MemoryHints::Performance,
            0,
            0,
        )
    };
    let opened = opened.map_err(|why| format!("{name} cannot be opened: {why}"))?;
    Ok(Opened { device: opened.device, queue: opened.queue })
}
