//! Threads that run the jobs of streams. A stream with jobs has one thread. An idle thread can take
//! any stream, so there are about as many threads as streams that are working at the same time.

use super::StreamState;
use crate::backend::shutdown;
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Time for which an idle thread waits for a stream before it ends.
const IDLE: Duration = Duration::from_secs(2);

/// Minimum waiting time of a thread that may not end.
const SHORTEST: Duration = Duration::from_millis(100);

/// Limit on idle threads. A further thread ends at once.
const MOST_IDLE: usize = 8;

pub(super) struct Workers {
    /// Streams that have jobs and no thread yet. Each is reserved for an idle thread that was
    /// woken.
    ready: VecDeque<&'static StreamState>,
    /// Idle threads that no stream is reserved for. The thread that ran last is at the end and is
    /// used first, because its data may still be in its processor's caches.
    idle: Vec<Thread>,
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers { ready: VecDeque::new(), idle: Vec::new() });

/// Makes an idle thread or a new thread run a stream's jobs.
///
/// # Errors
/// Those of the system, if it provides no thread.
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

/// Waits for a stream that has jobs. `None` if the thread should end.
fn await_stream() -> Option<&'static StreamState> {
    let own = std::thread::current();
    let mut workers = lock(&WORKERS);
    // Leave a reserved stream to the threads that were woken for it.
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

/// Returns true if a thread may end. The end of a thread runs destructors of libraries, which may
/// be gone while the process exits.
fn may_end() -> bool {
    shutdown::ended().is_none()
}

/// Prevents threads from starting and ending during a fork.
pub(super) fn hold() -> MutexGuard<'static, Workers> {
    lock(&WORKERS)
}

impl Workers {
    /// Called in a forked child, where these threads do not exist.
    pub fn forget(&mut self) {
        self.ready.clear();
        self.idle.clear();
    }
}
