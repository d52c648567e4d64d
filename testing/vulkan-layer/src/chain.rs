//! The loader's description of the layer or driver below: structs of `vk_layer.h`, which ash does not have.

use ash::vk;
use core::ffi::c_void;

#[repr(C)]
struct Link {
    below: *mut Link,
    get_instance: vk::PFN_vkGetInstanceProcAddr,
    /// Of devices: vkGetDeviceProcAddr. Of instances: what resolves functions of physical devices.
    get_device: Option<vk::PFN_vkGetDeviceProcAddr>,
}

#[repr(C)]
struct CreateInfo {
    kind: vk::StructureType,
    next: *mut c_void,
    function: i32,
    link: *mut Link,
}

/// `VK_LAYER_LINK_INFO`.
const LINK: i32 = 0;

/// The layer or driver below: how functions of instances and of devices are found.
#[derive(Clone, Copy)]
pub struct Below {
    pub get_instance: vk::PFN_vkGetInstanceProcAddr,
    pub get_device: Option<vk::PFN_vkGetDeviceProcAddr>,
}

/// Takes the loader's link out of a chain of structs, so that the layer below finds its own.
///
/// # Safety
/// The chain is one that the loader gave to a function that creates.
pub unsafe fn below(mut next: *const c_void, kind: vk::StructureType) -> Option<Below> {
    while !next.is_null() {
        let info = next.cast::<CreateInfo>().cast_mut();
        // SAFETY: all structs of a chain begin with a type and the next one; those of this type are as above, and the
        // loader lets layers change them.
        unsafe {
            if (*info).kind == kind && (*info).function == LINK {
                let link = (*info).link.as_ref()?;
                (*info).link = link.below;
                return Some(Below {
                    get_instance: link.get_instance,
                    get_device: link.get_device,
                });
            }
            next = (*info).next;
        }
    }
    None
}

/// A function of the layer below, as a pointer of the type that its name has.
///
/// # Safety
/// `F` is the type of the function pointer that the name stands for.
pub unsafe fn typed<F: Copy>(found: vk::PFN_vkVoidFunction) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<unsafe extern "system" fn()>()) };
    // SAFETY: pointers to functions of one size, by this function's contract.
    found.map(|f| unsafe { core::mem::transmute_copy::<unsafe extern "system" fn(), F>(&f) })
}

/// A function of this layer without its type, as loaders want it.
macro_rules! untyped {
    ($function:expr, $type:ty) => {{
        let function: $type = $function;
        // SAFETY: the caller gives it its type back, by the name under which it was found.
        unsafe { core::mem::transmute::<$type, ash::vk::PFN_vkVoidFunction>(function) }
    }};
}
pub(crate) use untyped;

/// The key of a handle's dispatch table: what is made of one instance or device shares it.
///
/// # Safety
/// A dispatchable handle.
pub unsafe fn key(handle: u64) -> usize {
    // SAFETY: dispatchable handles point at their table's address.
    unsafe { *core::ptr::with_exposed_provenance::<usize>(handle as usize) }
}
