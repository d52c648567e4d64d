//! The thread that talks to MPI, and what others hand to it.
//!
//! It starts MPI, posts non-blocking calls of any number of communicators, tests them, and ends MPI. While requests are
//! pending it yields the processor between tests and then sleeps for longer and longer, up to [`LONGEST_NAP`]: ranks that share
//! a core, and the program's own kernels, come first. Without requests it sleeps until the next one.

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

/// How often a waiting thread looks for itself at the limit, and at failures that the thread of MPI cannot report.
const LOOK: Duration = Duration::from_millis(200);

/// A communicator of MPI: its index in the engine's list, and this process's place in it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub index: usize,
    pub rank: usize,
    pub size: usize,
}

/// A task for the thread of MPI.
pub enum Job {
    /// Posts calls, in order.
    Calls(Vec<Call>),
    /// A message whose memory is kept here until it is delivered; its submitter need not wait.
    Send { calls: Vec<Call>, kept: Kept },
    /// Makes a GPU's context current, before calls with its memory.
    UseDevice(i32),
    /// Divides the communicator.
    Split { color: i32, key: i32 },
    /// Ends MPI, when all else is complete.
    Finish,
}

/// The memory of a message that is under way. It is released when the message is delivered.
pub struct Kept {
    pub bytes: usize,
    /// Holds the memory, until it is dropped.
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

/// Result of a command; a communicator for [`Job::Split`].
type Outcome = Result<Option<Place>, Error>;

/// The place for a command's result. The submitting thread waits for it.
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

    /// The result, where it comes within a time.
    pub fn wait_for(&self, time: Duration) -> Option<Outcome> {
        let outcome = lock(&self.outcome);
        let waited = self.changed.wait_timeout_while(outcome, time, |outcome| outcome.is_none());
        waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0.clone()
    }
}

/// The end of all processes by MPI itself, callable from any thread.
pub trait Ends: Send + Sync {
    /// `MPI_Abort`: ends the job's processes.
    fn abort(&self, code: i32);
}

/// The state that all threads share: the queue of commands for the thread of MPI, the [`Board`],
/// and whether MPI can still be used.
pub struct Engine {
    pub board: Board,
    /// The process that started MPI.
    process: u32,
    queue: Mutex<VecDeque<Command>>,
    arrived: Condvar,
    finished: AtomicBool,
    /// Asks the thread of MPI to make no more calls.
    pub stop: AtomicBool,
    /// The thread of MPI makes no more calls.
    pub stopped: AtomicBool,
    thread: OnceLock<ThreadId>,
    /// MPI reads and writes GPUs' memory; set when MPI runs.
    pub device_memory: AtomicBool,
    /// A GPU's context is current in the thread of MPI.
    pub uses_device: AtomicBool,
    /// Set when MPI runs.
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

    /// Fails in a forked child, after the end of MPI and after a failure.
    pub fn usable(&self) -> Result<(), Error> {
        self.here()?;
        self.board.usable()?;
        if self.finished.load(Ordering::Acquire) { Err(Error::Finished) } else { Ok(()) }
    }

    /// Fails in a forked child. Takes no lock, since another thread of the parent may have held it.
    pub fn here(&self) -> Result<(), Error> {
        let child = std::process::id();
        if child == self.process {
            return Ok(());
        }
        Err(Error::Forked { parent: self.process, child })
    }

    /// Hands a task over.
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

    /// Hands a task over and waits for its result, until the limit.
    pub fn run(&self, comm: Place, job: Job, description: &str) -> Outcome {
        self.usable()?;
        let (ticket, watched) = self.submit(comm, job, description);
        self.wait(&ticket, watched)
    }

    /// Waits for a result, until the limit.
    pub fn wait(&self, ticket: &Ticket, watched: Watched) -> Outcome {
        loop {
            let left = self.board.left(watched).unwrap_or(LOOK);
            // A limit that has just passed is looked at after a short wait.
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

    /// Returns true on the thread of MPI.
    pub fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// Names the calling thread as that of MPI.
    pub fn enter(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// MPI has ended: later tasks fail, also those that have arrived.
    pub fn finish(&self) {
        let mut queue = lock(&self.queue);
        self.finished.store(true, Ordering::Release);
        self.stopped.store(true, Ordering::Release);
        for command in queue.drain(..) {
            command.ticket.complete(Err(Error::Finished));
        }
    }

    /// Tasks that have arrived.
    pub fn take(&self) -> VecDeque<Command> {
        std::mem::take(&mut *lock(&self.queue))
    }

    /// Sleeps until a task arrives; with a time, no longer than that.
    pub fn sleep(&self, time: Option<Duration>) {
        let queue = lock(&self.queue);
        let idle =
            |queue: &mut VecDeque<Command>| queue.is_empty() && !self.stop.load(Ordering::Acquire);
        // Both return with the lock also where another thread panicked.
        match time {
            Some(time) => drop(self.arrived.wait_timeout_while(queue, time, idle)),
            None => drop(self.arrived.wait_while(queue, idle)),
        }
    }

    /// Asks the thread of MPI to make no more calls, and waits for that.
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

/// Locks, also where another thread panicked: the data stay whole between two steps.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
