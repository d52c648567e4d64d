//! Large copies between the host and the device, by way of pinned memory: while the device moves
//! one piece, the host's threads copy the next. The driver's own way for memory that is not
//! pinned does one after the other, on one thread.

use crate::context::{Context, lock};
use crate::device::Device;
use crate::failure::cuda;
use crate::stream::Stream;
use crate::sys::driver::{Address, EventHandle};
use core::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use ultramarine_abi::helper::{Host, Result};

/// Bytes of a piece.
const PIECE: usize = 4 << 20;
/// Pieces.
const PIECES: usize = 2;
/// Bytes of all.
pub const PINNED: u64 = (PIECE * PIECES) as u64;
/// Copies from this size on go by pieces.
const LARGE: usize = 512 << 10;
/// Bytes of a piece at least.
const SMALLEST: usize = 256 << 10;
/// What a thread copies at a time.
const SHARE: usize = 256 << 10;
/// `CU_MEMHOSTALLOC_PORTABLE`.
const PORTABLE: u32 = 1;

/// Pinned memory of a device, taken at the first large copy.
pub struct Staging {
    context: Arc<Context>,
    /// Bytes that may be pinned.
    limit: AtomicU64,
    ring: Mutex<Option<Ring>>,
}

struct Ring {
    context: Arc<Context>,
    memory: *mut c_void,
    /// Behind the last use of each piece.
    used: Vec<EventHandle>,
}

// SAFETY: pinned memory and events may be used from any thread; it is one at a time here.
unsafe impl Send for Ring {}

/// Bytes of the pieces of a copy: several, for the device and the host to take turns.
fn step(bytes: usize) -> usize {
    (bytes / 4).next_multiple_of(4096).clamp(SMALLEST, PIECE)
}

impl Ring {
    /// The context is current.
    fn new(context: &Arc<Context>) -> Result<Self> {
        let (driver, mut memory) = (context.driver(), std::ptr::null_mut());
        // SAFETY: the place is valid; the context is current.
        unsafe { cuda!(driver.host_alloc(&mut memory, PIECE * PIECES, PORTABLE)) }?;
        let mut ring = Self { context: context.clone(), memory, used: Vec::new() };
        for _ in 0..PIECES {
            ring.used.push(context.take_event()?);
        }
        Ok(ring)
    }

    fn piece(&self, i: usize) -> *mut u8 {
        self.memory.cast::<u8>().wrapping_add(i % PIECES * PIECE)
    }

    fn event(&self, i: usize) -> EventHandle {
        self.used[i % PIECES]
    }

    fn wait(&self, i: usize) -> Result<()> {
        let driver = self.context.driver();
        // SAFETY: an event of this context.
        unsafe { cuda!(driver.event_synchronize(self.event(i))) }
    }

    fn record(&self, i: usize, stream: &Stream) -> Result<()> {
        let driver = self.context.driver();
        // SAFETY: both are of this context.
        unsafe { cuda!(driver.event_record(self.event(i), stream.handle())) }
    }

    fn upload(&self, host: &Host, stream: &Stream, to: Address, source: &[u8]) -> Result<()> {
        let driver = self.context.driver();
        let step = step(source.len());
        for (i, part) in source.chunks(step).enumerate() {
            if i >= PIECES {
                self.wait(i)?;
            }
            // SAFETY: the device has read the piece, or none was there; nobody else has the ring.
            unsafe { copy(host, self.piece(i), part.as_ptr(), part.len()) }?;
            let at = to + (i * step) as u64;
            // SAFETY: pinned memory that is not written before the event; the target is inside
            // of the buffer.
            unsafe {
                cuda!(driver.copy_to_device(at, self.piece(i).cast(), part.len(), stream.handle()))
            }?;
            self.record(i, stream)?;
        }
        Ok(())
    }

