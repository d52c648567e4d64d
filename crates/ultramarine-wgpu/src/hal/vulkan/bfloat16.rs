//! `VK_KHR_shader_bfloat16`, for bfloat16 matrices. The extension is newer than ash.

use ash::vk;
use core::ffi::{CStr, c_void};

/// The extension.
pub const NAME: &CStr = c"VK_KHR_shader_bfloat16";
/// `VK_COMPONENT_TYPE_BFLOAT16_KHR`.
const COMPONENT: vk::ComponentTypeKHR = vk::ComponentTypeKHR::from_raw(1_000_141_000);

/// `VkPhysicalDeviceShaderBfloat16FeaturesKHR`.
#[repr(C)]
pub struct Features {
    s_type: vk::StructureType,
    next: *mut c_void,
    types: vk::Bool32,
    dot_products: vk::Bool32,
    matrices: vk::Bool32,
}

// SAFETY: the specification lets the struct extend both structs, and it has the common header of
// such structs.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for Features {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for Features {}

impl Features {
    /// Enables bfloat16 types and matrices, or nothing.
    pub fn of(wanted: bool) -> Self {
        Self {
            s_type: vk::StructureType::from_raw(1_000_141_000),
            next: core::ptr::null_mut(),
            types: wanted.into(),
            dot_products: vk::FALSE,
            matrices: wanted.into(),
        }
    }
}

/// Returns true if a device has bfloat16 matrices, 16 by 16 by 16 per subgroup, with sums in float32. The caller has
/// checked that it has matrices of other types.
pub fn is_offered(
    entry: &ash::Entry,
    instance: &ash::Instance,
    device: vk::PhysicalDevice,
) -> bool {
    if !super::offers(instance, device, NAME) {
        return false;
    }
    let mut features = Features::of(false);
    let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut features);
    // SAFETY: the device is the instance's, and supports the extension that defines the struct.
    unsafe { instance.get_physical_device_features2(device, &mut all) };
    if [features.types, features.matrices] != [vk::TRUE; 2] {
        return false;
    }
    let matrices = ash::khr::cooperative_matrix::Instance::new(entry, instance);
    // SAFETY: the device is the instance's, and supports the extension.
    let listed = unsafe { matrices.get_physical_device_cooperative_matrix_properties(device) };
    listed.unwrap_or_default().iter().any(|one| {
        let float32 = vk::ComponentTypeKHR::FLOAT32;
        [one.m_size, one.n_size, one.k_size] == [16; 3]
            && [one.a_type, one.b_type] == [COMPONENT; 2]
            && [one.c_type, one.result_type] == [float32; 2]
            && one.scope == vk::ScopeKHR::SUBGROUP
    })
}
