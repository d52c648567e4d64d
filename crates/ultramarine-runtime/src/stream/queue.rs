//! The queue of a stream: jobs in order, of which those that wait for values may be passed.

use crate::error::{Error, Result};
use crate::memory;
use std::collections::VecDeque;

/// A job: a closure in a stream's queue. Never unwinds. It is called once: with `Ok` to run, or with the error that keeps
/// it from running.
pub type Job = Box<dyn FnOnce(Result<()>) + Send>;

/// The condition under which a job runs: the values that it needs are there. It is asked under locks, by
/// [`crate::claim::sleep_until`] too, and has to call [`crate::claim::Claim::is_over`] for what is missing.
pub type Ready = Box<dyn Fn() -> bool + Send>;

/// Jobs that may wait in one queue before a submitter is held back.
const MAX_QUEUED: usize = 64;

/// A job in a queue.
pub(super) struct Waiting {
    pub job: Job,
    /// Later jobs may pass this one until it is ready. `None`: it is.
    pub ready: Option<Ready>,
    /// It passes no earlier job of which this is true.
    pub ordered: bool,
}

impl Waiting {
    fn is_ready(&self) -> bool {
        self.ready.as_ref().is_none_or(|ready| ready())
    }
}

/// The jobs of a stream and its threads.
#[derive(Default)]
pub(super) struct Queue {
    pub jobs: VecDeque<Waiting>,
    /// A thread is running a job of this stream.
    pub busy: bool,
    /// A worker thread has the stream, or was told to take it (in this process, not in a forked parent).
    pub worker: bool,
    /// Threads that sleep until something changes. Waking is a system call, even of nobody.
    pub waiting: usize,
    /// Threads that are held back until there is room.
    pub held_back: usize,
    /// The worker sleeps until one of its jobs is ready.
    pub asleep: bool,
    /// Former workers that run deleters.
    pub releasing: usize,
    /// Number of jobs that have ended, and of threads that owned the stream.
    pub finished: u64,
}

impl Queue {
    /// The first job that is ready, taken out.
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

    /// Returns true if too many jobs wait, or if any do while memory is over its limit: running them is what frees memory.
    pub fn is_crowded(&self) -> bool {
        self.jobs.len() > MAX_QUEUED || self.waits_for_memory()
    }

    /// Returns true if callers need not be held back any longer. Not as soon as there is room for one job: they would be
    /// woken for each.
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

/// Jobs taken out of their queue, because the system gave no thread for them.
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
