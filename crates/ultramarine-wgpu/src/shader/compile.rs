//! WGSL to SPIR-V by naga, without checks of bounds, loops or divisions.

use naga::back::spv::{self, BindingInfo, ZeroInitializeWorkgroupMemoryMode};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Compiles a program with an entry point `main`.
pub fn compile(text: &str) -> Result<Vec<u32>, String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|e| e.emit_to_string(text))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(&module).map_err(|e| e.emit_to_string(text))?;
    let bindings = module.global_variables.iter().filter_map(|(_, variable)| variable.binding);
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
        zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        // The capability StorageInputOutput16 is asked for otherwise, and is not enabled.
        use_storage_input_output_16: false,
        ..Default::default()
    };
    let pipeline = spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: "main".into(),
    };
    spv::write_vec(&module, &info, &options, Some(&pipeline)).map_err(|e| e.to_string())
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
