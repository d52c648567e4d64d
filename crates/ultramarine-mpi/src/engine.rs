//! The thread that calls MPI, and the commands that other threads give it.
//!
//! The thread starts MPI, posts non-blocking calls of any number of communicators, tests the calls,
//! and ends MPI. While requests are pending, it yields the processor between tests, and then sleeps
//! for increasing times, up to [`LONGEST_NAP`]. Thus ranks that share a core, and the program's own
//! kernels, have priority. Without requests, it sleeps until the next one.

use crate::board::{Board, Watched};
use crate::call::Call;
use crate::error::Error;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The longest sleep between two tests of pending requests.
pub const LONGEST_NAP: Duration = Duration::from_micros(500);

/// Time between two checks by a waiting thread: of the limit, and of failures that the MPI thread
/// cannot report.
const LOOK: Duration = Duration::from_millis(200);

/// An MPI communicator: its index in the engine's list, and this process's rank.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub index: usize,
    pub rank: usize,
    pub size: usize,
}

/// A task for the MPI thread.
pub enum Job {
    /// Posts calls, in order.
    Calls(Vec<Call>),
    /// Posts a message whose memory is kept here until the message is delivered, so that the
    /// submitting thread need not wait.
    Send { calls: Vec<Call>, kept: Kept },
    /// Makes a GPU's context current. It comes before calls with the GPU's memory.
    UseDevice(i32),
    /// Divides the communicator.
    Split { color: i32, key: i32 },
    /// Ends MPI when all other tasks are complete.
    Finish,
}

/// The memory of a message that is not delivered yet. It is released on delivery.
pub struct Kept {
    pub bytes: usize,
    /// Keeps the memory alive until it is dropped.
    pub _owner: Box<dyn Send>,
}

/// A [`Job`] with its communicator, and the [`Ticket`] for its result.
pub struct Command {
    pub comm: Place,
    pub description: String,
    pub job: Job,
    pub watched: Watched,
    pub ticket: Arc<Ticket>,
}

/// The result of a command: a communicator for [`Job::Split`].
type Outcome = Result<Option<Place>, Error>;

/// Receives a command's result, for which the submitting thread waits.
#[derive(Default)]
pub struct Ticket {
    outcome: Mutex<Option<Outcome>>,
    changed: Condvar,
}

impl Ticket {
    /// Sets the result, once.
    pub fn complete(&self, outcome: Outcome) {
        lock(&self.outcome).get_or_insert(outcome);
        self.changed.notify_all();
    }

    /// Returns the result, if it arrives within `time`.
    pub fn wait_for(&self, time: Duration) -> Option<Outcome> {
        let outcome = lock(&self.outcome);
        let waited = self.changed.wait_timeout_while(outcome, time, |outcome| outcome.is_none());
        waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0.clone()
    }
}

/// Ends all processes by MPI. Any thread may call it.
pub trait Ends: Send + Sync {
    /// `MPI_Abort`: ends the job's processes.
    fn abort(&self, code: i32);
}

/// The state that all threads share: the queue of commands for the thread of MPI, the [`Board`],
/// and whether MPI can still be used.
pub struct Engine {
    pub board: Board,
    /// The id of the process that started MPI.
    process: u32,
    queue: Mutex<VecDeque<Command>>,
    arrived: Condvar,
    finished: AtomicBool,
    /// Set to make the MPI thread stop calling MPI.
    pub stop: AtomicBool,
    /// Set once the MPI thread has stopped calling MPI.
    pub stopped: AtomicBool,
    thread: OnceLock<ThreadId>,
    /// Set once MPI runs, if MPI can use GPU memory.
    pub device_memory: AtomicBool,
    /// True if a GPU's context is current in the MPI thread.
    pub uses_device: AtomicBool,
    /// Set once MPI runs.
    pub ends: OnceLock<Box<dyn Ends>>,
}

