//! The queue of a stream. Jobs run in order, but later jobs may pass a job that waits for values.

use crate::error::{Error, Result};
use crate::memory;
use std::collections::VecDeque;

/// A job: a closure in a stream's queue. It is called once: with `Ok` to run, or with the error
/// that keeps it from running. It never unwinds.
pub type Job = Box<dyn FnOnce(Result<()>) + Send>;

/// The condition under which a job runs: the values that it needs are there. It is called under
/// locks, also by [`crate::claim::sleep_until`]. For each missing value it has to call
/// [`crate::claim::Claim::is_over`].
pub type Ready = Box<dyn Fn() -> bool + Send>;

/// The most jobs in a queue. If there are more, submitters have to wait.
const MAX_QUEUED: usize = 64;

/// A job in a queue.
pub(super) struct Waiting {
    pub job: Job,
    /// Returns true once the job is ready; until then, later jobs may pass it. `None` means that it
    /// is ready.
    pub ready: Option<Ready>,
    /// True if the job may not pass earlier jobs that have this flag too.
    pub ordered: bool,
}

impl Waiting {
    fn is_ready(&self) -> bool {
        self.ready.as_ref().is_none_or(|ready| ready())
    }
}

/// The jobs of a stream, and the state of the threads that use it.
#[derive(Default)]
pub(super) struct Queue {
    pub jobs: VecDeque<Waiting>,
    /// True while a thread runs a job of this stream.
    pub busy: bool,
    /// True if a worker thread has the stream, or was told to take it, in this process (not in the
    /// parent of a fork).
    pub worker: bool,
    /// The number of threads that sleep until something changes. Waking is a system call even if no
    /// thread sleeps.
    pub waiting: usize,
    /// The number of submitters that wait for room.
    pub held_back: usize,
    /// True while the worker sleeps until one of its jobs is ready.
    pub asleep: bool,
    /// The number of former workers that run deleters.
    pub releasing: usize,
    /// The number of jobs that have ended, and of threads that have owned the stream.
    pub finished: u64,
}

impl Queue {
    /// Takes the first job that is ready out of the queue.
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

    /// Returns true if too many jobs are queued, or if any are queued while memory is over its
    /// limit, because running them frees memory.
    pub fn is_crowded(&self) -> bool {
        self.jobs.len() > MAX_QUEUED || self.waits_for_memory()
    }

    /// Returns true if callers need not wait any longer. They are not woken for every free place,
    /// but when half of the queue is free.
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

/// Jobs that were taken out of their queue, because the system could not start a thread for them.
#[must_use = "arrays would be waited for without end"]
pub struct Stranded {
    pub(super) jobs: VecDeque<Waiting>,
    pub(super) error: Error,
}

impl Stranded {
    /// Calls the jobs with the error, which poisons their results. The caller must hold no locks.
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
