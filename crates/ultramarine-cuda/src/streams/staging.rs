//! Copies between the host and the device through pinned memory.
//!
//! An upload is first copied into pinned memory. From there, the device copies it in the order of
//! the stream, without blocking any thread, so the caller can reuse the source at once. While the
//! device moves one piece of a large upload, the host's threads copy the next piece. The driver's
//! own copy of pageable memory does these steps one after the other, on one thread. It is only used
//! if no pinned memory is available.

use super::Stream;
use super::pinned::{LARGEST, Piece, Pinned};
use crate::context::failure::cuda;
use crate::context::{self, Context};
use crate::memory::Buffer;
use crate::sys::driver::{Address, Driver};
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;
use ultramarine_abi::helper::{Host, Result};

/// Size from which downloads are split into pieces.
const LARGE: usize = 512 << 10;
/// Minimum size of a piece of a copy, in bytes.
const SMALLEST: usize = 256 << 10;
/// Number of pieces of a download in flight.
const TURNS: usize = 2;
/// Bytes that a thread copies at a time.
const SHARE: usize = 256 << 10;

/// The copies between the host and a device, through pinned memory.
pub struct Staging {
    host: Host,
    context: Arc<Context>,
    pinned: Pinned,
}

/// Bytes of each piece of a copy. There are several pieces, so that the device and the host can
/// work at the same time.
fn step(bytes: usize) -> usize {
    (bytes / 4).next_multiple_of(4096).clamp(SMALLEST, LARGEST)
}

