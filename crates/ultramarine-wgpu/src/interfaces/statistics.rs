//! `ultramarine.statistics/1`: memory statistics and limits, from [`crate::memory::Allocator`]. The limit of wired
//! memory is the limit for uploads in flight.

use crate::hal;
use crate::launch::Device;
use core::ffi::c_void;
use ultramarine_abi::helper::{Failure, device_of, guard_value, host_of, with_device};
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

// The functions below implement the interface. Their safety follows from the contract: devices are those that the backend
// returned, and output pointers are NULL or writable.

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
            let properties = &device.context.properties;
            let free = (more && properties.budget)
                .then(|| hal::free_memory(&device.context.device))
                .flatten();
            let counts = device.allocator.counts();
            let found = MemoryStatistics {
                size: size_of::<MemoryStatistics>() as u32,
                flags: 0,
                active: counts.active,
                peak: counts.peak,
                cache: counts.cache,
                total: properties.memory,
                free: free.unwrap_or(0),
            };
            match write_sized(statistics, &found) {
                true => Ok(()),
                false => Err(Failure::invalid("the pointer to the statistics is NULL")),
            }
        })
    }
}

fn limit_of(device: &Device, which: u32) -> Option<u64> {
    let (limits, all) = (device.allocator.limits(), device.context.properties.memory);
    match which {
        limit::MEMORY => Some(limits.memory.min(all)),
        limit::CACHE => Some(limits.cache.min(all)),
        limit::WIRED => Some(device.scheduler.staging_limit()),
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
                limit::MEMORY => device.allocator.set_limits(|limits| limits.memory = bytes),
                limit::CACHE => device.allocator.set_limits(|limits| limits.cache = bytes),
                _ => device.scheduler.set_staging_limit(bytes),
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
    guard_value(host.as_ref(), (), || {
        if !device.context.forked() {
            device.allocator.clear_cache();
        }
    });
}
