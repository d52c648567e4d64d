//! The properties of an adapter that kernels, limits and messages depend on.

use ash::vk;
use wgpu_types::DeviceType;

/// Storage buffers of a kernel that every device must have room for.
const BUFFERS: u32 = 8;

/// Rounding and special values that SPIR-V may ask for, by width of the type: 16, 32, 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloatControls {
    /// SignedZeroInfNanPreserve.
    pub specials: [bool; 3],
    /// RoundingModeRTE.
    pub to_nearest: [bool; 3],
    /// DenormPreserve.
    pub subnormals: [bool; 3],
}

impl FloatControls {
    fn of(properties: &vk::PhysicalDeviceVulkan12Properties<'_>) -> Self {
        let p = properties;
        let all = |flags: [vk::Bool32; 3]| flags.map(|flag| flag == vk::TRUE);
        // Modes that must be the same for all widths are asked for only where all have them.
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

/// An adapter's properties.
#[derive(Clone, Debug)]
pub struct Properties {
    /// Name of the adapter.
    pub name: String,
    /// The driver and its version, for people.
    pub driver: String,
    /// The adapter, its driver and their versions, as far as compiled code depends on them.
    pub code_key: String,
    /// Kind of the adapter.
    pub kind: DeviceType,
    /// UUID, which other interfaces to the same device show too.
    pub uuid: [u8; 16],
    /// Domain, bus, device, function.
    pub pci: Option<[u32; 4]>,
    /// Bytes of its memory.
    pub memory: u64,
    /// The driver says how much of it is free.
    pub budget: bool,
    /// Bytes of a storage buffer at most, and so of a tensor's buffer.
    pub max_buffer: u64,
    /// Storage buffers of a kernel.
    pub buffers: u32,
    /// Iterations of all loops of an invocation at most. llvmpipe ends loops without a word behind 65535.
    pub iterations: u32,
    /// Workgroups of a dispatch along each dimension.
    pub max_groups: [u32; 3],
    /// The queue notes times.
    pub timestamps: bool,
    /// Invocations of a workgroup along each dimension.
    pub group_sizes: [u32; 3],
    /// Invocations of a workgroup in all.
    pub group_size: u32,
    /// Bytes that the invocations of a workgroup share.
    pub group_memory: u32,
    /// Bytes of which the begin of a binding is a multiple.
    pub binding_alignment: u64,
    /// Invocations of a subgroup.
    pub subgroup: u32,
    /// Bits of VkSubgroupFeatureFlagBits that kernels may use.
    pub subgroup_operations: u32,
    /// It has arithmetic of float64.
    pub float64: bool,
    /// Modes of floating point that it offers.
    pub floats: FloatControls,
    /// Subnormal numbers stay what they are.
    pub keeps_subnormals: bool,
    /// Kernels are those for GPUs: with shared memory, barriers and vectors.
    pub gpu_kernels: bool,
}

/// `gpu` or `processor`: the kernels that are used, whatever the device is.
pub const KERNELS: &str = "ULTRAMARINE_VULKAN_KERNELS";

/// Invocations of a workgroup, and bytes that they share, which kernels for GPUs need at most.
const GROUP: (u32, u32) = (256, 32768);

/// True where kernels for GPUs are used. Barriers are very slow on processors.
fn gpu_kernels(kind: DeviceType, limits: &vk::PhysicalDeviceLimits) -> bool {
    let group = (limits.max_compute_work_group_invocations, limits.max_compute_shared_memory_size);
    if group.0 < GROUP.0 || group.1 < GROUP.1 {
        return false;
    }
    match std::env::var(KERNELS).as_deref().map(str::trim) {
        Ok("gpu") => true,
        Ok("processor") => false,
        _ => kind != DeviceType::Cpu,
    }
}

impl Properties {
    /// Reads them. The error says what the adapter lacks.
    pub fn of(
        instance: &ash::Instance,
        device: vk::PhysicalDevice,
        info: &wgpu_types::AdapterInfo,
    ) -> Result<Self, String> {
        // SAFETY: the device is the instance's.
        let version = unsafe { instance.get_physical_device_properties(device) }.api_version;
        if version < vk::API_VERSION_1_2 {
            return Err(format!(
                "{} has Vulkan {}.{}, and 1.2 is the oldest that will do. Update its driver",
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
                "{} has room for {buffers} buffers in a kernel, not {BUFFERS}",
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
        Ok(Self {
            name: info.name.clone(),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            code_key,
            kind: info.device_type,
            uuid: of_11.device_uuid,
            pci: pci(&info.device_pci_bus_id),
            memory: local.map(|heap| heap.size).max().unwrap_or(0),
            budget: super::budget::is_offered(instance, device),
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
            gpu_kernels: gpu_kernels(info.device_type, &limits),
            floats,
        })
    }

    /// Invocations that it takes to keep the device busy.
    pub fn parallelism(&self) -> u64 {
        if self.gpu_kernels { 65536 } else { 512 }
    }

    /// Runs on the host's processor.
    pub fn is_software(&self) -> bool {
        self.kind == DeviceType::Cpu
    }
}

/// True with arithmetic of float64; the error names a feature without which nothing runs.
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

/// By which drivers tell their compiled code from others'.
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
    fn kernels_for_gpus_need_large_workgroups() {
        let limits = |invocations, bytes| {
            vk::PhysicalDeviceLimits::default()
                .max_compute_work_group_invocations(invocations)
                .max_compute_shared_memory_size(bytes)
        };
        assert!(!gpu_kernels(DeviceType::DiscreteGpu, &limits(128, 65536)));
        assert!(!gpu_kernels(DeviceType::DiscreteGpu, &limits(1024, 16384)));
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
