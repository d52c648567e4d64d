//! Barriers between the actions of a list.

use super::{Buffer, CommandEncoder, Device};
use std::collections::{HashMap, HashSet};
use wgpu_hal::{BufferBarrier, CommandEncoder as _, StateTransition};
use wgpu_types::BufferUses;

/// The last use of each buffer in a list. At the start of a list, buffers are in a state that any use changes implicitly.
/// They return to this state at the end of the list, after which all writes are visible.
#[derive(Default)]
pub struct Barriers {
    last: HashMap<*const Buffer, BufferUses>,
    /// Buffers that kernels have used since the last hazard.
    since: HashSet<*const Buffer>,
}

// SAFETY: the buffers may be used from all threads, and live until the list is encoded.
unsafe impl Send for Barriers {}

impl Barriers {
    /// Called at the end of a list. It does nothing, because DirectX orders lists itself.
    pub fn end(&mut self, _device: &Device, _encoder: &mut CommandEncoder) {}

    /// Orders the next action after all earlier ones if there is a `hazard`, that is, if the action uses memory that
    /// earlier ones have not finished with. `uses` returns the buffers that the action uses, each with its use. Their
    /// states change accordingly, and they live until the list is encoded. If an action uses a buffer several times,
    /// its last use counts.
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
            // Buffers that copies have used since then changed their state, which orders them as
            // well.
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
