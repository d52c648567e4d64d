//! Lists of commands, and their submission to the queue, by the hal.

use super::{CommandBuffer, CommandEncoder, Fence, Queue};
use wgpu_hal::{CommandEncoder as _, DeviceError, Queue as _};

/// Recorded commands.
pub struct List(CommandBuffer);

impl List {
    /// Ends the recording of an encoder.
    ///
    /// # Safety
    /// The encoder is recording, outside a pass.
    pub unsafe fn end(encoder: &mut CommandEncoder) -> Result<Self, DeviceError> {
        // SAFETY: the caller's.
        unsafe { encoder.end_encoding().map(Self) }
    }

    /// Submits the list. The fence reaches the value once the list is complete.
    ///
    /// # Safety
    /// The list was not submitted before, lives until it is complete, and nothing else uses the
    /// queue meanwhile.
    pub unsafe fn submit(&self, queue: &Queue, fence: (&Fence, u64)) -> Result<(), DeviceError> {
        // SAFETY: the caller's.
        unsafe { queue.submit(&[&self.0], &[], fence) }
    }

    /// Returns the hal's commands, so that their encoder can reuse them.
    pub fn into_commands(self) -> CommandBuffer {
        self.0
    }
}
