//! Device memory, kept for reuse. The `pool` splits the driver's blocks into pieces and joins them.
//!
//! The host frees a buffer when no stream uses it any more, or in the order of the only stream that
//! still does. Kept memory is returned to the driver when a limit or a lack of memory requires it.
//!
//! `ULTRAMARINE_CUDA_MEMORY_CACHE=0` makes every buffer a separate allocation of the driver, for tools
//! that watch the driver's allocations.

use super::pool::{Counts, Pool, block_for, rounded};
use super::{Buffer, PieceId, StreamId};
use crate::context::failure;
use crate::context::{Context, DeviceProperties, lock};
use crate::sys::driver::{EventHandle, StreamHandle, code};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// Alignment in bytes of every buffer.
pub const ALIGNMENT: u64 = 256;

/// Value of a limit that was not set.
pub const UNLIMITED: u64 = u64::MAX;

/// The memory of one device. Buffers are pieces of larger blocks, which the pool (`pool.rs`) splits and
/// joins; the driver is called only for blocks.
pub struct Allocator {
    context: Arc<Context>,
    device: String,
    /// True if buffers are pieces of blocks.
    caching: bool,
    state: Mutex<State>,
}

struct State {
    pool: Pool,
    /// Counts of driver allocations that each hold one buffer.
    single: Counts,
    memory_limit: u64,
    cache_limit: u64,
    /// Streams in whose order memory may be freed.
    streams: BTreeMap<StreamId, Tail>,
    next_stream: StreamId,
    stamp: u64,
}

/// A stream's known progress.
struct Tail {
    handle: StreamHandle,
    /// The stamp of the last piece that was freed in its order.
    freed: u64,
    /// An event, recorded in the stream after the work that used pieces with this stamp or a lower
    /// one.
    mark: Option<(EventHandle, u64)>,
    /// The stream has completed all work up to this stamp.
    completed: u64,
}

// SAFETY: the driver's streams and events may be used from any thread.
unsafe impl Send for State {}

/// Counts of bytes.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // they are what they are called
pub struct MemoryCounts {
    pub active: u64,
    pub peak: u64,
    pub cache: u64,
}

