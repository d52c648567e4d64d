//! Functions of devices: loss, memory, counts.

use crate::chain::{self, typed, untyped};
use crate::instance;
use crate::settings::{report, settings};
use ash::vk::{self, Handle as _};
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// `VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO`.
const LOADER: vk::StructureType = vk::StructureType::from_raw(48);

/// A device: functions of the layer below, and what was called.
struct Device {
    handle: vk::Device,
    get: vk::PFN_vkGetDeviceProcAddr,
    submit: vk::PFN_vkQueueSubmit,
    wait: vk::PFN_vkWaitSemaphores,
    value: vk::PFN_vkGetSemaphoreCounterValue,
    idle: vk::PFN_vkDeviceWaitIdle,
    dispatch: vk::PFN_vkCmdDispatch,
    barrier: vk::PFN_vkCmdPipelineBarrier,
    sets: vk::PFN_vkAllocateDescriptorSets,
    allocate: vk::PFN_vkAllocateMemory,
    free: vk::PFN_vkFreeMemory,
    destroy: vk::PFN_vkDestroyDevice,
    submissions: AtomicU64,
    dispatches: AtomicU64,
    barriers: AtomicU64,
    descriptor_sets: AtomicU64,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    pieces: HashMap<u64, u64>,
    most: usize,
}

/// Devices by the key of their handles.
static DEVICES: Mutex<Option<HashMap<usize, Arc<Device>>>> = Mutex::new(None);

/// The device of a handle.
///
/// # Safety
/// A dispatchable handle.
unsafe fn of(handle: u64) -> Option<Arc<Device>> {
    // SAFETY: by this function's contract.
    let key = unsafe { chain::key(handle) };
    let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    devices.as_ref()?.get(&key).cloned()
}

impl Device {
    /// # Safety
    /// The device is alive, and `get` finds its functions.
    unsafe fn new(handle: vk::Device, get: vk::PFN_vkGetDeviceProcAddr) -> Option<Self> {
        macro_rules! next {
            ($name:literal) => {
                // SAFETY: the field that takes it has the type that the name stands for.
                unsafe { typed(get(handle, $name.as_ptr()))? }
            };
        }
        Some(Self {
            handle,
            get,
            submit: next!(c"vkQueueSubmit"),
            wait: next!(c"vkWaitSemaphores"),
            value: next!(c"vkGetSemaphoreCounterValue"),
            idle: next!(c"vkDeviceWaitIdle"),
            dispatch: next!(c"vkCmdDispatch"),
            barrier: next!(c"vkCmdPipelineBarrier"),
            sets: next!(c"vkAllocateDescriptorSets"),
            allocate: next!(c"vkAllocateMemory"),
            free: next!(c"vkFreeMemory"),
            destroy: next!(c"vkDestroyDevice"),
            submissions: AtomicU64::new(0),
            dispatches: AtomicU64::new(0),
            barriers: AtomicU64::new(0),
            descriptor_sets: AtomicU64::new(0),
            memory: Mutex::default(),
        })
    }

    /// True from the submission on that loses the device. Nothing runs on a lost one, so what runs ends first.
    fn lost(&self) -> bool {
        let submissions = self.submissions.load(Ordering::Acquire);
        let lost = settings().lose.is_some_and(|n| submissions >= n);
        if lost {
            // SAFETY: the device is alive: its owner calls.
            _ = unsafe { (self.idle)(self.handle) };
        }
        lost
    }
}

/// The functions of devices that are the layer's own.
pub fn own(name: &CStr) -> vk::PFN_vkVoidFunction {
    match name.to_bytes() {
        b"vkGetDeviceProcAddr" => untyped!(get, vk::PFN_vkGetDeviceProcAddr),
        b"vkDestroyDevice" => untyped!(destroy, vk::PFN_vkDestroyDevice),
        b"vkQueueSubmit" => untyped!(submit, vk::PFN_vkQueueSubmit),
        b"vkWaitSemaphores" => untyped!(wait, vk::PFN_vkWaitSemaphores),
        b"vkGetSemaphoreCounterValue" => untyped!(value, vk::PFN_vkGetSemaphoreCounterValue),
        b"vkCmdDispatch" => untyped!(dispatch, vk::PFN_vkCmdDispatch),
        b"vkCmdPipelineBarrier" => untyped!(barrier, vk::PFN_vkCmdPipelineBarrier),
        b"vkAllocateDescriptorSets" => untyped!(sets, vk::PFN_vkAllocateDescriptorSets),
        b"vkAllocateMemory" => untyped!(allocate, vk::PFN_vkAllocateMemory),
        b"vkFreeMemory" => untyped!(free, vk::PFN_vkFreeMemory),
        _ => None,
    }
}

// The functions below are Vulkan's, and their safety is what Vulkan says of them: handles are alive, places valid.

pub unsafe extern "system" fn get(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: a text and a handle that is alive.
    unsafe {
        own(CStr::from_ptr(name)).or_else(|| {
            let found = of(device.as_raw())?;
            (found.get)(found.handle, name)
        })
    }
}