/// Copies with several of the host's threads.
///
/// # Safety
/// Both are memory of that many bytes, and do not overlap. Nothing else uses the target meanwhile.
unsafe fn copy(host: &Host, to: *mut u8, from: *const u8, bytes: usize) -> Result<()> {
    struct Ends(*mut u8, *const u8);
    // SAFETY: each thread accesses only its own part.
    unsafe impl Sync for Ends {}
    impl Ends {
        /// # Safety
        /// Both have that many bytes from the offset on.
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
    /// Allocates nothing yet.
    pub fn new(host: Host, context: Arc<Context>) -> Self {
        Self { host, pinned: Pinned::new(context.clone()), context }
    }

    /// Maximum number of pinned bytes.
    pub fn limit(&self) -> u64 {
        self.pinned.limit()
    }

    /// Sets the maximum number of pinned bytes; returns the former limit.
    pub fn set_limit(&self, bytes: u64) -> u64 {
        self.pinned.set_limit(bytes)
    }

    /// Copies into a buffer, in the stream's order. The source has been read when this returns.
    pub fn upload(
        &self,
        stream: &Stream,
        buffer: &Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        let _entered = self.context.enter()?;
        let to = buffer.part(offset, source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        self.upload_pinned(stream, to, source)?;
        if context::blocking() { stream.drain() } else { Ok(()) }
    }

    /// Pinned memory that the caller fills for a copy in a stream, if any is available.
    pub fn lend(&self, stream: &Stream, bytes: usize) -> Result<Option<Piece>> {
        let _entered = self.context.enter()?;
        self.pinned.take(bytes, stream)
    }

    /// Copies the beginning of lent memory to a buffer, in the stream's order.
    pub fn copy_lent(
        &self,
        stream: &Stream,
        mut piece: Piece,
        (buffer, offset): (&Buffer, u64),
        bytes: usize,
    ) -> Result<()> {
        let queued = self.context.enter().and_then(|_entered| {
            let (driver, to) = (self.driver(), buffer.part(offset, bytes)?);
            self.pinned.enqueue(&mut piece, stream, |memory| {
                // SAFETY: pinned memory that is not written before the event recorded after this copy; the target is
                // inside the buffer.
                unsafe { cuda!(driver.copy_to_device(to, memory, bytes, stream.handle())) }
            })
        });
        self.pinned.give(piece);
        queued?;
        if context::blocking() { stream.synchronize() } else { Ok(()) }
    }

    /// Takes back lent memory from which nothing was copied.
    pub fn take_back(&self, piece: Piece) {
        self.pinned.give_unused(piece);
    }

    /// Copies from a buffer, and fills all of `target`. The copy is complete when this returns.
    pub fn download(
        &self,
        stream: &Stream,
        buffer: &Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let _entered = self.context.enter()?;
        let from = buffer.part(offset, target.len())?;
        if target.is_empty() {
            return Ok(());
        }
        if let Some(done) = self.download_pinned(stream, from, target) {
            return done;
        }
        let (driver, to) = (self.driver(), target.as_mut_ptr().cast());
        // SAFETY: the target outlives the copy, because the copy is waited for even after a
        // failure; the source is inside the buffer.
        let begun = unsafe { cuda!(driver.copy_to_host(to, from, target.len(), stream.handle())) };
        let drained = stream.drain();
        begun.and(drained)
    }

    fn driver(&self) -> &'static Driver {
        self.context.driver()
    }

    /// Copies to the device, in the order of the stream. The source has been read when this
    /// returns. The context is current.
    fn upload_pinned(&self, stream: &Stream, to: Address, source: &[u8]) -> Result<()> {
        let (driver, step) = (self.driver(), step(source.len()));
        for (i, part) in source.chunks(step).enumerate() {
            let at = to + (i * step) as u64;
            let Some(mut piece) = self.pinned.take(part.len(), stream)? else {
                return self.upload_pageable(stream, at, &source[i * step..]);
            };
            // SAFETY: the piece's former use has completed, and nothing else uses it.
            let filled = unsafe { copy(&self.host, piece.memory(), part.as_ptr(), part.len()) };
            let queued = filled.and_then(|()| {
                self.pinned.enqueue(&mut piece, stream, |memory| {
                    // SAFETY: pinned memory that is not written before the event recorded after
                    // this copy; the target is inside the buffer.
                    unsafe { cuda!(driver.copy_to_device(at, memory, part.len(), stream.handle())) }
                })
            });
            self.pinned.give(piece);
            queued?;
        }
        Ok(())
    }

    /// Copies from the device. The copy is complete when this returns. `None` if the driver's own
    /// copy has to be used. The context is current.
    fn download_pinned(
        &self,
        stream: &Stream,
        from: Address,
        target: &mut [MaybeUninit<u8>],
    ) -> Option<Result<()>> {
        if target.len() < LARGE {
            return None;
        }
        let mut begun = VecDeque::new();
        let done = self.by_turns(stream, from, target, &mut begun);
        if !begun.is_empty() {
            // This follows a failure. If the stream is lost, nothing runs any more.
            let _ = stream.drain();
            begun.into_iter().for_each(|piece| self.pinned.give_unused(piece));
        }
        match done {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Downloads in pieces, a few in flight at a time; `begun` has the pieces in flight. Returns
    /// whether there was pinned memory. If there was none, nothing is in flight.
    fn by_turns(
        &self,
        stream: &Stream,
        from: Address,
        target: &mut [MaybeUninit<u8>],
        begun: &mut VecDeque<Piece>,
    ) -> Result<bool> {
        let (driver, step) = (self.driver(), step(target.len()));
        let submitted = stream.log().count();
        let (start, length) = (target.as_mut_ptr().cast::<u8>(), target.len());
        let part = |i: usize| (i * step, (length - i * step).min(step));
        let (mut next, pieces) = (0, length.div_ceil(step));
        for i in 0..pieces {
            while next < pieces && begun.len() < TURNS {
                let Some(mut piece) = self.pinned.take(part(next).1, stream)? else { break };
                let (at, bytes) = part(next);
                let queued = self.pinned.enqueue(&mut piece, stream, |memory| {
                    // SAFETY: pinned memory that nothing else uses; the source is inside the
                    // buffer.
                    unsafe {
                        cuda!(driver.copy_to_host(memory, from + at as u64, bytes, stream.handle()))
                    }
                });
                // After a failure, the piece is given back with the others.
                begun.push_back(piece);
                queued?;
                next += 1;
            }
            let Some(piece) = begun.front() else { return Ok(false) };
            self.pinned.wait(piece)?;
            let (at, bytes) = part(i);
            // SAFETY: the device has written the piece; the target has that many bytes at this
            // position.
            unsafe { copy(&self.host, start.wrapping_add(at), piece.memory(), bytes) }?;
            begun.pop_front().into_iter().for_each(|piece| self.pinned.give_unused(piece));
        }
        stream.log().finished(submitted);
        Ok(true)
    }

    /// Copies to the device without pinned memory. The copy is complete when this returns. The
    /// context is current.
    fn upload_pageable(&self, stream: &Stream, to: Address, source: &[u8]) -> Result<()> {
        let driver = self.driver();
        // SAFETY: the source outlives the copy, because the copy is waited for even after a
        // failure; the target is inside the buffer.
        let begun = unsafe {
            cuda!(driver.copy_to_device(to, source.as_ptr().cast(), source.len(), stream.handle()))
        };
        let drained = stream.drain();
        begun.and(drained)
    }
}
