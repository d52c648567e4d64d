//! Command lists, and their submission to the queue, through the hal.

use super::{CommandBuffer, CommandEncoder, Fence, Queue};
use wgpu_hal::{CommandEncoder as _, DeviceError, Queue as _};

/// Recorded commands.
pub struct List(CommandBuffer);

impl List {
    /// Ends the recording of an encoder.
    ///
    /// # Safety
    /// The encoder is recording, outside of a pass.
    pub unsafe fn end(encoder: &mut CommandEncoder) -> Result<Self, DeviceError> {
        // SAFETY: by this function's contract.
        unsafe { encoder.end_encoding().map(Self) }
    }

    /// Submits the list. The fence reaches `value` once the list has completed.
    ///
    /// # Safety
    /// The list was not submitted before, it lives until it has completed, and nothing else uses the
    /// queue meanwhile.
    pub unsafe fn submit(&self, queue: &Queue, fence: (&Fence, u64)) -> Result<(), DeviceError> {
        // SAFETY: by this function's contract.
        unsafe { queue.submit(&[&self.0], &[], fence) }
    }

    /// The hal's command buffer, to be returned to its encoder.
    pub fn into_commands(self) -> CommandBuffer {
        self.0
    }
}
