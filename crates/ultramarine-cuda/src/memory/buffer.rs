//! Pieces of device memory, as the host holds them.

use super::{Allocator, PieceId, Release, StreamId};
use crate::context;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

/// A buffer of the host: a piece of device memory, or imported memory. When it is dropped, a piece
/// returns to the [`Allocator`](super::Allocator), and imported memory to its owner.
pub struct Buffer {
    address: u64,
    bytes: u64,
    home: Home,
}

/// The owner that the memory is returned to.
enum Home {
    /// The allocator, which cut the piece from a block; in the order of a stream, unless it is 0.
    Pool { allocator: Arc<Allocator>, piece: PieceId, order: StreamId },
    /// The driver.
    Single(Arc<Allocator>),
    /// A foreign owner, who is notified.
    Foreign(Release),
}

impl Buffer {
    pub(super) fn pooled(
        address: u64,
        bytes: u64,
        piece: PieceId,
        allocator: Arc<Allocator>,
    ) -> Self {
        Self { address, bytes, home: Home::Pool { allocator, piece, order: 0 } }
    }

    pub(super) fn single(address: u64, bytes: u64, allocator: Arc<Allocator>) -> Self {
        Self { address, bytes, home: Home::Single(allocator) }
    }

    /// A buffer over foreign memory, whose owner is notified when the buffer is dropped.
    pub fn foreign(address: u64, bytes: u64, release: Release) -> Self {
        Self { address, bytes, home: Home::Foreign(release) }
    }

    /// Its address on the device.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The address of `bytes` bytes at `offset`, if they are inside the buffer.
    pub fn part(&self, offset: u64, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes => Ok(self.address + offset),
            _ => Err(Failure::invalid(format!(
                "a copy beyond the buffer: {bytes} bytes at {offset} of {}",
                self.bytes
            ))),
        }
    }

    /// True if the memory can be freed while the last stream that uses it is still running.
    pub fn goes_in_order(&self) -> bool {
        matches!(self.home, Home::Pool { .. })
    }

    /// Frees it in the order of a stream: later work of that stream may use the memory at once,
    /// other streams when this stream has completed the work enqueued so far.
    pub fn give_in_order(mut self, stream: StreamId) {
        if let Home::Pool { order, .. } = &mut self.home {
            *order = stream;
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match &mut self.home {
            Home::Foreign(release) => release.now(),
            _ if context::forked() => {}
            Home::Pool { allocator, piece, order } => allocator.give(*piece, *order),
            Home::Single(allocator) => allocator.give_single(self.address, self.bytes),
        }
    }
}
