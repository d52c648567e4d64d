//! The buffers of a device: their counts and limits, and the freed buffers that are kept for reuse, by size. Drivers
//! take long to make buffers, and operating systems take long to map them.
//!
//! A buffer can be reused as soon as it is freed, even while the queue still uses it: the next use is enqueued after
//! that work. The only exception is work that stays on the host because its stream waits.
//!
//! If a command writes to a buffer that another command uses, it waits at a barrier, which on GPUs takes as long as a
//! small kernel. Independent commands should not be ordered only because one reuses memory that the other freed. So
//! buffers that no command has used since the last barrier are taken first, and a few more buffers of each size are kept
//! for this purpose.

use super::Block;
use crate::context::{Context, lock};
use crate::hal::{self, Place};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// Sizes are rounded up to a multiple of this, so that kernels may read whole vectors; the largest have 4 elements of
/// 8 bytes. If a vector is partly outside the buffer, the driver's bounds check discards all of it.
const GRANULE: u64 = 32;
/// Number of size classes between powers of two, so that similar sizes share buffers.
const STEPS: u64 = 8;
/// The fraction of the device's memory that is kept for reuse, until a limit is set: one part in
/// this number.
const KEPT: u64 = 4;
/// Number of free buffers of a size (for small buffers, and for others) below which another buffer is made if commands have
/// used all of them since the last barrier.
const SPARE: [usize; 2] = [16, 4];
/// Maximum size of a small buffer, in bytes.
const SMALL: u64 = 1 << 20;
/// The fraction of the device's memory that may be kept for such spare buffers: one part in this
/// number.
const SPARED: u64 = 64;

/// Bytes of a device's buffers, as `ultramarine.statistics/1` reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of buffers that exist.
    pub active: u64,
    /// The peak of `active` since the last reset.
    pub peak: u64,
    /// Bytes kept for reuse.
    pub cache: u64,
}

/// The maximum bytes of a device's buffers, as the host sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limit for buffers that exist.
    pub memory: u64,
    /// Limit for memory that is kept for reuse.
    pub cache: u64,
}

struct State {
    free: BTreeMap<u64, Vec<Arc<Block>>>,
    counts: Counts,
    limits: Limits,
}

/// The buffers of a device: their counts and limits, and freed buffers that are kept by size.
pub struct Allocator {
    context: Arc<Context>,
    state: Mutex<State>,
}

/// A buffer of the host: a [`Block`], and the [`Allocator`] to which it returns.
pub struct Buffer(pub Arc<Block>, Arc<Allocator>);

impl Allocator {
    /// The allocator of a device.
    pub fn new(context: Arc<Context>) -> Self {
        let cache = context.properties.memory / KEPT;
        let limits = Limits { memory: u64::MAX, cache };
        let state = State { free: BTreeMap::new(), counts: Counts::default(), limits };
        Self { context, state: Mutex::new(state) }
    }

    /// Allocates at least the given number of bytes.
    pub fn alloc(self: &Arc<Self>, bytes: u64) -> Result<Buffer> {
        self.context.usable()?;
        let most = self.context.properties.max_buffer;
        let Some(size) = size_for(bytes, most) else {
            return Err(out_of_memory(format!(
                "a buffer of {bytes} bytes is larger than {} can bind, {most} bytes ({}). \
                 Use smaller arrays, or split this one",
                self.context.properties.name,
                hal::LIMIT
            )));
        };
        let mut state = lock(&self.state);
        let limit = state.limits.memory;
        if state.counts.active.saturating_add(size) > limit {
            return Err(out_of_memory(format!(
                "a buffer of {bytes} bytes beside {} in use is above the memory limit of {limit} bytes. Free arrays, \
                 or raise the limit",
                state.counts.active
            )));
        }
        let properties = &self.context.properties;
        let spare = properties.memory / SPARED * u64::from(properties.gpu_kernels);
        let (found, mut given_up) = (state.take(size, spare), BTreeMap::new());
        if found.is_none() && state.counts.active + state.counts.cache + size > limit {
            given_up = state.drain();
        }
        state.counts.active += size;
        drop(state);
        drop(given_up);
        let made = found.map_or_else(|| Block::new(&self.context, size, Place::Device), Ok);
        let mut state = lock(&self.state);
        match made {
            Ok(block) => {
                state.counts.peak = state.counts.peak.max(state.counts.active);
                Ok(Buffer(block, self.clone()))
            }
            Err(failure) => {
                state.counts.active -= size;
                Err(failure)
            }
        }
    }

    /// Imports a foreign buffer, which is not counted.
    #[cfg(target_vendor = "apple")]
    pub fn adopt(
        self: &Arc<Self>,
        made: crate::hal::Made,
        bytes: u64,
        owner: crate::hal::foreign::Owner,
    ) -> Buffer {
        Buffer(Block::foreign(&self.context, made, bytes, owner), self.clone())
    }

