//! Parses WGSL by naga, and generates SPIR-V, without checks of bounds or loops.

use naga::back::spv::{self, BindingInfo, ZeroInitializeWorkgroupMemoryMode};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{
    Capabilities, GlobalUse, ModuleInfo, ShaderStages, SubgroupOperationSet, ValidationFlags,
    Validator,
};

/// A program that naga has parsed and validated.
pub struct Parsed {
    /// The program.
    pub module: naga::Module,
    pub(super) info: ModuleInfo,
}

/// Reads a program.
pub fn read(text: &str) -> Result<naga::Module, String> {
    naga::front::wgsl::parse_str(text).map_err(|e| e.emit_to_string(text))
}

/// Policies without bounds checks.
pub(super) const UNCHECKED: BoundsCheckPolicies = BoundsCheckPolicies {
    index: BoundsCheckPolicy::Unchecked,
    buffer: BoundsCheckPolicy::Unchecked,
    image_load: BoundsCheckPolicy::Unchecked,
    binding_array: BoundsCheckPolicy::Unchecked,
};

/// Parses and validates a program of this crate.
pub fn parse(text: &str) -> Result<Parsed, String> {
    Parsed::of(read(text)?, text, Capabilities::all(), 0)
}

/// Returns the SPIR-V of a program of this crate with an entry point `main`, which does not divide
/// by zero.
#[cfg(test)]
pub fn compile(text: &str) -> Result<Vec<u32>, String> {
    parse(text)?.spirv("main", Zeros::Left)
}

/// Validates a changed module of [`Parsed`] for a language without float64. naga's writers rely on
/// the validation.
pub(super) fn without_float64(module: naga::Module) -> Result<Parsed, String> {
    let capabilities = Capabilities::all() - Capabilities::FLOAT64;
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    validator.subgroup_operations(SubgroupOperationSet::all());
    validator.subgroup_stages(ShaderStages::COMPUTE);
    let info = validator.validate(&module);
    let info = info.map_err(|e| format!("without float64: {:?}", e.into_inner()))?;
    Ok(Parsed { module, info })
}

/// Guarantees about zeros that WGSL makes, but hardware does not. Kernels of this crate do not need
/// them; users' kernels do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// The guarantees are not implemented.
    Left,
    /// Shared memory is initialised with zeros, and integer division by zero is defined.
    Handled,
}

impl Parsed {
    /// Validates a parsed program. `subgroups` has the bits of VkSubgroupFeatureFlagBits.
    pub fn of(
        module: naga::Module,
        text: &str,
        capabilities: Capabilities,
        subgroups: u32,
    ) -> Result<Self, String> {
        let mut validator = Validator::new(ValidationFlags::all(), capabilities);
        if subgroups != 0 {
            // naga's bits are the same as Vulkan's.
            let operations = SubgroupOperationSet::from_bits_truncate(subgroups as u8);
            validator.subgroup_operations(operations).subgroup_stages(ShaderStages::COMPUTE);
        }
        let info = validator.validate(&module).map_err(|e| e.emit_to_string(text))?;
        Ok(Self { module, info })
    }

    /// Invocations of an entry point's workgroup.
    pub(super) fn group(&self, entry: &str) -> [u32; 3] {
        let found = self.module.entry_points.iter().find(|point| point.name == entry);
        found.map_or([1; 3], |point| point.workgroup_size)
    }

    /// A bit for each binding that an entry point may write.
    pub fn written(&self, entry: &str) -> u32 {
        let points = &self.module.entry_points;
        let Some(point) = points.iter().position(|point| point.name == entry) else {
            return u32::MAX;
        };
        // Functions get no pointers to buffers, so all accesses name the buffer.
        let uses = self.info.get_entry_point(point);
        let globals = self.module.global_variables.iter();
        let written = globals.filter(|(handle, _)| uses[*handle].contains(GlobalUse::WRITE));
        let bindings = written.filter_map(|(_, variable)| variable.binding);
        let bits = bindings.filter_map(|binding| 1_u32.checked_shl(binding.binding));
        bits.fold(0, |all, bit| all | bit)
    }

    /// The SPIR-V of an entry point.
    pub fn spirv(&self, entry: &str, zeros: Zeros) -> Result<Vec<u32>, String> {
        let globals = self.module.global_variables.iter();
        let bindings = globals.filter_map(|(_, variable)| variable.binding);
        let info_of = |binding: &naga::ResourceBinding| BindingInfo {
            descriptor_set: binding.group,
            binding: binding.binding,
            binding_array_size: None,
        };
        let options = spv::Options {
            // The version for Vulkan 1.2, in which floating-point modes and bytes in buffers need
            // no extension.
            lang_version: (1, 5),
            flags: spv::WriterFlags::empty(),
            fake_missing_bindings: false,
            binding_map: bindings.map(|binding| (binding, info_of(&binding))).collect(),
            capabilities: None,
            bounds_check_policies: UNCHECKED,
            zero_initialize_workgroup_memory: match zeros {
                Zeros::Left => ZeroInitializeWorkgroupMemoryMode::None,
                Zeros::Handled => ZeroInitializeWorkgroupMemoryMode::Polyfill,
            },
            force_loop_bounding: false,
            emit_int_div_checks: zeros == Zeros::Handled,
            // Otherwise naga requests the capability StorageInputOutput16, which is not enabled.
            use_storage_input_output_16: false,
            ..Default::default()
        };
        let pipeline = spv::PipelineOptions {
            shader_stage: naga::ShaderStage::Compute,
            entry_point: entry.to_owned(),
        };
        spv::write_vec(&self.module, &self.info, &options, Some(&pipeline))
            .map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{compile, parse};

    #[test]
    fn errors_show_the_line() {
        let why =
            compile("@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }").unwrap_err();
        assert!(why.contains("1u"), "{why}");
    }

    #[test]
    fn stores_and_atomics_of_an_entry_point_write() {
        let text = "@group(0) @binding(0) var<storage, read> a: array<u32>;\n\
                    @group(0) @binding(1) var<storage, read_write> b: array<u32>;\n\
                    @group(0) @binding(2) var<storage, read_write> c: array<u32>;\n\
                    @group(0) @binding(3) var<storage, read_write> d: atomic<u32>;\n\
                    @group(0) @binding(4) var<storage, read_write> e: array<vec2<u32>>;\n\
                    fn put(at: u32, value: u32) { b[at] = value; }\n\
                    @compute @workgroup_size(1) fn main() {\n\
                    put(a[0], c[1]);\natomicAdd(&d, 1u);\nlet p = &e[2];\n(*p).x = 1u;\n}\n\
                    @compute @workgroup_size(1) fn other() { c[0] = atomicLoad(&d) + e[1].x; }";
        let parsed = parse(text).unwrap();
        assert_eq!((parsed.written("main"), parsed.written("other")), (0b11010, 0b100));
        assert_eq!(parsed.written("none"), u32::MAX);
    }
}
