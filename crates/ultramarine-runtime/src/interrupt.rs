//! Requests to give up what a thread waits for or computes: Ctrl-C, as the embedding language sees it.
//!
//! The language registers a [`Handler`]. It is asked between tasks, between the pieces of loops and in waits, at most every
//! [`PERIOD`]. An evaluation that is asked to stop gives its nodes up, and only then is the request handled: what the
//! handler runs may evaluate arrays, and the evaluation may go on afterwards.

use crate::error::Result;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The time between two questions of one thread.
pub const PERIOD: Duration = Duration::from_millis(50);

/// The embedding language's functions for interrupts. They do not unwind.
pub struct Handler {
    /// Returns true if there is a request for the calling thread. Runs no code of users.
    pub is_requested: fn() -> bool,
    /// Handles the request: runs the user's code for it. An error ends the evaluation; else it goes on.
    pub handle: fn() -> Result<()>,
}

static HANDLER: OnceLock<Handler> = OnceLock::new();

/// Registers the handler. Only the first call counts.
pub fn set_handler(handler: Handler) {
    let _ = HANDLER.set(handler);
}

struct Thread {
    /// Milliseconds of [`now`] from which on the handler is asked again.
    next: Cell<u64>,
    /// The thread runs an evaluation that can be given up.
    active: Cell<bool>,
    /// It has to be: results of the tasks under way are incomplete.
    cut: Cell<bool>,
    /// The task under way overwrites an operand, so it has to be finished.
    held: Cell<bool>,
}

/// Threads whose evaluation has to be given up: as long as there are none, no thread looks at its own state, which in a
/// library costs a call.
static CUT: AtomicUsize = AtomicUsize::new(0);

/// Threads that have to finish the task under way, for the same reason.
static HELD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: Thread = const {
        Thread {
            next: Cell::new(0),
            active: Cell::new(false),
            cut: Cell::new(false),
            held: Cell::new(false),
        }
    };
}

/// Milliseconds of a clock that is cheap to ask.
#[cfg(target_os = "linux")]
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

#[cfg(not(target_os = "linux"))]
fn now() -> u64 {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_millis() as u64
}

/// Returns true if there may be requests at all.
#[inline]
pub fn is_possible() -> bool {
    HANDLER.get().is_some()
}

/// Returns true if the calling thread is asked to stop.
#[inline]
pub fn is_requested() -> bool {
    HANDLER.get().is_some_and(|handler| THREAD.with(|thread| thread.ask(handler)))
}

impl Thread {
    fn ask(&self, handler: &Handler) -> bool {
        let now = now();
        if now < self.next.get() {
            return false;
        }
        let requested = (handler.is_requested)();
        // A request is seen again at once, by what it ends next.
        self.next.set(if requested { now } else { now + PERIOD.as_millis() as u64 });
        requested
    }
}

/// Sets a flag of a thread, and counts those that are set. Returns what it was.
fn set(flag: &Cell<bool>, threads: &AtomicUsize, value: bool) -> bool {
    let before = flag.replace(value);
    match (before, value) {
        (false, true) => threads.fetch_add(1, Ordering::Relaxed),
        (true, false) => threads.fetch_sub(1, Ordering::Relaxed),
        _ => 0,
    };
    before
}

/// Handles a request, outside of evaluations.
///
/// # Errors
/// The language's own, which ends what the thread waits for.
#[cold]
pub fn handle() -> Result<()> {
    HANDLER.get().map_or(Ok(()), |handler| (handler.handle)())
}

/// Runs an evaluation that can be given up; true if it was.
#[inline]
pub fn run(f: impl FnOnce()) -> bool {
    if !is_possible() {
        f();
        return false;
    }
    THREAD.with(|thread| {
        thread.active.set(true);
        f();
        thread.active.set(false);
        set(&thread.held, &HELD, false);
        set(&thread.cut, &CUT, false)
    })
}

/// Returns true in an evaluation that has to be given up.
#[inline]
pub fn is_cut() -> bool {
    CUT.load(Ordering::Relaxed) > 0 && THREAD.with(|thread| thread.cut.get())
}

/// Says whether the evaluation shall be given up here: between tasks, or inside of a loop whose task is then not finished.
#[inline]
pub fn is_due() -> bool {
    let Some(handler) = HANDLER.get() else { return false };
    THREAD.with(|thread| {
        let cut =
            thread.cut.get() || (thread.active.get() && !thread.held.get() && thread.ask(handler));
        if cut {
            set(&thread.cut, &CUT, true);
        }
        cut
    })
}

/// Has the task under way be finished, since it overwrites an operand; outside of tasks, the evaluation.
#[inline]
pub fn hold() {
    if is_possible() {
        THREAD.with(|thread| set(&thread.held, &HELD, true));
    }
}

/// Runs a task, which may [`hold`].
#[inline]
pub fn task<T>(f: impl FnOnce() -> T) -> T {
    let held = || HELD.load(Ordering::Relaxed) > 0 && THREAD.with(|thread| thread.held.get());
    let before = held();
    let result = f();
    if !before && held() {
        THREAD.with(|thread| set(&thread.held, &HELD, false));
    }
    result
}
