//! Command lists, and their submission to the queue. The hal would separate submissions with semaphores, which costs as much
//! as a submission itself. Here, the barrier at the end of each list orders the work after it.

use crate::hal::{CommandBuffer, CommandEncoder, Fence, Queue};
use ash::vk;
use wgpu_hal::{CommandEncoder as _, DeviceError, Queue as _};

/// Recorded commands.
pub struct List {
    commands: CommandBuffer,
    raw: vk::CommandBuffer,
}

impl List {
    /// Ends the recording of an encoder.
    ///
    /// # Safety
    /// The encoder is recording, outside of a pass.
    pub unsafe fn end(encoder: &mut CommandEncoder) -> Result<Self, DeviceError> {
        // SAFETY: by this function's contract; the handle is only submitted.
        unsafe {
            let raw = encoder.raw_handle();
            Ok(Self { commands: encoder.end_encoding()?, raw })
        }
    }

    /// Submits the list. The fence reaches `value` once the list has completed.
    ///
    /// # Safety
    /// The list was not submitted before, it lives until it has completed, and nothing else uses the
    /// queue meanwhile.
    pub unsafe fn submit(&self, queue: &Queue, fence: (&Fence, u64)) -> Result<(), DeviceError> {
        let Fence::TimelineSemaphore(semaphore) = fence.0 else {
            // SAFETY: by this function's contract.
            return unsafe { queue.submit(&[&self.commands], &[], fence) };
        };
        let (lists, semaphores, values) = ([self.raw], [*semaphore], [fence.1]);
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info = vk::SubmitInfo::default()
            .command_buffers(&lists)
            .signal_semaphores(&semaphores)
            .push_next(&mut timeline);
        // SAFETY: by this function's contract; the semaphore is a timeline whose value grows.
        let done =
            unsafe { queue.raw_device().queue_submit(queue.as_raw(), &[info], vk::Fence::null()) };
        done.map_err(|why| match why {
            vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
                DeviceError::OutOfMemory
            }
            vk::Result::ERROR_DEVICE_LOST => DeviceError::Lost,
            _ => DeviceError::Unexpected,
        })
    }

    /// The hal's command buffer, to be returned to its encoder.
    pub fn into_commands(self) -> CommandBuffer {
        self.commands
    }
}
