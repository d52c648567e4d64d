//! Barriers between the actions of a list.

use super::{Buffer, CommandEncoder, Device};
use std::collections::{HashMap, HashSet};
use wgpu_hal::{BufferBarrier, CommandEncoder as _, StateTransition};
use wgpu_types::BufferUses;

/// The last use of each buffer in a list. Buffers begin a list in a state that any use changes by itself, and come back to
/// it at the list's end, behind which all is written.
#[derive(Default)]
pub struct Barriers {
    last: HashMap<*const Buffer, BufferUses>,
    /// Those that kernels had since the last hazard.
    since: HashSet<*const Buffer>,
}

// SAFETY: the buffers may be used from all threads, and live until the list is encoded.
unsafe impl Send for Barriers {}

impl Barriers {
    /// At the end of a list: nothing, lists are ordered by themselves.
    pub fn end(&mut self, _device: &Device, _encoder: &mut CommandEncoder) {}

    /// Orders the next action behind all before it if there is a `hazard`: it uses what they have not finished. `uses`
    /// gives the buffers that it uses, each with its use, by which their states change; they live until the list is
    /// encoded. The last use of a buffer within an action counts.
    pub fn before<E>(
        &mut self,
        _device: &Device,
        encoder: &mut CommandEncoder,
        (hazard, _copies): (bool, bool),
        uses: impl FnOnce() -> Result<Vec<(*const Buffer, BufferUses)>, E>,
    ) -> Result<(), E> {
        let uses = uses()?;
        let mut barriers = Vec::new();
        let mut add = |buffer: *const Buffer, from, to| {
            // SAFETY: the buffer lives until the list is encoded, by this function's contract.
            let buffer = unsafe { &*buffer };
            barriers.push(BufferBarrier { buffer, usage: StateTransition { from, to } });
        };
        if hazard {
            // Those that copies had since then changed their state, which orders as much.
            let kernels = BufferUses::STORAGE_READ_WRITE;
            let same = |buffer: &*const Buffer| self.last.get(buffer) == Some(&kernels);
            for buffer in self.since.drain().filter(same) {
                add(buffer, kernels, kernels);
            }
        }
        for (buffer, to) in uses {
            match self.last.insert(buffer, to) {
                Some(from) if from != to => add(buffer, from, to),
                _ => {}
            }
            if to == BufferUses::STORAGE_READ_WRITE {
                self.since.insert(buffer);
            }
        }
        // SAFETY: the encoder is recording; the buffers are in the states of their last uses.
        unsafe { encoder.transition_buffers(barriers.into_iter()) };
        Ok(())
    }
}
