//! Streams and events on the one queue of a device.
//!
//! Submissions of a queue run in their order, so a stream is a list on the host's side: its commands go to the queue at
//! once, unless it waits for the value of an event that nobody has recorded. Then they stay in the list until the record
//! has been submitted; a queue that waited itself would never come to the record behind it.
//!
//! Commands are recorded one behind the other, with barriers where one meets another's memory (`hazards.rs`), and
//! submitted together: at once if the queue has little to do, else when something waits for them, when there are
//! many, or when the queue is nearly through (`feeder.rs`).

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

/// A stream of the host: a lane of the [`Scheduler`], since a device has one queue.
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
        // In a forked child the lock may be held for ever.
        if !self.scheduler.forked() {
            self.scheduler.close_lane(self.lane);
        }
    }
}
