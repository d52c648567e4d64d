//! The properties of an adapter that affect kernels, limits and messages.

use super::variable;
use crate::shader::patch::FloatControls;
#[cfg(any(windows, target_vendor = "apple"))]
use naga::valid::SubgroupOperationSet;
use wgpu_types::DeviceType;

/// The way in which units are multiplied. Units are 16 by 16 matrices of a half dtype; a subgroup
/// of 32 multiplies them, with sums in float32. See `ops/units.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Units {
    /// By the device's matrix instructions.
    Native,
    /// By functions that replace the instructions, which is used to test the kernels.
    Emulated,
}

/// The properties of an adapter that affect kernels, limits and messages.
#[derive(Clone, Debug)]
pub struct Properties {
    /// Name of the adapter.
    pub name: String,
    /// The driver and its version, in readable form.
    pub driver: String,
    /// The adapter, its driver and their versions, as far as compiled code depends on them.
    pub code_key: String,
    /// Kind of the adapter.
    pub kind: DeviceType,
    /// UUID, which other interfaces to the same device report as well.
    pub uuid: Option<[u8; 16]>,
    /// Domain, bus, device, function.
    pub pci: Option<[u32; 4]>,
    /// Bytes of its memory.
    pub memory: u64,
    /// True if the driver reports how much of the memory is free.
    pub budget: bool,
    /// Maximum size of a storage buffer in bytes, and therefore of a tensor's buffer.
    pub max_buffer: u64,
    /// Maximum number of storage buffers of a kernel.
    pub buffers: u32,
    /// Maximum number of iterations of all loops of an invocation. llvmpipe silently ends loops after
    /// 65535 iterations.
    pub iterations: u32,
    /// Maximum number of workgroups of a dispatch along each dimension.
    pub max_groups: [u32; 3],
    /// True if the queue supports timestamps.
    pub timestamps: bool,
    /// Maximum number of invocations of a workgroup along each dimension.
    pub group_sizes: [u32; 3],
    /// Maximum number of invocations of a workgroup.
    pub group_size: u32,
    /// Bytes of shared memory of a workgroup.
    pub group_memory: u32,
    /// Alignment of a binding's start, in bytes.
    pub binding_alignment: u64,
    /// Invocations of a subgroup.
    pub subgroup: u32,
    /// Bits of VkSubgroupFeatureFlagBits for the operations that kernels may use.
    pub subgroup_operations: u32,
    /// True if it has float64 arithmetic.
    pub float64: bool,
    /// Floating-point modes that it supports.
    pub floats: FloatControls,
    /// True if subnormal numbers are not flushed to zero.
    pub keeps_subnormals: bool,
    /// True if kernels for GPUs are used: with shared memory, barriers and vectors.
    pub gpu_kernels: bool,
    /// Multiplication of small float16 and bfloat16 matrices, if the device has it. Without it, such kernels are
    /// slow.
    pub units: [Option<Units>; 2],
    /// True if the device rounds to bfloat16.
    pub rounds_bfloat16: bool,
}

/// Minimum number of storage buffers of a kernel that every device must support.
pub(super) const BUFFERS: u32 = 8;

/// Setting: `gpu` or `processor` selects the kernels, whatever the device is.
const KERNELS: &str = "KERNELS";

/// Setting: `off` or `emulated` selects how small matrices are multiplied, whatever the device
/// supports.
#[cfg(not(any(windows, target_vendor = "apple")))]
const UNITS: &str = "MATRICES";

/// Setting: `device` lets the device convert to bfloat16, if it has this type. Such conversions are not known to round to
/// nearest even.
#[cfg(not(any(windows, target_vendor = "apple")))]
const BFLOAT16: &str = "BFLOAT16";

/// True if the device rounds to bfloat16: it has bfloat16 matrices, and the setting asks for it.
#[cfg(not(any(windows, target_vendor = "apple")))]
pub(super) fn rounds_bfloat16(units: [Option<Units>; 2]) -> bool {
    let asked = std::env::var(variable(BFLOAT16));
    units[1] == Some(Units::Native) && asked.is_ok_and(|asked| asked.trim() == "device")
}

/// Multiplication of small float16 and bfloat16 matrices on a device that uses kernels for GPUs. `native` says which of
/// them the device itself supports.
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

/// Invocations of a workgroup, and bytes of shared memory, that kernels for GPUs need at most.
const GROUP: (u32, u32) = (256, 32768);

/// True if kernels for GPUs are used, given the largest workgroup and its shared memory. On CPUs barriers are very
/// slow.
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
    /// The properties that the hal itself knows. The error names the features that the adapter
    /// lacks.
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
            // The source of a kernel is the same for all adapters.
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
            // naga's writers for these languages have no matrix operations that are tested here.
            units: [None; 2],
            rounds_bfloat16: false,
        })
    }

    /// Number of invocations that keep the device busy.
    pub fn parallelism(&self) -> u64 {
        if self.gpu_kernels { 65536 } else { 512 }
    }

    /// True if the adapter runs on the host's CPU.
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
