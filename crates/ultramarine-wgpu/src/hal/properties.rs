//! The properties of an adapter that kernels, limits and messages depend on.

use super::variable;
use crate::shader::patch::FloatControls;
#[cfg(any(windows, target_vendor = "apple"))]
use naga::valid::SubgroupOperationSet;
use wgpu_types::DeviceType;

/// The way in which units are multiplied: matrices of halves, 16 by 16, by a subgroup of 32, with
/// sums in float32. See `ops/units.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Units {
    /// By the device's own instructions.
    Native,
    /// By functions in their place, which test the kernels.
    Emulated,
}

/// The properties of an adapter. Kernels, limits and messages depend on them.
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
    pub uuid: Option<[u8; 16]>,
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
    /// Products of small matrices of float16 and of bfloat16, on devices that have them. Such kernels take their time
    /// elsewhere.
    pub units: [Option<Units>; 2],
    /// The device rounds to bfloat16.
    pub rounds_bfloat16: bool,
}

/// Storage buffers of a kernel that every device must have room for.
pub(super) const BUFFERS: u32 = 8;

/// `gpu` or `processor`: the kernels that are used, whatever the device is.
const KERNELS: &str = "KERNELS";

/// `off` or `emulated`: how products of small matrices are made, whatever the device has.
#[cfg(not(any(windows, target_vendor = "apple")))]
const UNITS: &str = "MATRICES";

/// `device`: conversions to bfloat16 are the device's own, where it has that type. They are not known to round to the nearest
/// even number.
#[cfg(not(any(windows, target_vendor = "apple")))]
const BFLOAT16: &str = "BFLOAT16";

/// True if the device rounds to bfloat16: it has its matrices, and the setting asks for it.
#[cfg(not(any(windows, target_vendor = "apple")))]
pub(super) fn rounds_bfloat16(units: [Option<Units>; 2]) -> bool {
    let asked = std::env::var(variable(BFLOAT16));
    units[1] == Some(Units::Native) && asked.is_ok_and(|asked| asked.trim() == "device")
}

/// Products of small matrices of float16 and of bfloat16 on a device with kernels for GPUs. `native` for those that it has
/// itself.
#[cfg(not(any(windows, target_vendor = "apple")))]
pub(super) fn units(gpu_kernels: bool, native: [bool; 2]) -> [Option<Units>; 2] {
    let asked = std::env::var(variable(UNITS));
    native.map(|native| {
        match asked.as_deref().map(str::trim) {
            Ok("off") => None,
            Ok("emulated") => Some(Units::Emulated),
            _ => native.then_some(Units::Native),
        }
        .filter(|_| gpu_kernels)
    })
}

/// Invocations of a workgroup, and bytes that they share, which kernels for GPUs need at most.
const GROUP: (u32, u32) = (256, 32768);

/// True where kernels for GPUs are used, by the largest workgroup and its bytes. Barriers are very slow on processors.
pub(super) fn gpu_kernels(kind: DeviceType, group: (u32, u32)) -> bool {
    if group.0 < GROUP.0 || group.1 < GROUP.1 {
        return false;
    }
    match std::env::var(variable(KERNELS)).as_deref().map(str::trim) {
        Ok("gpu") => true,
        Ok("processor") => false,
        _ => kind != DeviceType::Cpu,
    }
}

impl Properties {
    /// Those that the hal itself knows. The error names the features that the adapter lacks.
    #[cfg(any(windows, target_vendor = "apple"))]
    pub(super) fn of_limits(
        exposed: &super::Exposed,
        needed: wgpu_types::Features,
        memory: u64,
    ) -> Result<Self, String> {
        let (info, limits) = (&exposed.info, &exposed.capabilities.limits);
        let lacking = needed - exposed.features;
        if !lacking.is_empty() {
            return Err(format!("{} lacks {lacking:?}", info.name));
        }
        let buffers = limits.max_storage_buffers_per_shader_stage;
        if buffers < BUFFERS {
            let name = &info.name;
            return Err(format!(
                "{name} has room for {buffers} buffers in a kernel, not {BUFFERS}"
            ));
        }
        let subgroups = exposed.features.contains(wgpu_types::Features::SUBGROUP);
        Ok(Self {
            name: info.name.clone(),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            // The text of a kernel is the same for all.
            code_key: String::new(),
            kind: info.device_type,
            uuid: None,
            pci: None,
            memory,
            budget: false,
            max_buffer: limits.max_storage_buffer_binding_size,
            buffers,
            iterations: u32::MAX,
            max_groups: [limits.max_compute_workgroups_per_dimension; 3],
            timestamps: false,
            group_sizes: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            group_size: limits.max_compute_invocations_per_workgroup,
            group_memory: limits.max_compute_workgroup_storage_size,
            binding_alignment: limits.min_storage_buffer_offset_alignment.into(),
            subgroup: info.subgroup_min_size,
            subgroup_operations: match subgroups {
                true => SubgroupOperationSet::all().bits().into(),
                false => 0,
            },
            float64: false,
            floats: FloatControls::default(),
            keeps_subnormals: false,
            gpu_kernels: gpu_kernels(
                info.device_type,
                (
                    limits.max_compute_invocations_per_workgroup,
                    limits.max_compute_workgroup_storage_size,
                ),
            ),
            // naga's writers for these languages have none that are tested here.
            units: [None; 2],
            rounds_bfloat16: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_for_gpus_need_large_workgroups() {
        assert!(!gpu_kernels(DeviceType::DiscreteGpu, (128, 65536)));
        assert!(!gpu_kernels(DeviceType::DiscreteGpu, (1024, 16384)));
    }
}
