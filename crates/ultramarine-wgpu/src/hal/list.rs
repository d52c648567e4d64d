//! Lists of commands, and their way to the queue, as the hal has them.

use super::{CommandBuffer, CommandEncoder, Fence, Queue};
use wgpu_hal::{CommandEncoder as _, DeviceError, Queue as _};

/// Recorded commands.
pub struct List(CommandBuffer);

impl List {
    /// Ends what an encoder records.
    ///
    /// # Safety
    /// It records, outside of a pass.
    pub unsafe fn end(encoder: &mut CommandEncoder) -> Result<Self, DeviceError> {
        // SAFETY: the caller's.
        unsafe { encoder.end_encoding().map(Self) }
    }

    /// Submits it. The fence reaches the value once it is done.
    ///
    /// # Safety
    /// It was not submitted before, it lives until it is done, and nobody else uses the queue meanwhile.
    pub unsafe fn submit(&self, queue: &Queue, fence: (&Fence, u64)) -> Result<(), DeviceError> {
        // SAFETY: the caller's.
        unsafe { queue.submit(&[&self.0], &[], fence) }
    }

    /// The hal's commands, to be given back to their encoder.
    pub fn into_commands(self) -> CommandBuffer {
        self.0
    }
}