impl Allocator {
    /// The memory of a device.
    pub fn new(context: Arc<Context>, properties: &DeviceProperties) -> Self {
        let caching =
            !std::env::var("ULTRAMARINE_CUDA_MEMORY_CACHE").is_ok_and(|value| value.trim() == "0");
        let state = State {
            pool: Pool::default(),
            single: Counts::default(),
            memory_limit: UNLIMITED,
            cache_limit: UNLIMITED,
            streams: BTreeMap::new(),
            next_stream: 1,
            stamp: 0,
        };
        Self { context, device: properties.name.clone(), caching, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Allocates a buffer of at least that many bytes.
    pub fn alloc(this: &Arc<Self>, bytes: u64) -> Result<Buffer> {
        this.alloc_for(0, bytes)
    }

    /// A buffer for work of one stream, which may reuse memory that was freed in the stream's
    /// order.
    pub fn alloc_for(self: &Arc<Self>, stream: StreamId, bytes: u64) -> Result<Buffer> {
        self.context.usable()?;
        let mut state = self.lock();
        let Some(size) = rounded(bytes) else { return Err(self.refusal(&state, bytes, None)) };
        let active = state.pool.counts().active + state.single.active;
        if active.checked_add(size).is_none_or(|sum| sum > state.memory_limit) {
            return Err(self.refusal(&state, bytes, None));
        }
        if !self.caching {
            let address = self.take(&mut state, size, &[size])?.0;
            state.single.active += size;
            state.single.held += size;
            state.note_peak();
            return Ok(Buffer::single(address, bytes, self.clone()));
        }
        if let Some((piece, address)) = state.pool.take(size, stream) {
            state.note_peak();
            return Ok(Buffer::pooled(address, bytes, piece, self.clone()));
        }
        let _entered = self.context.enter()?;
        if !(self.harvest(&mut state) && state.pool.has_room(size, stream)) {
            let (best, least) = block_for(size).ok_or_else(|| self.refusal(&state, bytes, None))?;
            let (address, block) = match best == least {
                true => self.take(&mut state, bytes, &[best])?,
                false => self.take(&mut state, bytes, &[best, least])?,
            };
            state.pool.grow(address, block, size);
        }
        let (piece, address) =
            state.pool.take(size, stream).ok_or_else(|| Failure::out_of_memory(bytes))?;
        state.note_peak();
        Ok(Buffer::pooled(address, bytes, piece, self.clone()))
    }

    /// Allocates memory from the driver: the first of `sizes` that is available. Cached memory is
    /// freed as the limits and the driver require. Returns the address and the size.
    fn take(&self, state: &mut State, bytes: u64, sizes: &[u64]) -> Result<(u64, u64)> {
        let _entered = self.context.enter()?;
        // Frees cached memory so that the total stays below the limit.
        let first = sizes.first().copied().unwrap_or(bytes);
        let held = state.pool.counts().held + state.single.held;
        let beyond = held.saturating_add(first).saturating_sub(state.memory_limit);
        if beyond > 0 {
            self.release(state, beyond);
        }
        let mut said = None;
        for attempt in 0..2 {
            if attempt == 1 {
                // Waits for pending frees, frees all cached memory, and tries again.
                self.harvest(state);
                self.release(state, u64::MAX);
            }
            for &size in sizes {
                match self.call_driver(size) {
                    Ok(address) => return Ok((address, size)),
                    Err(failure) if failure.code == status::OUT_OF_MEMORY => said = Some(failure),
                    Err(failure) => return Err(failure),
                }
            }
        }
        Err(self.refusal(state, bytes, said))
    }

    fn call_driver(&self, bytes: u64) -> Result<u64> {
        let driver = self.context.driver();
        let size = usize::try_from(bytes).map_err(|_| Failure::out_of_memory(bytes))?;
        let mut address = 0;
        // SAFETY: the output pointer is valid; the context is current.
        let result = unsafe { (driver.memory_alloc)(&mut address, size) };
        failure::check(driver, "cuMemAlloc", result)?;
        Ok(address)
    }

    /// Returns blocks with a total of `want` bytes to the driver, if there are any. The context is
    /// current.
    fn release(&self, state: &mut State, want: u64) {
        for address in state.pool.release(want) {
            // SAFETY: allocated once, freed once; all its pieces are free.
            unsafe { (self.context.driver().memory_free)(address) };
        }
    }

    /// Finds streams that have completed the work before their last stream-ordered frees; returns
    /// whether there were any. The context is current.
    fn harvest(&self, state: &mut State) -> bool {
        let driver = self.context.driver();
        let mut any = false;
        let State { streams, pool, .. } = state;
        for (id, tail) in streams.iter_mut().filter(|(_, t)| t.freed > t.completed) {
            // SAFETY: a stream of this context.
            if unsafe { (driver.stream_query)(tail.handle) } == code::SUCCESS {
                pool.completed(*id, tail.freed);
                tail.completed = tail.freed;
                if let Some((event, _)) = tail.mark.take() {
                    self.context.give_event(event);
                }
                any = true;
                continue;
            }
            if tail.mark.is_none()
                && let Ok(event) = self.context.take_event()
            {
                // SAFETY: both are of this context.
                match unsafe { (driver.event_record)(event, tail.handle) } {
                    code::SUCCESS => tail.mark = Some((event, tail.freed)),
                    _ => self.context.give_event(event),
                }
            }
            let Some((event, stamp)) = tail.mark else { continue };
            // SAFETY: an event of this context.
            if unsafe { (driver.event_query)(event) } == code::SUCCESS {
                self.context.give_event(event);
                pool.completed(*id, stamp);
                (tail.mark, tail.completed) = (None, tail.completed.max(stamp));
                any = true;
            }
        }
        any
    }

    /// Frees a buffer's memory, for all streams or in the order of one.
    pub(super) fn give(&self, piece: PieceId, owner: StreamId) {
        let mut state = self.lock();
        let mut stamp = 0;
        if owner != 0 {
            state.stamp += 1;
            stamp = state.stamp;
            match state.streams.get_mut(&owner) {
                Some(tail) => tail.freed = stamp,
                // The stream was destroyed after it had drained.
                None => return state.pool.give(piece, 0, 0),
            }
        }
        state.pool.give(piece, owner, stamp);
        let kept = state.pool.counts().kept;
        if kept > state.cache_limit
            && let Ok(_entered) = self.context.enter()
        {
            if state.pool.has_stamped() {
                self.harvest(&mut state);
            }
            let beyond = kept - state.cache_limit;
            self.release(&mut state, beyond);
        }
    }

    /// Frees a driver allocation that held one buffer.
    pub(super) fn give_single(&self, address: u64, bytes: u64) {
        let size = rounded(bytes).unwrap_or(bytes);
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: allocated once, freed once; the host guarantees that no stream uses it.
            unsafe { (self.context.driver().memory_free)(address) };
        }
        let mut state = self.lock();
        state.single.active = state.single.active.saturating_sub(size);
        state.single.held = state.single.held.saturating_sub(size);
    }

    /// Registers a stream in whose order memory may be freed.
    pub fn stream_begins(&self, handle: StreamHandle) -> StreamId {
        let mut state = self.lock();
        let id = state.next_stream;
        state.next_stream = id.wrapping_add(1).max(1);
        state.streams.insert(id, Tail { handle, freed: 0, mark: None, completed: 0 });
        id
    }

    /// Unregisters a stream that has drained and is about to be destroyed.
    pub fn stream_ends(&self, id: StreamId) {
        let mut state = self.lock();
        if let Some(tail) = state.streams.remove(&id) {
            state.pool.completed(id, u64::MAX);
            if let Some((event, _)) = tail.mark {
                self.context.give_event(event);
            }
        }
    }

    /// The error for a failed allocation, with remedies.
    #[cold]
    fn refusal(&self, state: &State, bytes: u64, driver: Option<Failure>) -> Failure {
        let counts = state.pool.counts();
        let (active, held) = (counts.active + state.single.active, counts.held + state.single.held);
        let (free, total) = self.device_memory();
        let asked = format!("no memory for {} on {}", show(bytes), self.device);
        let own = format!(
            "{} are in use by arrays, {} more are held for reuse",
            show(active),
            show(held - active.min(held))
        );
        let text = if bytes > total && total > 0 {
            format!("{asked}: the device has {} in all", show(total))
        } else if driver.is_some() {
            let others = total.saturating_sub(free).saturating_sub(held);
            format!(
                "{asked}: {own}; {} of its {} are free, {} are taken by other programs, libraries \
                 and kernels. Drop arrays, work on smaller pieces or in a smaller dtype, or end \
                 other programs on the device",
                show(free),
                show(total),
                show(others)
            )
        } else {
            format!(
                "{asked}: {own}, and the limit is {}. Raise it by set_memory_limit, or drop arrays",
                show(state.memory_limit)
            )
        };
        Failure { code: status::OUT_OF_MEMORY, text }
    }

    /// Free bytes and total bytes of the device; 0 if the driver does not report them. The query is
    /// slow.
    pub fn device_memory(&self) -> (u64, u64) {
        let (mut free, mut total) = (0usize, 0usize);
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the output pointers are valid; the context is current.
            unsafe { (self.context.driver().memory_info)(&mut free, &mut total) };
        }
        (free as u64, total as u64)
    }

