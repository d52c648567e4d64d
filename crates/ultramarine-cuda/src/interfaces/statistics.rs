//! Memory statistics and limits.
//!
//! Buffers never exceed the memory limit; memory that is kept for reuse is freed first. The limit
//! of pinned memory is that of [`crate::streams::Staging`].

use crate::launch::Device;
use core::ffi::c_void;
use ultramarine_abi::helper::{Failure, guard_value};
use ultramarine_abi::helper::{device_of, host_of, with_device};
use ultramarine_abi::interface::statistics::{
    COUNTS, MemoryStatistics, StatisticsInterface, limit,
};
use ultramarine_abi::{Error, Status, write_sized};

/// The interface.
pub static TABLE: StatisticsInterface = StatisticsInterface {
    size: size_of::<StatisticsInterface>() as u32,
    flags: 0,
    read: Some(read),
    set_limit: Some(set_limit),
    get_limit: Some(get_limit),
    reset_peak: Some(reset_peak),
    clear_cache: Some(clear_cache),
};

// The functions below implement the interface. Their safety follows from the contract: devices are
// those that the backend returned, and output pointers are NULL or writable.

unsafe extern "C" fn read(
    device: *mut c_void,
    statistics: *mut MemoryStatistics,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            // SAFETY: the pointer is NULL, or points to a struct that begins with its size.
            let more = statistics.as_ref().is_some_and(|place| place.size > COUNTS);
            let (free, total) = if more { device.allocator.device_memory() } else { (0, 0) };
            let counts = device.allocator.statistics();
            let found = MemoryStatistics {
                size: size_of::<MemoryStatistics>() as u32,
                flags: 0,
                active: counts.active,
                peak: counts.peak,
                cache: counts.cache,
                total,
                free,
            };
            match write_sized(statistics, &found) {
                true => Ok(()),
                false => Err(Failure::invalid("the pointer to the statistics is NULL")),
            }
        })
    }
}

fn limit_of(device: &Device, which: u32) -> Option<u64> {
    let (memory, cache) = device.allocator.limits();
    let all = device.properties.memory;
    match which {
        limit::MEMORY => Some(memory.min(all)),
        limit::CACHE => Some(cache.min(all)),
        limit::WIRED => Some(device.staging.limit()),
        _ => None,
    }
}

unsafe extern "C" fn set_limit(
    device: *mut c_void,
    which: u32,
    bytes: u64,
    former: *mut u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let was = limit_of(device, which).ok_or_else(|| {
                Failure::unsupported(format!("this backend does not know limit {which}"))
            })?;
            match which {
                limit::MEMORY => device.allocator.set_memory_limit(bytes),
                limit::CACHE => device.allocator.set_cache_limit(bytes),
                _ => drop(device.staging.set_limit(bytes)),
            }
            if !former.is_null() {
                *former = was;
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn get_limit(device: *mut c_void, which: u32) -> u64 {
    // SAFETY: guaranteed by the contract.
    let (host, found) = unsafe { (host_of::<Device>(device), device_of::<Device>(device)) };
    let Some(device) = found else { return 0 };
    guard_value(host.as_ref(), 0, || limit_of(device, which).unwrap_or(0))
}

unsafe extern "C" fn reset_peak(device: *mut c_void) {
    // SAFETY: guaranteed by the contract.
    let (host, found) = unsafe { (host_of::<Device>(device), device_of::<Device>(device)) };
    let Some(device) = found else { return };
    guard_value(host.as_ref(), (), || device.allocator.reset_peak());
}

unsafe extern "C" fn clear_cache(device: *mut c_void) {
    // SAFETY: guaranteed by the contract.
    let (host, found) = unsafe { (host_of::<Device>(device), device_of::<Device>(device)) };
    let Some(device) = found else { return };
    guard_value(host.as_ref(), (), || device.allocator.clear_cache());
}
