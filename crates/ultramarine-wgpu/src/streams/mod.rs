//! Streams and events on the only queue of a device.
//!
//! Submissions of a queue run in order. Therefore a stream is a list on the host: its commands go
//! to the queue at once, unless the stream waits for an event's value that is not recorded yet. In
//! that case they stay in the list until the record has been submitted. If the queue itself waited,
//! it would never reach the record that comes later in the queue.
//!
//! Commands are recorded one after the other, with barriers where a command uses another one's
//! memory (`hazards.rs`). They are submitted together: at once if the queue has little work,
//! otherwise when something waits for them, when there are many, or when the queue is almost empty
//! (`feeder.rs`).

mod batch;
mod events;
mod feeder;
mod groups;
mod hazards;
mod lanes;
mod recording;
mod scheduler;
mod submission;
mod timestamps;
mod transfers;

pub use batch::{Action, Batch, Binding};
pub use events::Event;
pub use scheduler::Scheduler;
pub use timestamps::{Clock, Mark};

use std::sync::Arc;

/// A stream of the host. It is a lane of the [`Scheduler`], because a device has a single queue.
pub struct Stream {
    scheduler: Arc<Scheduler>,
    lane: u64,
}

impl Stream {
    /// Makes a stream.
    pub fn new(scheduler: &Arc<Scheduler>) -> Self {
        Self { lane: scheduler.open_lane(), scheduler: scheduler.clone() }
    }

    /// Its number in the scheduler.
    pub fn lane(&self) -> u64 {
        self.lane
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // In a forked child, the lock may be held forever.
        if !self.scheduler.forked() {
            self.scheduler.close_lane(self.lane);
        }
    }
}
