//! Memory of devices: counts and limits, for one device or for all.
//!
//! Without a device, counts are summed over the accelerators; on a machine without accelerators
//! they are the CPU's. A limit can be set without a device if one backend serves all accelerators.
//! If a backend has its own counts and limits, those are used; otherwise the host's are.

use crate::backend::{self, DeviceState, Limit, buffer::limit_host_mirrors};
use crate::error::{Error, Result};
use crate::{device::Device, memory::alloc};

/// The devices that a call without a device means.
enum Whom {
    Cpu,
    Gpus(Vec<&'static DeviceState>),
}

impl Whom {
    fn of(device: Option<Device>) -> Result<Whom> {
        let gpus = match device {
            Some(device) => vec![super::get(device)?],
            None => backend::gpus().to_vec(),
        };
        Ok(if gpus.iter().all(|d| d.is_host()) { Whom::Cpu } else { Whom::Gpus(gpus) })
    }

    fn sum(
        device: Option<Device>,
        cpu: fn() -> usize,
        gpu: fn(&DeviceState) -> Result<usize>,
    ) -> Result<usize> {
        match Whom::of(device)? {
            Whom::Cpu => Ok(cpu()),
            Whom::Gpus(all) => all.iter().try_fold(0usize, |n, d| Ok(n.saturating_add(gpu(d)?))),
        }
    }
}

/// Returns the bytes of existing arrays. Without a device, returns the sum over the accelerators
/// or, on a machine without accelerators, the CPU's bytes.
///
/// # Errors
/// [`Error::Value`] if no loaded backend has the device; the backend's own errors.
pub fn active_on(device: Option<Device>) -> Result<usize> {
    Whom::sum(device, alloc::active, |d| Ok(d.memory()?.active))
}

/// Returns the peak of the bytes of arrays since the start or the last [`reset_peak_on`].
///
/// # Errors
/// As [`active_on`].
pub fn peak_on(device: Option<Device>) -> Result<usize> {
    Whom::sum(device, alloc::peak, |d| Ok(d.memory()?.peak))
}

/// Returns the bytes that are kept for reuse.
///
/// # Errors
/// As [`active_on`].
pub fn cached_on(device: Option<Device>) -> Result<usize> {
    Whom::sum(device, alloc::cached, |d| Ok(d.memory()?.cache))
}

/// Resets the peak of [`peak_on`]. Without a device, on all devices.
///
/// # Errors
/// As [`active_on`].
pub fn reset_peak_on(device: Option<Device>) -> Result<()> {
    everywhere(device, alloc::reset_peak, DeviceState::reset_peak)
}

/// Returns the memory that is kept for reuse to the system. Without a device, on all devices. On
/// the CPU, this includes the copies that reads of other devices' arrays left in host memory.
///
/// # Errors
/// As [`active_on`].
pub fn clear_cache_on(device: Option<Device>) -> Result<()> {
    everywhere(device, clear_cache, DeviceState::clear_cache)
}

/// Returns the memory that the host keeps for reuse to the system: free blocks, and copies of other
/// devices' arrays.
pub fn clear_cache() {
    limit_host_mirrors(0);
    alloc::clear_cache();
}

/// Sets the most bytes that the host keeps for reuse, and returns the former limit. Copies of
/// arrays of other devices may take as many bytes in addition.
pub fn set_cache_limit(bytes: usize) -> usize {
    let former = alloc::set_cache_limit(bytes);
    limit_host_mirrors(alloc::cache_limit());
    former
}

fn everywhere(device: Option<Device>, cpu: fn(), gpu: fn(&DeviceState)) -> Result<()> {
    if device.is_none() {
        cpu();
    }
    match Whom::of(device)? {
        Whom::Cpu => cpu(),
        Whom::Gpus(all) => all.iter().for_each(|d| gpu(d)),
    }
    Ok(())
}

/// Returns the limit on the bytes of arrays and cache; see [`set_memory_limit_on`]. Without a
/// device, returns the sum over the backends.
///
/// # Errors
/// As [`active_on`].
pub fn memory_limit_on(device: Option<Device>) -> Result<usize> {
    match Whom::of(device)? {
        Whom::Cpu => Ok(alloc::memory_limit()),
        Whom::Gpus(all) => Ok(backends_of(&all).iter().fold(0usize, |sum, name| {
            let own = all.iter().filter(|d| d.backend == **name);
            sum.saturating_add(own.map(|d| d.limit(Limit::Memory)).max().unwrap_or(0))
        })),
    }
}

/// Sets the most bytes that arrays and cache should take, and returns the former limit. On a device
/// the limit is firm: a request beyond it waits for work in flight and drops mirrors. If that does
/// not suffice, the request fails with [`Error::Memory`].
///
/// # Errors
/// [`Error::Value`] without a device if several backends have accelerators; otherwise those of
/// [`active_on`].
pub fn set_memory_limit_on(bytes: usize, device: Option<Device>) -> Result<usize> {
    set("set_memory_limit", bytes, device, Limit::Memory, alloc::set_memory_limit)
}

/// Sets the limit on the bytes that are kept for reuse, and returns the former limit. The CPU's
/// limit also applies to the copies that reads of other devices' arrays leave in host memory.
///
/// # Errors
/// As [`set_memory_limit_on`].
pub fn set_cache_limit_on(bytes: usize, device: Option<Device>) -> Result<usize> {
    set("set_cache_limit", bytes, device, Limit::Cache, set_cache_limit)
}

/// Sets the limit on pinned bytes, and returns the former limit. The CPU's memory is never pinned,
/// so its limit is 0 and has no effect.
///
/// # Errors
/// As [`set_memory_limit_on`].
pub fn set_wired_limit_on(bytes: usize, device: Option<Device>) -> Result<usize> {
    set("set_wired_limit", bytes, device, Limit::Wired, |_| 0)
}

fn set(
    name: &str,
    bytes: usize,
    device: Option<Device>,
    which: Limit,
    cpu: fn(usize) -> usize,
) -> Result<usize> {
    let all = match Whom::of(device)? {
        Whom::Cpu => return Ok(cpu(bytes)),
        Whom::Gpus(all) => all,
    };
    let names = backends_of(&all);
    if names.len() > 1 {
        return Err(Error::value(
            name,
            format!(
                "Several backends have devices ({}). Name one: {name}(limit, device).",
                names.join(", ")
            ),
        ));
    }
    let former: Vec<usize> =
        all.iter().map(|d| d.set_limit(which, bytes)).collect::<Result<_>>()?;
    Ok(former.into_iter().max().unwrap_or(0))
}

fn backends_of<'a>(all: &[&'a DeviceState]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for device in all {
        if !names.contains(&&*device.backend) {
            names.push(&device.backend);
        }
    }
    names
}
