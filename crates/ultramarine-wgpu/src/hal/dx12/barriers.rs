//! Barriers between the actions of a list.

use super::{Buffer, CommandEncoder, Device};
use std::collections::{HashMap, HashSet};
use wgpu_hal::{BufferBarrier, CommandEncoder as _, StateTransition};
use wgpu_types::BufferUses;

/// The last use of each buffer in a list. At the beginning of a list, buffers are in a state that
/// any use changes implicitly. At the end of the list they return to it, and all writes are
/// complete.
#[derive(Default)]
pub struct Barriers {
    last: HashMap<*const Buffer, BufferUses>,
    /// Buffers that kernels used since the last hazard.
    since: HashSet<*const Buffer>,
}

// SAFETY: the buffers may be used from all threads, and live until the list is encoded.
unsafe impl Send for Barriers {}

impl Barriers {
    /// At the end of a list, nothing is needed, because lists are ordered.
    pub fn end(&mut self, _device: &Device, _encoder: &mut CommandEncoder) {}

    /// Orders the next action after all earlier actions if there is a `hazard`, that is, if it uses
    /// buffers that they have not finished. `uses` returns the buffers of the action, each with its
    /// use, which changes the buffer's state. The buffers live until the list is encoded. If an
    /// action uses a buffer several times, the last use counts.
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
            // Buffers that copies used since then changed their state, which orders them too.
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
