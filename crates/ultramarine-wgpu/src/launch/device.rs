//! An open device. [`Device`] owns its context, memory, kernels and queue, declared in the order in
//! which they have to be dropped.

use crate::context::Context;
use crate::hal::{Found, Place};
use crate::memory::{Allocator, Block, Buffer};
use crate::program::Programs;
use crate::streams::{Clock, Scheduler, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// Number of counters in [`Device::tickets`].
pub const TICKETS: u32 = 64;
/// Number of ticket buffers. Commands that share a buffer wait for each other.
const SETS: usize = 16;

/// An open device: its context, memory, kernels and queue. The host holds it by a handle; all
/// plans, streams and buffers belong to it.
pub struct Device {
    /// Kernels.
    pub programs: Programs,
    /// Stream for calls that name no stream.
    pub default_stream: Stream,
    /// The queue and its streams.
    pub scheduler: Arc<Scheduler>,
    /// Timestamps.
    pub clock: Clock,
    tickets: [Arc<Block>; SETS],
    /// Index of the next ticket buffer.
    next: AtomicUsize,
    /// Memory.
    pub allocator: Arc<Allocator>,
    /// Declared last, because all fields above need it when they are dropped.
    pub context: Arc<Context>,
}

impl Device {
    /// Opens an adapter.
    pub fn open(found: &Found) -> Result<Self> {
        let (context, queue) = Context::open(found)?;
        let context = Arc::new(context);
        let scheduler = Arc::new(Scheduler::new(context.clone(), queue));
        let default_stream = Stream::new(&scheduler);
        let zeros = vec![0; 4 * TICKETS as usize];
        let block = |_| Block::new(&context, zeros.len() as u64, Place::Device);
        let tickets = (0..SETS).map(block).collect::<Result<Vec<_>>>()?;
        // The queue runs this upload before all other work, because it is recorded first.
        scheduler.upload_to_all(default_stream.lane(), &tickets, &zeros)?;
        let tickets = tickets.try_into().map_err(|_| Failure::new("a device without tickets"))?;
        Ok(Self {
            programs: Programs::new(context.clone()),
            default_stream,
            tickets,
            next: AtomicUsize::new(0),
            scheduler,
            clock: Clock::new(context.clone()),
            allocator: Arc::new(Allocator::new(context.clone())),
            context,
        })
    }

    /// [`TICKETS`] counters of completed workgroups, which are zero between kernels. Successive calls rotate through
    /// several buffers.
    pub fn tickets(&self) -> &Arc<Block> {
        &self.tickets[self.next.fetch_add(1, Ordering::Relaxed) % SETS]
    }

    /// Allocates at least the given number of bytes. If memory is short, it waits for running work and frees cached
    /// memory.
    pub fn alloc(&self, bytes: u64) -> Result<Buffer> {
        let made = self.allocator.alloc(bytes);
        let most = self.context.properties.max_buffer;
        let again = |failure: &Failure| failure.code == status::OUT_OF_MEMORY && bytes <= most;
        if made.as_ref().is_err_and(again) {
            self.allocator.clear_cache();
            self.scheduler.reclaim()?;
            return self.allocator.alloc(bytes);
        }
        made
    }

    /// The number of a stream, or of the device's own stream if none is given.
    pub fn lane(&self, stream: Option<&Stream>) -> u64 {
        stream.unwrap_or(&self.default_stream).lane()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.context.forked() {
            // This leaks everything that the parent's driver would be asked to destroy.
            std::mem::forget(self.scheduler.clone());
        }
    }
}
