//! Threads that run the jobs of streams. A stream has one while it has jobs; between jobs they wait for any stream, so
//! there are about as many as there are streams at work at one time.

use super::StreamState;
use crate::backend::shutdown;
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a thread waits for a stream before it ends.
const IDLE: Duration = Duration::from_secs(2);

/// Least time that a thread waits that may not end.
const SHORTEST: Duration = Duration::from_millis(100);

/// Threads that may wait at one time; one more ends at once.
const MOST_IDLE: usize = 8;

pub(super) struct Workers {
    /// Streams that have jobs and no thread yet: each has been promised one of those that wait.
    ready: VecDeque<&'static StreamState>,
    /// Threads that wait and have been promised none. The one that ran last is at the end and comes first: what it worked
    /// on may be in its processor's caches still.
    idle: Vec<Thread>,
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers { ready: VecDeque::new(), idle: Vec::new() });

/// Has a thread run a stream's jobs: one that waits, or a new one.
///
/// # Errors
/// The system's, if it has no thread.
pub(super) fn start(state: &'static StreamState) -> std::io::Result<()> {
    let mut workers = lock(&WORKERS);
    if let Some(thread) = workers.idle.pop() {
        workers.ready.push_back(state);
        drop(workers);
        thread.unpark();
        return Ok(());
    }
    drop(workers);
    let named = std::thread::Builder::new().name("ultramarine-stream".into());
    named.spawn(move || run(state)).map(drop)
}

fn run(first: &'static StreamState) {
    let mut next = Some(first);
    while let Some(state) = next {
        state.run_jobs();
        next = await_stream();
    }
}

/// A stream that has jobs; `None` when it is time to end.
fn await_stream() -> Option<&'static StreamState> {
    let own = std::thread::current();
    let mut workers = lock(&WORKERS);
    // A stream that was promised a thread is left to those that wait.
    if workers.idle.len() >= MOST_IDLE && may_end() {
        return None;
    }
    let end = Instant::now() + IDLE;
    loop {
        if !workers.idle.iter().any(|thread| thread.id() == own.id()) {
            workers.idle.push(own.clone());
        }
        drop(workers);
        std::thread::park_timeout(end.saturating_duration_since(Instant::now()).max(SHORTEST));
        workers = lock(&WORKERS);
        let found = workers.ready.pop_front();
        let ends = found.is_none() && Instant::now() >= end && may_end();
        if found.is_some() || ends {
            workers.idle.retain(|thread| thread.id() != own.id());
            return found;
        }
    }
}

/// The end of a thread runs destructors of libraries, which may be gone where the process exits.
fn may_end() -> bool {
    shutdown::ended().is_none()
}

/// Keeps threads from coming and going, while a fork is under way.
pub(super) fn hold() -> MutexGuard<'static, Workers> {
    lock(&WORKERS)
}

impl Workers {
    /// In a forked child: the threads stayed behind.
    pub fn forget(&mut self) {
        self.ready.clear();
        self.idle.clear();
    }
}
