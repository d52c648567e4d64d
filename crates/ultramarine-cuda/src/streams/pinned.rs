//! Pinned memory in pieces of a few sizes, taken from the driver at the first need.
//!
//! A piece goes to whoever copies by way of it, and comes back with an event behind the copy; it
//! goes out again when that has passed. Who finds none free waits for one that its own stream
//! used, and never for another stream, which may itself wait for what the caller is about to do.

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

/// Pieces of one size: bytes of each, how many are taken from the driver at once, and at most.
struct Size {
    bytes: usize,
    together: usize,
    most: usize,
}

const SIZES: [Size; 3] = [
    Size { bytes: 4 << 10, together: 256, most: 256 },
    Size { bytes: 64 << 10, together: 16, most: 64 },
    // The host reads files by way of four at a time.
    Size { bytes: 4 << 20, together: 2, most: 6 },
];

/// Bytes of the largest piece.
pub const LARGEST: usize = SIZES[SIZES.len() - 1].bytes;

/// Bytes of all.
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

/// Pinned memory that one copy has for itself.
pub struct Piece {
    memory: *mut u8,
    /// Index in [`SIZES`].
    size: usize,
    /// Behind its last use.
    event: EventHandle,
    /// The stream of that; 0: it is known to be over.
    last: StreamId,
}

// SAFETY: pinned memory and events may be used from any thread; a piece has one owner.
unsafe impl Send for Piece {}

impl Piece {
    /// Address of its first byte.
    pub fn memory(&self) -> *mut u8 {
        self.memory
    }

    /// Bytes that it has.
    pub fn bytes(&self) -> usize {
        SIZES[self.size].bytes
    }
}

/// Memory that the driver gave at once.
struct Chunk {
    memory: *mut c_void,
    /// Pieces that were made of it so far.
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
    /// Nobody's, the one that came back first in front.
    idle: VecDeque<Piece>,
}

#[derive(Default)]
struct State {
    shelves: [Shelf; SIZES.len()],
    /// Bytes of all chunks.
    taken: u64,
    /// The driver has refused more.
    refused: bool,
}

// SAFETY: pinned memory may be used from any thread; it is reached under the lock.
unsafe impl Send for State {}

/// The pinned memory of one device.
pub struct Pinned {
    context: Arc<Context>,
    limit: AtomicU64,
    state: Mutex<State>,
}

impl Pinned {
    /// None is taken yet.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, limit: AtomicU64::new(ALL), state: Mutex::default() }
    }

    /// Bytes that may be taken.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets how many bytes may be taken, and gives up what is more and not in use; returns what
    /// it was.
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

    /// A piece of `bytes` for a copy in a stream, if there is one. The context is current.
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
        // Others go on meanwhile.
        drop(state);
        match self.wait(&piece) {
            Ok(()) => Ok(Some(piece)),
            Err(failure) => {
                self.give(piece);
                Err(failure)
            }
        }
    }

    /// One that its last user has passed. A stream passes its own in their order, so that only
    /// its first is asked for.
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

    /// One that nobody had yet, if the limit allows for it and the driver has memory.
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
            // SAFETY: the place is valid; the context is current.
            if unsafe { (driver.host_alloc)(&mut memory, whole as usize, PORTABLE) }
                != code::SUCCESS
            {
                // The driver's own copies do. It is not asked again for each.
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

    /// Has `call` enqueue a copy by way of the piece, and a mark behind it. After a failure
    /// nothing uses the piece. The context is current.
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
                // The copy may have begun; where the stream is lost nothing runs any more.
                let _ = stream.drain();
                0
            }
        };
        queued
    }

    /// Takes a piece back; its last use may be under way.
    pub fn give(&self, piece: Piece) {
        let mut state = lock(&self.state);
        let over = state.taken > self.limit();
        state.shelves[piece.size].idle.push_back(piece);
        drop(state);
        if over {
            self.trim();
        }
    }

    /// Takes a piece back that nothing uses any more.
    pub fn give_unused(&self, mut piece: Piece) {
        piece.last = 0;
        self.give(piece);
    }

    /// Gives up what is beyond the limit and not in use, the largest first.
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
        // The driver may wait for more than we do: without the lock.
        drop(state);
        self.free_all(chunks, events);
    }

    /// Gives memory that nothing uses back to the driver. The context is current.
    fn free_all(&self, chunks: Vec<*mut c_void>, events: Vec<EventHandle>) {
        events.into_iter().for_each(|event| self.context.give_event(event));
        for memory in chunks {
            // SAFETY: allocated once, freed once; what used it is over.
            unsafe { (self.context.driver().host_free)(memory) };
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Lost or another process's, it is left alone.
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
