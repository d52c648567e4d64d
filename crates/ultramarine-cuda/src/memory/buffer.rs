//! Pieces of device memory, as the host has them.

use super::{Allocator, PieceId, Release, StreamId};
use crate::context;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

/// A buffer of the host: a piece of device memory, or imported memory. Dropping it returns a piece
/// to the [`Allocator`](super::Allocator), and imported memory to its owner.
pub struct Buffer {
    address: u64,
    bytes: u64,
    home: Home,
}

/// The owner that the memory goes back to.
enum Home {
    /// The allocator, which cut it from a block; in the order of a stream, if not 0.
    Pool { allocator: Arc<Allocator>, piece: PieceId, order: StreamId },
    /// The driver.
    Single(Arc<Allocator>),
    /// Somebody else, who is told.
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

    /// A buffer over somebody else's memory, who is told when it is dropped.
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

    /// The address of `bytes` bytes from `offset`, if they are inside.
    pub fn part(&self, offset: u64, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes => Ok(self.address + offset),
            _ => Err(Failure::invalid(format!(
                "a copy beyond the buffer: {bytes} bytes at {offset} of {}",
                self.bytes
            ))),
        }
    }

    /// True if the memory can be given back while the last stream that uses it still does.
    pub fn goes_in_order(&self) -> bool {
        matches!(self.home, Home::Pool { .. })
    }

    /// Gives it back in the order of a stream: later work of that stream may use the memory at
    /// once, others when the stream has passed what it has been given so far.
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
