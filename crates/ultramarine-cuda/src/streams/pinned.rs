//! Pinned memory in pieces of a few sizes, allocated from the driver at first use.
//!
//! A copy takes a piece, and gives it back with an event recorded after the copy. The piece can be
//! reused when the event has completed. If no piece is free, a caller waits for one that its own
//! stream used. It never waits for another stream, which may itself wait for something that the
//! caller is about to do.

use super::Stream;
use crate::context::failure::cuda;
use crate::context::{Context, lock};
use crate::memory::StreamId;
use crate::sys::driver::{EventHandle, code};
use core::ffi::c_void;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::Result;

/// Pieces of one size: the bytes of each, how many are allocated at once, and the maximum number.
struct Size {
    bytes: usize,
    together: usize,
    most: usize,
}

const SIZES: [Size; 3] = [
    Size { bytes: 4 << 10, together: 256, most: 256 },
    Size { bytes: 64 << 10, together: 16, most: 64 },
    // The host reads files through four of these at a time.
    Size { bytes: 4 << 20, together: 2, most: 6 },
];

/// Bytes of the largest piece.
pub const LARGEST: usize = SIZES[SIZES.len() - 1].bytes;

/// Bytes of all pieces together.
pub const ALL: u64 = {
    let (mut sum, mut i) = (0, 0);
    while i < SIZES.len() {
        sum += SIZES[i].bytes * SIZES[i].most;
        i += 1;
    }
    sum as u64
};

/// `CU_MEMHOSTALLOC_PORTABLE`.
const PORTABLE: u32 = 1;

/// Pinned memory for the exclusive use of one copy.
pub struct Piece {
    memory: *mut u8,
    /// Index in [`SIZES`].
    size: usize,
    /// Recorded after its last use.
    event: EventHandle,
    /// The stream of the last use; 0 if that use is known to have completed.
    last: StreamId,
}

// SAFETY: pinned memory and events may be used from any thread; a piece has one owner.
unsafe impl Send for Piece {}

impl Piece {
    /// Address of its first byte.
    pub fn memory(&self) -> *mut u8 {
        self.memory
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        SIZES[self.size].bytes
    }
}

/// Memory of one driver allocation.
struct Chunk {
    memory: *mut c_void,
    /// Number of pieces that were cut from it so far.
    pieces: usize,
}

impl Chunk {
    fn holds(&self, piece: &Piece) -> bool {
        let bytes = SIZES[piece.size].bytes * SIZES[piece.size].together;
        (piece.memory as usize).wrapping_sub(self.memory as usize) < bytes
    }
}

#[derive(Default)]
struct Shelf {
    chunks: Vec<Chunk>,
    /// Unused pieces; the one that was given back first is in front.
    idle: VecDeque<Piece>,
}

#[derive(Default)]
struct State {
    shelves: [Shelf; SIZES.len()],
    /// Bytes of all chunks.
    taken: u64,
    /// True if the driver has refused to allocate more.
    refused: bool,
}

// SAFETY: pinned memory may be used from any thread; it is accessed under the lock.
unsafe impl Send for State {}

/// The pinned memory of one device.
pub struct Pinned {
    context: Arc<Context>,
    limit: AtomicU64,
    state: Mutex<State>,
}

