//! WGSL to SPIR-V by naga, without checks of bounds or loops.

use naga::back::spv::{self, BindingInfo, ZeroInitializeWorkgroupMemoryMode};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{
    Capabilities, ModuleInfo, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator,
};

/// A program that naga has validated.
pub struct Parsed {
    /// The program.
    pub module: naga::Module,
    info: ModuleInfo,
}

/// Reads a program.
pub fn read(text: &str) -> Result<naga::Module, String> {
    naga::front::wgsl::parse_str(text).map_err(|e| e.emit_to_string(text))
}

/// Compiles a program of our own with an entry point `main`, which divides by no zero.
pub fn compile(text: &str) -> Result<Vec<u32>, String> {
    Parsed::of(read(text)?, text, Capabilities::all(), 0)?.write("main", Zeros::Left)
}

/// Zeros where WGSL promises them, beyond what the hardware does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// None.
    Left,
    /// Shared memory begins as zeros, and integers may be divided by zero.
    Handled,
}

impl Parsed {
    /// Validates a program that was read from a text. `subgroups` has the bits of VkSubgroupFeatureFlagBits.
    pub fn of(
        module: naga::Module,
        text: &str,
        capabilities: Capabilities,
        subgroups: u32,
    ) -> Result<Self, String> {
        let mut validator = Validator::new(ValidationFlags::all(), capabilities);
        if subgroups != 0 {
            // naga's bits are Vulkan's.
            let operations = SubgroupOperationSet::from_bits_truncate(subgroups as u8);
            validator.subgroup_operations(operations).subgroup_stages(ShaderStages::COMPUTE);
        }
        let info = validator.validate(&module).map_err(|e| e.emit_to_string(text))?;
        Ok(Self { module, info })
    }

    /// The SPIR-V of an entry point.
    pub fn write(&self, entry: &str, zeros: Zeros) -> Result<Vec<u32>, String> {
        let globals = self.module.global_variables.iter();
        let bindings = globals.filter_map(|(_, variable)| variable.binding);
        let info_of = |binding: &naga::ResourceBinding| BindingInfo {
            descriptor_set: binding.group,
            binding: binding.binding,
            binding_array_size: None,
        };
        let unchecked = BoundsCheckPolicy::Unchecked;
        let options = spv::Options {
            // Of Vulkan 1.2: the modes of floating point and bytes in buffers need no extension.
            lang_version: (1, 5),
            flags: spv::WriterFlags::empty(),
            fake_missing_bindings: false,
            binding_map: bindings.map(|binding| (binding, info_of(&binding))).collect(),
            capabilities: None,
            bounds_check_policies: BoundsCheckPolicies {
                index: unchecked,
                buffer: unchecked,
                image_load: unchecked,
                binding_array: unchecked,
            },
            zero_initialize_workgroup_memory: match zeros {
                Zeros::Left => ZeroInitializeWorkgroupMemoryMode::None,
                Zeros::Handled => ZeroInitializeWorkgroupMemoryMode::Polyfill,
            },
            force_loop_bounding: false,
            emit_int_div_checks: zeros == Zeros::Handled,
            // The capability StorageInputOutput16 is asked for otherwise, and is not enabled.
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
    use super::compile;

    #[test]
    fn errors_show_the_line() {
        let why =
            compile("@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }").unwrap_err();
        assert!(why.contains("1u"), "{why}");
    }
}
