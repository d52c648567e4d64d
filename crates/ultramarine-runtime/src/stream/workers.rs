//! Threads that run the jobs of streams. A stream has one while it has jobs; between jobs they wait for any stream, so
//! there are about as many as there are streams at work at one time.

use super::StreamState;
use crate::backend::shutdown;
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread waits for a stream before it ends.
const IDLE: Duration = Duration::from_secs(2);

/// Threads that may wait at one time; one more ends at once.
const MOST_IDLE: usize = 8;

pub(super) struct Workers {
    /// Streams that have jobs and no thread yet: each has been promised one of those that wait.
    ready: VecDeque<Arc<StreamState>>,
    /// Threads that wait.
    idle: usize,
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers { ready: VecDeque::new(), idle: 0 });
static READY: Condvar = Condvar::new();

/// Has a thread run a stream's jobs: one that waits, or a new one.
///
/// # Errors
/// The system's, if it has no thread.
pub(super) fn start(state: &Arc<StreamState>) -> std::io::Result<()> {
    let mut workers = lock(&WORKERS);
    if workers.idle > workers.ready.len() {
        workers.ready.push_back(state.clone());
        drop(workers);
        READY.notify_one();
        return Ok(());
    }
    drop(workers);
    let first = state.clone();
    let named = std::thread::Builder::new().name("ultramarine-stream".into());
    named.spawn(move || run(first)).map(drop)
}

fn run(first: Arc<StreamState>) {
    let mut next = Some(first);
    while let Some(state) = next {
        state.run_jobs();
        // While it waits it keeps no stream alive.
        drop(state);
        next = await_stream();
    }
}

/// A stream that has jobs; `None` when it is time to end.
fn await_stream() -> Option<Arc<StreamState>> {
    let mut workers = lock(&WORKERS);
    // A stream that was promised a thread is left to those that wait.
    if workers.idle >= MOST_IDLE && may_end() {
        return None;
    }
    workers.idle += 1;
    loop {
        let waited = READY.wait_timeout(workers, IDLE);
        let timeout;
        (workers, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = workers.ready.pop_front() {
            workers.idle -= 1;
            return Some(state);
        }
        if timeout.timed_out() && may_end() {
            workers.idle -= 1;
            return None;
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
        self.idle = 0;
    }
}
