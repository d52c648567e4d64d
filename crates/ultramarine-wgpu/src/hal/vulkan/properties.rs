//! An adapter's properties, as Vulkan reports them.

use super::bfloat16;
use crate::hal::Exposed;
use crate::hal::properties::{BUFFERS, Properties, gpu_kernels, rounds_bfloat16, units};
use crate::shader::patch::FloatControls;
use ash::vk;
use wgpu_types::CooperativeScalarType;

impl FloatControls {
    fn of(properties: &vk::PhysicalDeviceVulkan12Properties<'_>) -> Self {
        let p = properties;
        let all = |flags: [vk::Bool32; 3]| flags.map(|flag| flag == vk::TRUE);
        // If a device requires the same mode for all widths, the mode is requested only if all
        // widths support it.
        let independent = |flags: [bool; 3], how: vk::ShaderFloatControlsIndependence| match how {
            vk::ShaderFloatControlsIndependence::ALL => flags,
            vk::ShaderFloatControlsIndependence::TYPE_32_ONLY if flags[0] != flags[2] => {
                [false, flags[1], false]
            }
            vk::ShaderFloatControlsIndependence::TYPE_32_ONLY => flags,
            _ => [flags.iter().all(|flag| *flag); 3],
        };
        Self {
            specials: all([
                p.shader_signed_zero_inf_nan_preserve_float16,
                p.shader_signed_zero_inf_nan_preserve_float32,
                p.shader_signed_zero_inf_nan_preserve_float64,
            ]),
            to_nearest: independent(
                all([
                    p.shader_rounding_mode_rte_float16,
                    p.shader_rounding_mode_rte_float32,
                    p.shader_rounding_mode_rte_float64,
                ]),
                p.rounding_mode_independence,
            ),
            subnormals: independent(
                all([
                    p.shader_denorm_preserve_float16,
                    p.shader_denorm_preserve_float32,
                    p.shader_denorm_preserve_float64,
                ]),
                p.denorm_behavior_independence,
            ),
        }
    }
}

impl Properties {
    /// Reads the properties. The error says what the adapter lacks.
    pub(super) fn of(device: vk::PhysicalDevice, exposed: &Exposed) -> Result<Self, String> {
        let info = &exposed.info;
        let shared = exposed.adapter.shared_instance();
        let instance = shared.raw_instance();
        // SAFETY: the device is the instance's.
        let version = unsafe { instance.get_physical_device_properties(device) }.api_version;
        if version < vk::API_VERSION_1_2 {
            return Err(format!(
                "{} has Vulkan {}.{}, and at least 1.2 is needed. Update its driver",
                info.name,
                vk::api_version_major(version),
                vk::api_version_minor(version)
            ));
        }
        let mut of_11 = vk::PhysicalDeviceVulkan11Properties::default();
        let mut of_12 = vk::PhysicalDeviceVulkan12Properties::default();
        let mut all =
            vk::PhysicalDeviceProperties2::default().push_next(&mut of_11).push_next(&mut of_12);
        // SAFETY: as above; the chain holds structs of Vulkan 1.2.
        unsafe { instance.get_physical_device_properties2(device, &mut all) };
        let code_key = code_key(&all.properties);
        let limits = all.properties.limits;
        let buffers = limits.max_per_stage_descriptor_storage_buffers;
        if buffers < BUFFERS {
            return Err(format!(
                "{} supports {buffers} buffers in a kernel, fewer than the required {BUFFERS}",
                info.name
            ));
        }
        let float64 = missing_features(instance, device)
            .map_err(|what| format!("{} lacks {what}", info.name))?;
        // SAFETY: as above.
        let memory = unsafe { instance.get_physical_device_memory_properties(device) };
        let local = memory.memory_heaps_as_slice().iter();
        let local = local.filter(|h| h.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
        let floats = FloatControls::of(&of_12);
        let stages = of_11.subgroup_supported_stages;
        let in_kernels = stages.contains(vk::ShaderStageFlags::COMPUTE);
        let llvmpipe = of_12.driver_id == vk::DriverId::MESA_LLVMPIPE;
        let group =
            (limits.max_compute_work_group_invocations, limits.max_compute_shared_memory_size);
        let gpu_kernels = gpu_kernels(info.device_type, group);
        let matrices = has_units(instance, device, exposed);
        let bfloat16 = matrices && bfloat16::is_offered(shared.entry(), instance, device);
        let units = units(gpu_kernels, [matrices, bfloat16]);
        Ok(Self {
            name: info.name.clone(),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            code_key,
            kind: info.device_type,
            uuid: Some(of_11.device_uuid),
            pci: pci(&info.device_pci_bus_id),
            memory: local.map(|heap| heap.size).max().unwrap_or(0),
            budget: super::offers(instance, device, ash::ext::memory_budget::NAME),
            max_buffer: u64::from(limits.max_storage_buffer_range)
                .min(of_11.max_memory_allocation_size),
            buffers,
            max_groups: limits.max_compute_work_group_count,
            timestamps: limits.timestamp_compute_and_graphics == vk::TRUE,
            group_sizes: limits.max_compute_work_group_size,
            group_size: limits.max_compute_work_group_invocations,
            group_memory: limits.max_compute_shared_memory_size,
            binding_alignment: limits.min_storage_buffer_offset_alignment,
            subgroup: of_11.subgroup_size,
            subgroup_operations: match in_kernels {
                true => of_11.subgroup_supported_operations.as_raw(),
                false => 0,
            },
            float64,
            keeps_subnormals: floats.subnormals[1] || llvmpipe,
            iterations: if llvmpipe { 65000 } else { u32::MAX },
            gpu_kernels,
            units,
            rounds_bfloat16: rounds_bfloat16(units),
            floats,
        })
    }
}

/// True if subgroups multiply float16 matrices; such subgroups always have 32 invocations.
fn has_units(instance: &ash::Instance, device: vk::PhysicalDevice, exposed: &Exposed) -> bool {
    let mut of_12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut of_12);
    // SAFETY: the device is the instance's and has Vulkan 1.2.
    unsafe { instance.get_physical_device_features2(device, &mut all) };
    let info = &exposed.info;
    let offered = exposed.capabilities.cooperative_matrix_properties.iter().any(|one| {
        [one.m_size, one.n_size, one.k_size] == [16; 3]
            && one.ab_type == CooperativeScalarType::F16
            && one.cr_type == CooperativeScalarType::F32
    });
    offered
        && [info.subgroup_min_size, info.subgroup_max_size] == [32; 2]
        && [of_12.vulkan_memory_model, of_12.shader_float16] == [vk::TRUE; 2]
}

