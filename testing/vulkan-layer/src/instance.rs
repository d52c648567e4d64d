//! Functions of instances and physical devices: the limits.

use crate::chain::{self, typed, untyped};
use crate::device;
use crate::settings::settings;
use ash::vk::{self, Handle as _};
use core::ffi::{CStr, c_char};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// `VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO`.
const LOADER: vk::StructureType = vk::StructureType::from_raw(47);

/// An instance: functions of the layer below. They are looked up while it is made; later the loader gives the layer's
/// own.
#[derive(Clone, Copy)]
pub struct Instance {
    handle: vk::Instance,
    get: vk::PFN_vkGetInstanceProcAddr,
    pub create_device: vk::PFN_vkCreateDevice,
    properties: vk::PFN_vkGetPhysicalDeviceProperties,
    properties2: vk::PFN_vkGetPhysicalDeviceProperties2,
    enumerate: vk::PFN_vkEnumeratePhysicalDevices,
    destroy: vk::PFN_vkDestroyInstance,
}

/// Instances by the key of their handles.
static INSTANCES: Mutex<Option<HashMap<usize, Instance>>> = Mutex::new(None);

impl Instance {
    /// # Safety
    /// The instance is alive, and `get` finds its functions.
    unsafe fn new(handle: vk::Instance, get: vk::PFN_vkGetInstanceProcAddr) -> Option<Self> {
        // SAFETY: the fields that take them have the types that the names stand for.
        unsafe {
            Some(Self {
                handle,
                get,
                create_device: typed(get(handle, c"vkCreateDevice".as_ptr()))?,
                properties: typed(get(handle, c"vkGetPhysicalDeviceProperties".as_ptr()))?,
                properties2: typed(get(handle, c"vkGetPhysicalDeviceProperties2".as_ptr()))?,
                enumerate: typed(get(handle, c"vkEnumeratePhysicalDevices".as_ptr()))?,
                destroy: typed(get(handle, c"vkDestroyInstance".as_ptr()))?,
            })
        }
    }
}

/// The instance of a handle.
///
/// # Safety
/// A dispatchable handle.
pub unsafe fn of(handle: u64) -> Option<Instance> {
    // SAFETY: by this function's contract.
    let key = unsafe { chain::key(handle) };
    let instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
    instances.as_ref()?.get(&key).copied()
}

// The functions below are Vulkan's, and their safety is what Vulkan says of them.

pub unsafe extern "system" fn get(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: by Vulkan's contract a text.
    let text = unsafe { CStr::from_ptr(name) };
    match text.to_bytes() {
        b"vkGetInstanceProcAddr" => untyped!(get, vk::PFN_vkGetInstanceProcAddr),
        b"vkCreateInstance" => untyped!(create, vk::PFN_vkCreateInstance),
        b"vkDestroyInstance" => untyped!(destroy, vk::PFN_vkDestroyInstance),
        b"vkEnumeratePhysicalDevices" if settings().twice => {
            untyped!(enumerate_twice, vk::PFN_vkEnumeratePhysicalDevices)
        }
        b"vkCreateDevice" => untyped!(device::create, vk::PFN_vkCreateDevice),
        b"vkGetDeviceProcAddr" => untyped!(device::get, vk::PFN_vkGetDeviceProcAddr),
        b"vkGetPhysicalDeviceProperties" => {
            untyped!(properties, vk::PFN_vkGetPhysicalDeviceProperties)
        }
        b"vkGetPhysicalDeviceProperties2" | b"vkGetPhysicalDeviceProperties2KHR" => {
            untyped!(properties2, vk::PFN_vkGetPhysicalDeviceProperties2)
        }
        _ if instance.is_null() => None,
        _ => device::own(text).or_else(|| {
            // SAFETY: a handle of the loader's.
            let found = unsafe { of(instance.as_raw()) }?;
            // SAFETY: as above.
            unsafe { (found.get)(found.handle, name) }
        }),
    }
}

unsafe extern "system" fn create(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    // SAFETY: the loader's structs; names and types fit.
    unsafe {
        let Some(below) = chain::below((*info).p_next, LOADER) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let found = (below.get_instance)(vk::Instance::null(), c"vkCreateInstance".as_ptr());
        let Some(create) = typed::<vk::PFN_vkCreateInstance>(found) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = create(info, allocator, instance);
        if result != vk::Result::SUCCESS {
            return result;
        }
        let Some(made) = Instance::new(*instance, below.get_instance) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let mut all = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_or_insert_default().insert(chain::key((*instance).as_raw()), made);
        result
    }
}

unsafe extern "system" fn destroy(
    instance: vk::Instance,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if instance.is_null() {
        return;
    }
    // SAFETY: a handle that is alive; the name has the type.
    unsafe {
        let key = chain::key(instance.as_raw());
        let mut all = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.get_or_insert_default().remove(&key);
        drop(all);
        if let Some(found) = found {
            (found.destroy)(instance, allocator);
        }
    }
}

/// Lists each device twice, one behind the other.
unsafe extern "system" fn enumerate_twice(
    instance: vk::Instance,
    count: *mut u32,
    devices: *mut vk::PhysicalDevice,
) -> vk::Result {
    // SAFETY: as above; `devices` is null or has room for `count`.
    unsafe {
        let Some(below) = of(instance.as_raw()) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let room = *count as usize;
        if devices.is_null() {
            let result = (below.enumerate)(instance, count, devices);
            *count *= 2;
            return result;
        }
        *count = (room / 2) as u32;
        let result = (below.enumerate)(instance, count, devices);
        let listed = core::slice::from_raw_parts_mut(devices, room);
        for i in (0..*count as usize).rev() {
            let device = listed[i];
            listed[2 * i..2 * i + 2].fill(device);
        }
        *count *= 2;
        result
    }
}

unsafe extern "system" fn properties(
    device: vk::PhysicalDevice,
    properties: *mut vk::PhysicalDeviceProperties,
) {
    // SAFETY: as above.
    unsafe {
        if let Some(instance) = of(device.as_raw()) {
            (instance.properties)(device, properties);
            lie(&mut (*properties).limits);
        }
    }
}

unsafe extern "system" fn properties2(
    device: vk::PhysicalDevice,
    properties: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    // SAFETY: as above; the chain's structs begin with their type.
    unsafe {
        let Some(instance) = of(device.as_raw()) else { return };
        (instance.properties2)(device, properties);
        lie(&mut (*properties).properties.limits);
        let mut at = (*properties).p_next.cast::<vk::BaseOutStructure<'_>>();
        while let Some(one) = at.as_mut() {
            if let (Some(range), vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) =
                (settings().range, one.s_type)
            {
                let of_11 = at.cast::<vk::PhysicalDeviceVulkan11Properties<'_>>();
                (*of_11).max_memory_allocation_size = range;
            }
            at = one.p_next;
        }
    }
}

fn lie(limits: &mut vk::PhysicalDeviceLimits) {
    if let Some(range) = settings().range {
        limits.max_storage_buffer_range = u32::try_from(range).unwrap_or(u32::MAX);
    }
    if let Some(most) = settings().allocations {
        limits.max_memory_allocation_count = u32::try_from(most).unwrap_or(u32::MAX);
    }
}