impl Pinned {
    /// Allocates nothing yet.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, limit: AtomicU64::new(ALL), state: Mutex::default() }
    }

    /// Maximum number of bytes to allocate.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of bytes to allocate, and frees unused memory above it; returns the
    /// former limit.
    pub fn set_limit(&self, bytes: u64) -> u64 {
        let former = self.limit.swap(bytes, Ordering::Relaxed);
        lock(&self.state).refused = false;
        self.trim();
        former
    }

    fn completed(&self, piece: &Piece) -> bool {
        // SAFETY: an event of this context.
        piece.last == 0
            || unsafe { (self.context.driver().event_query)(piece.event) } == code::SUCCESS
    }

    /// Takes a piece of `bytes` for a copy in a stream, if there is one. The context is current.
    pub fn take(&self, bytes: usize, stream: &Stream) -> Result<Option<Piece>> {
        let Some(size) = SIZES.iter().position(|size| bytes <= size.bytes) else {
            return Ok(None);
        };
        let mut state = lock(&self.state);
        if let Some(piece) = self.free(&mut state.shelves[size].idle) {
            return Ok(Some(piece));
        }
        if let Some(piece) = self.more(&mut state, size)? {
            return Ok(Some(piece));
        }
        let idle = &mut state.shelves[size].idle;
        let own = idle.iter().position(|piece| piece.last == stream.id());
        let Some(piece) = own.and_then(|at| idle.remove(at)) else { return Ok(None) };
        // The lock is released, so that other threads can continue.
        drop(state);
        match self.wait(&piece) {
            Ok(()) => Ok(Some(piece)),
            Err(failure) => {
                self.give(piece);
                Err(failure)
            }
        }
    }

    /// An idle piece whose last use has completed. A stream completes its pieces in order, so only
    /// its first piece is queried.
    fn free(&self, idle: &mut VecDeque<Piece>) -> Option<Piece> {
        let mut busy = Vec::new();
        for at in 0..idle.len() {
            if busy.contains(&idle[at].last) {
                continue;
            }
            if self.completed(&idle[at]) {
                return idle.remove(at);
            }
            busy.push(idle[at].last);
        }
        None
    }

    /// A piece that was never used, if the limit allows it and the driver has memory.
    fn more(&self, state: &mut State, at: usize) -> Result<Option<Piece>> {
        let Size { bytes, together, most } = SIZES[at];
        let (driver, whole) = (self.context.driver(), (bytes * together) as u64);
        let shelf = &mut state.shelves[at];
        if shelf.chunks.last().is_none_or(|chunk| chunk.pieces == together) {
            let room = shelf.chunks.len() * together < most && state.taken + whole <= self.limit();
            if !room || state.refused {
                return Ok(None);
            }
            let mut memory = std::ptr::null_mut();
            // SAFETY: the output pointer is valid; the context is current.
            if unsafe { (driver.host_alloc)(&mut memory, whole as usize, PORTABLE) }
                != code::SUCCESS
            {
                // The driver's own copies are used instead. The driver is not asked again for each
                // copy.
                state.refused = true;
                return Ok(None);
            }
            state.taken += whole;
            shelf.chunks.push(Chunk { memory, pieces: 0 });
        }
        let Some(chunk) = shelf.chunks.last_mut() else { return Ok(None) };
        let event = self.context.take_event()?;
        let memory = chunk.memory.cast::<u8>().wrapping_add(chunk.pieces * bytes);
        chunk.pieces += 1;
        Ok(Some(Piece { memory, size: at, event, last: 0 }))
    }

    /// Waits for a piece's last use. The context is current.
    pub fn wait(&self, piece: &Piece) -> Result<()> {
        let driver = self.context.driver();
        // SAFETY: an event of this context.
        unsafe { cuda!(driver.event_synchronize(piece.event)) }
    }

    /// Calls `call` to enqueue a copy through the piece, and records an event after it. After a
    /// failure, nothing uses the piece. The context is current.
    pub fn enqueue(
        &self,
        piece: &mut Piece,
        stream: &Stream,
        call: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        let driver = self.context.driver();
        let queued = call(piece.memory.cast()).and_then(|()| {
            // SAFETY: both are of this context, and the piece has one owner.
            unsafe { cuda!(driver.event_record(piece.event, stream.handle())) }
        });
        piece.last = match queued {
            Ok(()) => stream.id(),
            Err(_) => {
                // The copy may have started. If the stream is lost, nothing runs any more.
                let _ = stream.drain();
                0
            }
        };
        queued
    }

    /// Takes a piece back. Its last use may still be running.
    pub fn give(&self, piece: Piece) {
        let mut state = lock(&self.state);
        let over = state.taken > self.limit();
        state.shelves[piece.size].idle.push_back(piece);
        drop(state);
        if over {
            self.trim();
        }
    }

    /// Takes back a piece that nothing uses any more.
    pub fn give_unused(&self, mut piece: Piece) {
        piece.last = 0;
        self.give(piece);
    }

    /// Frees unused memory above the limit, the largest pieces first.
    fn trim(&self) {
        let Ok(_entered) = self.context.enter() else { return };
        let (mut chunks, mut events) = (Vec::new(), Vec::new());
        let mut state = lock(&self.state);
        for (i, size) in SIZES.iter().enumerate().rev() {
            let State { shelves, taken, .. } = &mut *state;
            let Shelf { chunks: all, idle } = &mut shelves[i];
            let mut at = 0;
            while at < all.len() && *taken > self.limit() {
                let own = idle.iter().filter(|p| all[at].holds(p) && self.completed(p)).count();
                if own < all[at].pieces {
                    at += 1;
                    continue;
                }
                let chunk = all.remove(at);
                idle.retain(|piece| {
                    let gone = chunk.holds(piece);
                    events.extend(gone.then_some(piece.event));
                    !gone
                });
                *taken -= (size.bytes * size.together) as u64;
                chunks.push(chunk.memory);
            }
        }
        // The lock is released, because freeing may make the driver wait for other work.
        drop(state);
        self.free_all(chunks, events);
    }

    /// Returns unused memory to the driver. The context is current.
    fn free_all(&self, chunks: Vec<*mut c_void>, events: Vec<EventHandle>) {
        events.into_iter().for_each(|event| self.context.give_event(event));
        for memory in chunks {
            // SAFETY: allocated once, freed once; all its uses have completed.
            unsafe { (self.context.driver().host_free)(memory) };
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // If the context is lost or belongs to another process, the memory is leaked.
        let Ok(_entered) = self.context.enter() else { return };
        let shelves = std::mem::take(&mut lock(&self.state).shelves);
        let (mut chunks, mut events, mut over) = (Vec::new(), Vec::new(), true);
        for shelf in shelves {
            for piece in shelf.idle {
                over &= piece.last == 0 || self.wait(&piece).is_ok();
                events.push(piece.event);
            }
            chunks.extend(shelf.chunks.into_iter().map(|chunk| chunk.memory));
        }
        if over {
            self.free_all(chunks, events);
        }
    }
}
