//! Timeline events: the recorded values, each with the submission after which the event reaches it.

use crate::context::lock;
use std::sync::{Arc, Mutex};

/// A recorded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    value: u64,
    submission: u64,
}

/// Values of an event.
#[derive(Debug, Default)]
struct Marks {
    /// Largest value that is known to be reached.
    reached: u64,
    /// Recorded values whose submissions may not be complete.
    open: Vec<Mark>,
}

/// A timeline event of the host: a value that only increases, and that streams record.
#[derive(Clone, Debug, Default)]
pub struct Event(Arc<Mutex<Marks>>);

impl Event {
    /// Makes the event reach a value once a submission is complete.
    pub(super) fn mark(&self, value: u64, submission: u64) {
        lock(&self.0).open.push(Mark { value, submission });
    }

    /// Returns the value if the first `completed` submissions are complete.
    pub fn value(&self, completed: u64) -> u64 {
        let mut marks = lock(&self.0);
        let done = marks.open.iter().filter(|mark| mark.submission <= completed);
        let reached = done.map(|mark| mark.value).fold(marks.reached, u64::max);
        marks.reached = reached;
        marks.open.retain(|mark| mark.submission > completed && mark.value > reached);
        reached
    }

    /// Returns the submission after which the event has at least that value, or 0 if it has it
    /// already. `None` if no such value is recorded yet.
    pub(super) fn submission(&self, value: u64) -> Option<u64> {
        let marks = lock(&self.0);
        if marks.reached >= value {
            return Some(0);
        }
        let fitting = marks.open.iter().filter(|mark| mark.value >= value);
        fitting.map(|mark| mark.submission).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_submissions_and_only_grow() {
        let event = Event::default();
        assert_eq!((event.value(9), event.submission(0), event.submission(1)), (0, Some(0), None));
        event.mark(1, 4);
        event.mark(5, 6);
        event.mark(3, 7);
        assert_eq!((event.submission(2), event.submission(1)), (Some(6), Some(4)));
        assert_eq!(event.value(4), 1);
        assert_eq!(event.value(6), 5);
        assert_eq!(event.value(7), 5);
        assert_eq!((event.submission(4), event.submission(6)), (Some(0), None));
    }
}