    fn download(
        &self,
        host: &Host,
        stream: &Stream,
        from: Address,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let driver = self.context.driver();
        let step = step(target.len());
        let pieces = target.len().div_ceil(step);
        let (start, length) = (target.as_mut_ptr().cast::<u8>(), target.len());
        let part = |i: usize| (i * step, (length - i * step).min(step));
        let begin = |i: usize| -> Result<()> {
            let (at, bytes) = part(i);
            let to = self.piece(i).cast();
            // SAFETY: pinned memory that the host has read; the source is inside of the buffer.
            unsafe { cuda!(driver.copy_to_host(to, from + at as u64, bytes, stream.handle())) }?;
            self.record(i, stream)
        };
        (0..pieces.min(PIECES)).try_for_each(begin)?;
        for i in 0..pieces {
            self.wait(i)?;
            let (at, bytes) = part(i);
            // SAFETY: the device has written the piece; the target has that many bytes there.
            unsafe { copy(host, start.wrapping_add(at), self.piece(i), bytes) }?;
            if i + PIECES < pieces {
                begin(i + PIECES)?;
            }
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let Ok(_entered) = self.context.enter() else { return };
        self.used.drain(..).for_each(|event| self.context.give_event(event));
        // SAFETY: allocated once, freed once; what used it has been waited for.
        unsafe { (self.context.driver().host_free)(self.memory) };
    }
}

/// Copies by several of the host's threads.
///
/// # Safety
/// Both are memory of that many bytes, apart; the target is nobody else's meanwhile.
unsafe fn copy(host: &Host, to: *mut u8, from: *const u8, bytes: usize) -> Result<()> {
    struct Ends(*mut u8, *const u8);
    // SAFETY: each thread touches a part of its own.
    unsafe impl Sync for Ends {}
    impl Ends {
        /// # Safety
        /// Both have that many bytes at the offset.
        unsafe fn copy(&self, at: usize, bytes: usize) {
            // SAFETY: by this function's contract.
            unsafe {
                self.1.wrapping_add(at).copy_to_nonoverlapping(self.0.wrapping_add(at), bytes);
            }
        }
    }
    let ends = Ends(to, from);
    host.parallel_for(bytes.div_ceil(SHARE) as u64, |i| {
        let at = i as usize * SHARE;
        // SAFETY: by this function's contract; parts do not overlap.
        unsafe { ends.copy(at, SHARE.min(bytes - at)) };
    })
}

impl Staging {
    /// None is pinned yet.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, limit: AtomicU64::new(PINNED), ring: Mutex::new(None) }
    }

    /// Bytes that may be pinned.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets how many bytes may be pinned; returns what it was.
    pub fn set_limit(&self, bytes: u64) -> u64 {
        let former = self.limit.swap(bytes, Ordering::Relaxed);
        if bytes < PINNED {
            drop(lock(&self.ring).take());
        }
        former
    }

    /// Runs `copy` with the pieces. `None`: there are none to be had now, the driver may copy.
    /// After that the stream has drained, whatever came of the copy.
    fn with(
        &self,
        stream: &Stream,
        bytes: usize,
        copy: impl FnOnce(&Ring) -> Result<()>,
    ) -> Option<Result<()>> {
        if bytes < LARGE || self.limit() < PINNED {
            return None;
        }
        let mut ring = match self.ring.try_lock() {
            Ok(ring) => ring,
            Err(TryLockError::Poisoned(ring)) => ring.into_inner(),
            // Another stream's copy has them.
            Err(TryLockError::WouldBlock) => return None,
        };
        if ring.is_none() {
            *ring = Some(Ring::new(&self.context).ok()?);
        }
        let copied = copy(ring.as_ref()?);
        let drained = stream.drain();
        Some(copied.and(drained))
    }

    /// Copies to the device; done on return. The context is current.
    pub fn upload(
        &self,
        device: &Device,
        stream: &Stream,
        to: Address,
        source: &[u8],
    ) -> Option<Result<()>> {
        self.with(stream, source.len(), |ring| ring.upload(&device.host, stream, to, source))
    }

    /// Copies from the device; done on return. The context is current.
    pub fn download(
        &self,
        device: &Device,
        stream: &Stream,
        from: Address,
        target: &mut [MaybeUninit<u8>],
    ) -> Option<Result<()>> {
        self.with(stream, target.len(), |ring| ring.download(&device.host, stream, from, target))
    }
}