impl Engine {
    pub fn new(board: Board) -> Self {
        Engine {
            board,
            process: std::process::id(),
            queue: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
            finished: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            thread: OnceLock::new(),
            device_memory: AtomicBool::new(false),
            uses_device: AtomicBool::new(false),
            ends: OnceLock::new(),
        }
    }

    /// Fails in a forked child, after MPI has ended, and after a failure.
    pub fn usable(&self) -> Result<(), Error> {
        self.here()?;
        self.board.usable()?;
        if self.finished.load(Ordering::Acquire) { Err(Error::Finished) } else { Ok(()) }
    }

    /// Fails in a forked child. It takes no lock, because another thread of the parent may have
    /// held the lock.
    pub fn here(&self) -> Result<(), Error> {
        let child = std::process::id();
        if child == self.process {
            return Ok(());
        }
        Err(Error::Forked { parent: self.process, child })
    }

    /// Submits a task.
    pub fn submit(&self, comm: Place, job: Job, description: &str) -> (Arc<Ticket>, Watched) {
        let ticket = Arc::new(Ticket::default());
        let watched = self.board.watch(description);
        let description = description.to_owned();
        let command = Command { comm, description, job, watched, ticket: ticket.clone() };
        let mut queue = lock(&self.queue);
        if self.finished.load(Ordering::Acquire) {
            command.ticket.complete(Err(Error::Finished));
        } else {
            queue.push_back(command);
        }
        drop(queue);
        self.arrived.notify_one();
        (ticket, watched)
    }

    /// Submits a task, and waits for its result up to the limit.
    pub fn run(&self, comm: Place, job: Job, description: &str) -> Outcome {
        self.usable()?;
        let (ticket, watched) = self.submit(comm, job, description);
        self.wait(&ticket, watched)
    }

    /// Waits for a result up to the limit.
    pub fn wait(&self, ticket: &Ticket, watched: Watched) -> Outcome {
        loop {
            let left = self.board.left(watched).unwrap_or(LOOK);
            // After the limit has passed, wait for a short time before the check.
            let time = left.clamp(Duration::from_millis(1), LOOK);
            if let Some(outcome) = ticket.wait_for(time) {
                return outcome;
            }
            if let Some(error) = self.board.expire() {
                return Err(error);
            }
            if let Some(error) = self.board.abandoned() {
                return Err(error);
            }
        }
    }

    /// Returns true on the MPI thread.
    pub fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// Marks the calling thread as the MPI thread.
    pub fn enter(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// Notes that MPI has ended: later tasks, and tasks in the queue, fail.
    pub fn finish(&self) {
        let mut queue = lock(&self.queue);
        self.finished.store(true, Ordering::Release);
        self.stopped.store(true, Ordering::Release);
        for command in queue.drain(..) {
            command.ticket.complete(Err(Error::Finished));
        }
    }

    /// Takes the tasks in the queue.
    pub fn take(&self) -> VecDeque<Command> {
        std::mem::take(&mut *lock(&self.queue))
    }

    /// Sleeps until a task arrives. If a time is given, no longer than that.
    pub fn sleep(&self, time: Option<Duration>) {
        let queue = lock(&self.queue);
        let idle =
            |queue: &mut VecDeque<Command>| queue.is_empty() && !self.stop.load(Ordering::Acquire);
        // Both return with the lock, even if another thread panicked.
        match time {
            Some(time) => drop(self.arrived.wait_timeout_while(queue, time, idle)),
            None => drop(self.arrived.wait_while(queue, idle)),
        }
    }

    /// Makes the MPI thread stop calling MPI, and waits until it has.
    pub fn halt(&self, time: Duration) -> bool {
        self.stop.store(true, Ordering::Release);
        drop(lock(&self.queue));
        self.arrived.notify_all();
        let start = Instant::now();
        while !self.stopped.load(Ordering::Acquire) && start.elapsed() < time {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.stopped.load(Ordering::Acquire)
    }
}

/// Locks a mutex, even if another thread panicked, because the data is consistent between two
/// steps.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
