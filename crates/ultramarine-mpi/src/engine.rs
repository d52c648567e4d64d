//! The state that the thread of MPI shares with other threads, and the commands that they give it.
//!
//! The thread of MPI starts MPI, posts non-blocking calls of any number of communicators, tests
//! them, and ends MPI. While requests are pending, it first yields the processor between tests and
//! then sleeps for longer and longer, up to [`LONGEST_NAP`]. This leaves the cores to the program's
//! own kernels and to other ranks that share them. Without requests it sleeps until the next one
//! arrives.

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

/// How often a waiting thread itself checks the limit, and failures that the thread of MPI cannot
/// report.
const LOOK: Duration = Duration::from_millis(200);

/// A communicator of MPI: its index in the engine's list, and this process's rank in it.
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
    /// Sends a message. The memory is kept here until the message is delivered, so its submitter
    /// need not wait.
    Send { calls: Vec<Call>, kept: Kept },
    /// Makes a GPU's context current, before calls that use its memory.
    UseDevice(i32),
    /// Divides the communicator.
    Split { color: i32, key: i32 },
    /// Ends MPI when all other requests are complete.
    Finish,
}

/// The memory of a message in progress. It is released when the message is delivered.
pub struct Kept {
    pub bytes: usize,
    /// The owner of the memory. Dropping it releases the memory.
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

/// The result of a command; for [`Job::Split`], a communicator.
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

    /// Waits for the result for at most this time.
    pub fn wait_for(&self, time: Duration) -> Option<Outcome> {
        let outcome = lock(&self.outcome);
        let waited = self.changed.wait_timeout_while(outcome, time, |outcome| outcome.is_none());
        waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0.clone()
    }
}

/// Ends all processes through MPI. Any thread may call it.
pub trait Ends: Send + Sync {
    /// `MPI_Abort`: ends the job's processes.
    fn abort(&self, code: i32);
}

/// The state that all threads share: the queue of commands for the thread of MPI, the [`Board`],
/// and flags that say if MPI can still be used.
pub struct Engine {
    pub board: Board,
    /// The id of the process that started MPI.
    process: u32,
    queue: Mutex<VecDeque<Command>>,
    arrived: Condvar,
    finished: AtomicBool,
    /// Set to make the MPI thread stop calling MPI.
    pub stop: AtomicBool,
    /// True once the thread of MPI makes no more calls.
    pub stopped: AtomicBool,
    thread: OnceLock<ThreadId>,
    /// True if MPI can read and write GPU memory. It is set when MPI runs.
    pub device_memory: AtomicBool,
    /// True if a GPU's context is current in the thread of MPI.
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

    /// Returns an error in a forked child, after the end of MPI and after a failure.
    pub fn usable(&self) -> Result<(), Error> {
        self.here()?;
        self.board.usable()?;
        if self.finished.load(Ordering::Acquire) { Err(Error::Finished) } else { Ok(()) }
    }

    /// Returns an error in a forked child. Takes no lock, because another thread of the parent may
    /// have held it.
    pub fn here(&self) -> Result<(), Error> {
        let child = std::process::id();
        if child == self.process {
            return Ok(());
        }
        Err(Error::Forked { parent: self.process, child })
    }

    /// Gives a job to the thread of MPI.
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

    /// Gives a job to the thread of MPI and waits for its result, until the limit.
    pub fn run(&self, comm: Place, job: Job, description: &str) -> Outcome {
        self.usable()?;
        let (ticket, watched) = self.submit(comm, job, description);
        self.wait(&ticket, watched)
    }

    /// Waits for a result up to the limit.
    pub fn wait(&self, ticket: &Ticket, watched: Watched) -> Outcome {
        loop {
            let left = self.board.left(watched).unwrap_or(LOOK);
            // If the limit has just passed, check it after a short wait.
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

    /// Marks the calling thread as that of MPI.
    pub fn enter(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// Called when MPI has ended: later jobs fail, and so do those that are queued.
    pub fn finish(&self) {
        let mut queue = lock(&self.queue);
        self.finished.store(true, Ordering::Release);
        self.stopped.store(true, Ordering::Release);
        for command in queue.drain(..) {
            command.ticket.complete(Err(Error::Finished));
        }
    }

    /// Takes the queued jobs.
    pub fn take(&self) -> VecDeque<Command> {
        std::mem::take(&mut *lock(&self.queue))
    }

    /// Sleeps until a job arrives; if a time is given, for at most that time.
    pub fn sleep(&self, time: Option<Duration>) {
        let queue = lock(&self.queue);
        let idle =
            |queue: &mut VecDeque<Command>| queue.is_empty() && !self.stop.load(Ordering::Acquire);
        // Both return with the lock, even if another thread has panicked.
        match time {
            Some(time) => drop(self.arrived.wait_timeout_while(queue, time, idle)),
            None => drop(self.arrived.wait_while(queue, idle)),
        }
    }

    /// Asks the thread of MPI to make no more calls, and waits until it has stopped.
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

/// Locks a mutex, even if another thread has panicked, because the data stay consistent between two
/// steps.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
