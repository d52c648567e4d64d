//! Threads that run the jobs of streams. A stream has a thread while it has jobs. Idle threads wait
//! for any stream, so there are about as many threads as streams that work at the same time.

use super::StreamState;
use crate::backend::shutdown;
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long an idle thread waits for a stream before it ends.
const IDLE: Duration = Duration::from_secs(2);

/// The shortest wait of an idle thread that must not end.
const SHORTEST: Duration = Duration::from_millis(100);

/// The most threads that may be idle at one time. Any further idle thread ends at once.
const MOST_IDLE: usize = 8;

pub(super) struct Workers {
    /// Streams that have jobs and no thread yet. For each, an idle thread has been woken.
    ready: VecDeque<&'static StreamState>,
    /// Idle threads that have not been woken for a stream. The thread that ran last is at the end
    /// of the list and is taken first, because its data may still be in its processor's caches.
    idle: Vec<Thread>,
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers { ready: VecDeque::new(), idle: Vec::new() });

/// Makes a thread run a stream's jobs: an idle thread, or a new one.
///
/// # Errors
/// Those of the system, if it cannot start a thread.
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

/// Waits for a stream that has jobs. Returns `None` when the thread should end.
fn await_stream() -> Option<&'static StreamState> {
    let own = std::thread::current();
    let mut workers = lock(&WORKERS);
    // A stream in `ready` is left to the idle thread that was woken for it.
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

/// Returns false while the process exits. The end of a thread runs destructors of libraries, which
/// may be unloaded by then.
fn may_end() -> bool {
    shutdown::ended().is_none()
}

/// Keeps threads from starting and ending during a fork.
pub(super) fn hold() -> MutexGuard<'static, Workers> {
    lock(&WORKERS)
}

impl Workers {
    /// Called in a forked child, where the threads do not exist.
    pub fn forget(&mut self) {
        self.ready.clear();
        self.idle.clear();
    }
}
