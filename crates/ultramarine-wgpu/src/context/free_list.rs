//! Buffers that are free, by size: drivers take long to make new ones, and operating systems to map them.

use super::lock;
use crate::vulkan;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Sizes are rounded up to a multiple, so that kernels may read whole words.
const GRANULE: u64 = 16;
/// Steps between powers of two, so that sizes that are nearly the same share buffers.
const STEPS: u64 = 8;

/// Free buffers of a device.
#[derive(Default)]
pub struct FreeList {
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    by_size: BTreeMap<u64, Vec<vulkan::Buffer>>,
    bytes: u64,
}

impl FreeList {
    /// Takes out a buffer of exactly that size.
    pub fn take(&self, size: u64) -> Option<vulkan::Buffer> {
        let mut free = lock(&self.free);
        let found = free.by_size.get_mut(&size)?.pop()?;
        free.bytes -= size;
        Some(found)
    }

    /// Keeps a buffer; returns it if there would be more bytes than `most`.
    pub fn put(&self, buffer: vulkan::Buffer, size: u64, most: u64) -> Option<vulkan::Buffer> {
        let mut free = lock(&self.free);
        if free.bytes + size > most {
            return Some(buffer);
        }
        free.bytes += size;
        free.by_size.entry(size).or_default().push(buffer);
        None
    }

    /// Takes out all of them.
    pub fn drain(&self) -> Vec<vulkan::Buffer> {
        let free = core::mem::take(&mut *lock(&self.free));
        free.by_size.into_values().flatten().collect()
    }
}

/// The size of a buffer for so many bytes, if it is not above `most`.
pub fn size_for(bytes: u64, most: u64) -> Option<u64> {
    let least = bytes.max(1).checked_next_multiple_of(GRANULE).filter(|size| *size <= most)?;
    let step = (least.next_power_of_two() / 2 / STEPS).max(GRANULE);
    Some(least.next_multiple_of(step).min(most / GRANULE * GRANULE))
}

#[cfg(test)]
mod tests {
    use super::size_for;

    #[test]
    fn sizes_come_in_steps() {
        assert_eq!([0, 1, 16, 17].map(|n| size_for(n, 1 << 20)), [16, 16, 16, 32].map(Some));
        assert_eq!(size_for(1 << 20, 1 << 20), Some(1 << 20));
        assert_eq!(size_for((1 << 20) + 1, 1 << 21), Some((1 << 20) + (1 << 17)));
        assert_eq!(size_for((1 << 20) + 1, 1 << 20), None);
        // Not above the limit for the step's sake.
        assert_eq!(size_for(1_000_000, 1_000_010), Some(1_000_000));
    }
}