    /// Returns the bytes in use and kept for reuse.
    pub fn statistics(&self) -> MemoryCounts {
        let state = self.lock();
        let counts = state.pool.counts();
        MemoryCounts {
            active: counts.active + state.single.active,
            peak: state.single.peak,
            cache: counts.kept,
        }
    }

    /// Resets the peak.
    pub fn reset_peak(&self) {
        let mut state = self.lock();
        state.single.peak = 0;
        state.note_peak();
    }

    /// Returns cached memory to the driver.
    pub fn clear_cache(&self) {
        self.spare();
        self.lock().pool.forget_kept();
    }

    /// Returns unused memory to the driver, so that other allocations can have it; returns whether
    /// there was any.
    pub fn spare(&self) -> bool {
        let Ok(_entered) = self.context.enter() else { return false };
        let mut state = self.lock();
        let before = state.pool.counts().held;
        self.harvest(&mut state);
        self.release(&mut state, u64::MAX);
        state.pool.counts().held < before
    }

    /// Maximum number of bytes in buffers, and of bytes kept for reuse.
    pub fn limits(&self) -> (u64, u64) {
        let state = self.lock();
        (state.memory_limit, state.cache_limit)
    }

    /// Sets the maximum number of bytes for buffers and cached memory together.
    pub fn set_memory_limit(&self, bytes: u64) {
        let mut state = self.lock();
        state.memory_limit = bytes;
        let beyond = state.pool.counts().held.saturating_sub(bytes);
        if beyond > 0
            && let Ok(_entered) = self.context.enter()
        {
            self.release(&mut state, beyond);
        }
    }

    /// Sets the limit on the bytes kept for reuse.
    pub fn set_cache_limit(&self, bytes: u64) {
        let mut state = self.lock();
        state.cache_limit = bytes;
        let beyond = state.pool.counts().kept.saturating_sub(bytes);
        if beyond > 0
            && let Ok(_entered) = self.context.enter()
        {
            self.harvest(&mut state);
            self.release(&mut state, beyond);
        }
    }
}

impl State {
    fn note_peak(&mut self) {
        let active = self.pool.counts().active + self.single.active;
        self.single.peak = self.single.peak.max(active);
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else { return };
        let mut state = lock(&self.state);
        self.release(&mut state, u64::MAX);
    }
}

/// A number of bytes in readable form.
fn show(bytes: u64) -> String {
    match bytes {
        0..=9999 => format!("{bytes} bytes"),
        10_000..0xa00_0000 => format!("{:.1} MiB", bytes as f64 / (1u64 << 20) as f64),
        _ => format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64),
    }
}