pub unsafe extern "system" fn create(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    let failed = vk::Result::ERROR_INITIALIZATION_FAILED;
    // SAFETY: the loader's structs; names and types fit.
    unsafe {
        let Some(below) = chain::below((*info).p_next, LOADER) else { return failed };
        let Some(instance) = instance::of(physical.as_raw()) else { return failed };
        let result = (instance.create_device)(physical, info, allocator, device);
        if result != vk::Result::SUCCESS {
            return result;
        }
        let made = below.get_device.and_then(|get| Device::new(*device, get));
        let Some(made) = made else { return failed };
        let mut all = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_or_insert_default().insert(chain::key((*device).as_raw()), Arc::new(made));
        result
    }
}

unsafe extern "system" fn destroy(
    device: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if device.is_null() {
        return;
    }
    // SAFETY: as Vulkan has it.
    unsafe {
        let key = chain::key(device.as_raw());
        let mut all = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = all.get_or_insert_default().remove(&key) else { return };
        drop(all);
        (found.destroy)(device, allocator);
        if settings().count {
            let count = |n: &AtomicU64| n.load(Ordering::Acquire);
            let memory = found.memory.lock().unwrap_or_else(PoisonError::into_inner);
            report(&format!(
                "submissions {}, dispatches {}, barriers {}, descriptor sets {}, allocations at a time {}, left {}",
                count(&found.submissions),
                count(&found.dispatches),
                count(&found.barriers),
                count(&found.descriptor_sets),
                memory.most,
                memory.pieces.len()
            ));
        }
    }
}

unsafe extern "system" fn submit(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: as Vulkan has it.
    unsafe {
        let Some(device) = of(queue.as_raw()) else { return vk::Result::ERROR_DEVICE_LOST };
        device.submissions.fetch_add(1, Ordering::AcqRel);
        match device.lost() {
            true => vk::Result::ERROR_DEVICE_LOST,
            false => (device.submit)(queue, count, submits, fence),
        }
    }
}

unsafe extern "system" fn wait(
    device: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    // SAFETY: as Vulkan has it.
    unsafe {
        match of(device.as_raw()).filter(|device| !device.lost()) {
            Some(found) => (found.wait)(device, info, timeout),
            None => vk::Result::ERROR_DEVICE_LOST,
        }
    }
}

unsafe extern "system" fn value(
    device: vk::Device,
    semaphore: vk::Semaphore,
    value: *mut u64,
) -> vk::Result {
    // SAFETY: as Vulkan has it.
    unsafe {
        match of(device.as_raw()).filter(|device| !device.lost()) {
            Some(found) => (found.value)(device, semaphore, value),
            None => vk::Result::ERROR_DEVICE_LOST,
        }
    }
}

unsafe extern "system" fn dispatch(commands: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    // SAFETY: as Vulkan has it.
    unsafe {
        let Some(device) = of(commands.as_raw()) else { return };
        device.dispatches.fetch_add(1, Ordering::Relaxed);
        if !settings().idle {
            (device.dispatch)(commands, x, y, z);
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "Vulkan has it so")]
unsafe extern "system" fn barrier(
    commands: vk::CommandBuffer,
    before: vk::PipelineStageFlags,
    behind: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memories: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffers: u32,
    buffer: *const vk::BufferMemoryBarrier<'_>,
    images: u32,
    image: *const vk::ImageMemoryBarrier<'_>,
) {
    // SAFETY: as Vulkan has it.
    unsafe {
        let Some(device) = of(commands.as_raw()) else { return };
        device.barriers.fetch_add(1, Ordering::Relaxed);
        if !settings().idle {
            (device.barrier)(
                commands, before, behind, flags, memories, memory, buffers, buffer, images, image,
            );
        }
    }
}

unsafe extern "system" fn sets(
    device: vk::Device,
    info: *const vk::DescriptorSetAllocateInfo<'_>,
    sets: *mut vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: as Vulkan has it.
    unsafe {
        let Some(found) = of(device.as_raw()) else { return vk::Result::ERROR_DEVICE_LOST };
        found.descriptor_sets.fetch_add(1, Ordering::Relaxed);
        (found.sets)(device, info, sets)
    }
}

unsafe extern "system" fn allocate(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    // SAFETY: as Vulkan has it.
    unsafe {
        let Some(found) = of(device.as_raw()) else { return vk::Result::ERROR_DEVICE_LOST };
        let mut known = found.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = known.pieces.values().sum::<u64>().saturating_add((*info).allocation_size);
        if settings().memory.is_some_and(|most| bytes > most) {
            return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
        }
        if settings().allocations.is_some_and(|most| known.pieces.len() as u64 >= most) {
            return vk::Result::ERROR_TOO_MANY_OBJECTS;
        }
        let result = (found.allocate)(device, info, allocator, memory);
        if result == vk::Result::SUCCESS {
            known.pieces.insert((*memory).as_raw(), (*info).allocation_size);
            known.most = known.most.max(known.pieces.len());
        }
        result
    }
}

unsafe extern "system" fn free(
    device: vk::Device,
    memory: vk::DeviceMemory,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: as Vulkan has it.
    unsafe {
        let Some(found) = of(device.as_raw()) else { return };
        found.memory.lock().unwrap_or_else(PoisonError::into_inner).pieces.remove(&memory.as_raw());
        (found.free)(device, memory, allocator);
    }
}
