//! The queue of a stream: jobs in order. Later jobs may pass a job that waits for values.

use crate::error::{Error, Result};
use crate::memory;
use std::collections::VecDeque;

/// A job: a closure in a stream's queue, which never unwinds. It is called once: with `Ok` to run,
/// or with the error that prevents it from running.
pub type Job = Box<dyn FnOnce(Result<()>) + Send>;

/// The condition that the values that a job needs are available. It is evaluated under locks, also
/// by [`crate::claim::sleep_until`], and must call [`crate::claim::Claim::is_over`] for values that
/// are missing.
pub type Ready = Box<dyn Fn() -> bool + Send>;

/// Number of jobs in a queue above which submitting threads have to wait.
const MAX_QUEUED: usize = 64;

/// A job in a queue.
pub(super) struct Waiting {
    pub job: Job,
    /// Later jobs may pass this one until the condition holds. `None` if the job is ready.
    pub ready: Option<Ready>,
    /// If true, it may not pass earlier jobs for which this is true too.
    pub ordered: bool,
}

impl Waiting {
    fn is_ready(&self) -> bool {
        self.ready.as_ref().is_none_or(|ready| ready())
    }
}

/// The jobs of a stream, and its threads.
#[derive(Default)]
pub(super) struct Queue {
    pub jobs: VecDeque<Waiting>,
    /// True while a thread is running a job of this stream.
    pub busy: bool,
    /// True if a worker thread of this process has the stream, or was told to take it.
    pub worker: bool,
    /// Number of threads that sleep until the queue changes. If it is 0, no wake-up is needed,
    /// which would be a system call.
    pub waiting: usize,
    /// Number of threads that wait for room.
    pub held_back: usize,
    /// True if the worker sleeps until one of its jobs is ready.
    pub asleep: bool,
    /// Number of former workers that are running deleters.
    pub releasing: usize,
    /// Number of jobs that have ended, plus number of times that an owner released the stream.
    pub finished: u64,
}

impl Queue {
    /// Removes and returns the first job that is ready.
    pub fn take_ready(&mut self) -> Option<Waiting> {
        let place = self.first_ready()?;
        self.jobs.remove(place)
    }

    pub fn has_ready(&self) -> bool {
        self.first_ready().is_some()
    }

    fn first_ready(&self) -> Option<usize> {
        let mut held = false;
        self.jobs.iter().position(|job| {
            let runs = !(held && job.ordered) && job.is_ready();
            held |= job.ordered;
            runs
        })
    }

    pub fn is_idle(&self) -> bool {
        !self.busy && self.jobs.is_empty()
    }

    /// Returns true if too many jobs wait, or if any job waits while memory is over its limit,
    /// because running jobs frees memory.
    pub fn is_crowded(&self) -> bool {
        self.jobs.len() > MAX_QUEUED || self.waits_for_memory()
    }

    /// Returns true if waiting callers can continue. Room for a single job is not enough, because
    /// then they would be woken for each job.
    pub fn has_room(&self) -> bool {
        self.jobs.len() <= MAX_QUEUED / 2 && !self.waits_for_memory()
    }

    fn waits_for_memory(&self) -> bool {
        !self.jobs.is_empty() && memory::active() > memory::memory_limit()
    }

    pub fn end_job(&mut self) {
        self.busy = false;
        self.finished += 1;
    }
}

/// Jobs that were removed from their queue because the system provided no thread.
#[must_use = "arrays would be waited for without end"]
pub struct Stranded {
    pub(super) jobs: VecDeque<Waiting>,
    pub(super) error: Error,
}

impl Stranded {
    /// Calls the jobs with the error, which poisons their results. Call it without locks.
    pub fn fail(self) {
        for Waiting { job, ready, .. } in self.jobs {
            drop(ready);
            job(Err(self.error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, Waiting};

    #[test]
    fn jobs_pass_those_that_are_not_ready() {
        let mut queue = Queue::default();
        let job = |name: &'static str, ready: bool, ordered| {
            let job = Box::new(move |_| panic!("{name} runs"));
            Waiting { job, ready: Some(Box::new(move || ready)), ordered }
        };
        queue.jobs.push_back(job("a", false, false));
        queue.jobs.push_back(job("b", false, true));
        queue.jobs.push_back(job("c", true, true));
        assert!(!queue.has_ready(), "c passed b");
        queue.jobs.push_back(job("d", true, false));
        let taken = queue.take_ready().expect("d is ready");
        assert!(!taken.ordered && queue.jobs.len() == 3 && !queue.has_ready());
        queue.jobs.remove(1);
        assert!(queue.take_ready().is_some_and(|job| job.ordered));
    }
}
