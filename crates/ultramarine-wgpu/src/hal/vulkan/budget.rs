//! The memory that the driver grants to this process.

use crate::hal::Device;
use ash::vk;

/// Free bytes of the device's largest local heap. The device must support the query.
pub fn free_memory(device: &Device) -> Option<u64> {
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut all = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    let instance = device.shared_instance().raw_instance();
    // SAFETY: the physical device is the instance's, and supports the extension.
    unsafe {
        instance.get_physical_device_memory_properties2(device.raw_physical_device(), &mut all);
    }
    let properties = all.memory_properties;
    let heaps = properties.memory_heaps_as_slice().iter().enumerate();
    let local = heaps.filter(|(_, heap)| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    let (largest, _) = local.max_by_key(|(_, heap)| heap.size)?;
    Some(budget.heap_budget[largest].saturating_sub(budget.heap_usage[largest]))
}