    fn give_back(&self, block: &Arc<Block>) {
        if block.is_foreign() {
            return;
        }
        let size = block.bytes();
        let mut state = lock(&self.state);
        state.counts.active -= size;
        // Work that waits on the host may use the block, and would run after the block's next use.
        let held = Arc::strong_count(block) > 1 && self.context.holds_work();
        if held || size > state.limits.cache {
            return;
        }
        let given_up = match state.counts.cache + size > state.limits.cache {
            true => state.drain(),
            false => BTreeMap::new(),
        };
        state.counts.cache += size;
        state.free.entry(size).or_default().push(block.clone());
        drop(state);
        drop(given_up);
    }

    /// Counts of memory.
    pub fn counts(&self) -> Counts {
        lock(&self.state).counts
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        lock(&self.state).limits
    }

    /// Sets the limits. Cached memory above them is freed.
    pub fn set_limits(&self, change: impl FnOnce(&mut Limits)) {
        let mut state = lock(&self.state);
        change(&mut state.limits);
        let Counts { active, cache, .. } = state.counts;
        let given_up = match cache > state.limits.cache
            || active.saturating_add(cache) > state.limits.memory
        {
            true => state.drain(),
            false => BTreeMap::new(),
        };
        drop(state);
        drop(given_up);
    }

    /// Resets the peak.
    pub fn reset_peak(&self) {
        let mut state = lock(&self.state);
        state.counts.peak = state.counts.active;
    }

    /// Frees cached memory.
    pub fn clear_cache(&self) {
        let given_up = lock(&self.state).drain();
        drop(given_up);
    }
}

impl State {
    /// Takes a free buffer: the most recently freed one among those that need no barrier. If all of them need a barrier,
    /// takes the oldest one. If there are only a few and at most `spare` bytes are cached, takes none, so that another
    /// buffer is made.
    fn take(&mut self, size: u64, spare: u64) -> Option<Arc<Block>> {
        let free = self.free.get_mut(&size)?;
        let most = SPARE[usize::from(size > SMALL)];
        let first = free.len().saturating_sub(most);
        let cold = || free[first..].iter().rposition(|block| !block.is_hot());
        let at = match spare {
            0 => free.len().checked_sub(1)?,
            _ => match cold() {
                Some(at) => first + at,
                None => {
                    let Counts { active, cache, .. } = self.counts;
                    let room = active.saturating_add(cache + size) <= self.limits.memory
                        && cache + size <= spare.min(self.limits.cache);
                    if first == 0 && free.len() < most && room {
                        return None;
                    }
                    first
                }
            },
        };
        let found = (at < free.len()).then(|| free.remove(at))?;
        self.counts.cache -= size;
        Some(found)
    }

    /// Takes all cached buffers. They are dropped outside of the lock.
    fn drain(&mut self) -> BTreeMap<u64, Vec<Arc<Block>>> {
        self.counts.cache = 0;
        core::mem::take(&mut self.free)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // In a forked child, another thread of the parent may hold the lock forever.
        if !self.1.context.forked() {
            self.1.give_back(&self.0);
        }
    }
}

fn out_of_memory(text: String) -> Failure {
    Failure { code: status::OUT_OF_MEMORY, text }
}

/// The size of a buffer for a number of bytes, if it is not above `most`.
fn size_for(bytes: u64, most: u64) -> Option<u64> {
    let least = bytes.max(1).checked_next_multiple_of(GRANULE).filter(|size| *size <= most)?;
    let step = (least.next_power_of_two() / 2 / STEPS).max(GRANULE);
    Some(least.next_multiple_of(step).min(most / GRANULE * GRANULE))
}

#[cfg(test)]
mod tests {
    use super::size_for;
    use crate::shader::vector::FOUR;

    #[test]
    fn sizes_come_in_steps() {
        assert_eq!([0, 1, 32, 33].map(|n| size_for(n, 1 << 20)), [32, 32, 32, 64].map(Some));
        assert_eq!(size_for(1 << 20, 1 << 20), Some(1 << 20));
        assert_eq!(size_for((1 << 20) + 1, 1 << 21), Some((1 << 20) + (1 << 17)));
        assert_eq!(size_for((1 << 20) + 1, 1 << 20), None);
        // Rounding must not exceed the limit.
        assert_eq!(size_for(1_000_000, 1_000_010), Some(1_000_000));
    }

    #[test]
    fn buffers_end_with_a_whole_vector() {
        for dtype in crate::dtype::ALL {
            let vector = FOUR as u64 * dtype.bytes();
            let sizes = (1..100).map(|n| size_for(n * dtype.bytes(), 1 << 20));
            assert!(sizes.flatten().all(|size| size % vector == 0), "{dtype:?}");
        }
    }
}