/// Returns whether the device has float64 arithmetic. The error names a missing feature that is
/// required.
fn missing_features(
    instance: &ash::Instance,
    device: vk::PhysicalDevice,
) -> Result<bool, &'static str> {
    let mut of_11 = vk::PhysicalDeviceVulkan11Features::default();
    let mut of_12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut all =
        vk::PhysicalDeviceFeatures2::default().push_next(&mut of_11).push_next(&mut of_12);
    // SAFETY: the device is the instance's and has Vulkan 1.2.
    unsafe { instance.get_physical_device_features2(device, &mut all) };
    let core = all.features;
    let needed = [
        (core.shader_int64, "integers of 64 bits (shaderInt64)"),
        (core.shader_int16, "integers of 16 bits (shaderInt16)"),
        (of_12.shader_int8, "integers of 8 bits (shaderInt8)"),
        (of_11.storage_buffer16_bit_access, "storage of 16 bits (storageBuffer16BitAccess)"),
        (
            of_11.uniform_and_storage_buffer16_bit_access,
            "storage of 16 bits (uniformAndStorageBuffer16BitAccess)",
        ),
        (of_12.storage_buffer8_bit_access, "storage of 8 bits (storageBuffer8BitAccess)"),
        (of_12.timeline_semaphore, "timeline semaphores"),
    ];
    match needed.into_iter().find(|(there, _)| *there == vk::FALSE) {
        Some((_, what)) => Err(what),
        None => Ok(core.shader_float64 == vk::TRUE),
    }
}

/// The key by which drivers distinguish their compiled code from that of other drivers.
fn code_key(properties: &vk::PhysicalDeviceProperties) -> String {
    format!(
        "{:x} {:x} {:x} {:032x}",
        properties.vendor_id,
        properties.device_id,
        properties.driver_version,
        u128::from_be_bytes(properties.pipeline_cache_uuid)
    )
}

/// `0000:1b:00.0` as numbers.
fn pci(text: &str) -> Option<[u32; 4]> {
    let mut numbers = [0; 4];
    let mut parts = text.split([':', '.']);
    for number in &mut numbers {
        *number = u32::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!(pci("0000:1b:00.0"), Some([0, 0x1b, 0, 0]));
        assert_eq!(pci(""), None);
        assert_eq!(pci("0000:1b:00"), None);
    }

    #[test]
    fn rounding_of_dependent_widths_is_asked_for_together() {
        let with = |how| {
            let properties = vk::PhysicalDeviceVulkan12Properties::default()
                .rounding_mode_independence(how)
                .shader_rounding_mode_rte_float16(true)
                .shader_rounding_mode_rte_float32(true);
            FloatControls::of(&properties).to_nearest
        };
        use vk::ShaderFloatControlsIndependence as Independence;
        assert_eq!(with(Independence::ALL), [true, true, false]);
        assert_eq!(with(Independence::TYPE_32_ONLY), [false, true, false]);
        assert_eq!(with(Independence::NONE), [false; 3]);
    }
}
