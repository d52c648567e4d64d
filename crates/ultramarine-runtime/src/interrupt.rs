//! Requests to stop a wait or a computation, such as Ctrl-C in the embedding language.
//!
//! The language registers a [`Handler`]. A thread asks it between tasks, between the pieces of
//! loops and during waits, at most once every [`PERIOD`]. If a stop is requested, the evaluation
//! first gives up its nodes, and then the request is handled. So the code that the handler runs can
//! evaluate arrays, and the evaluation can continue afterwards.

use crate::error::Result;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The shortest time between two calls of the handler on one thread.
pub const PERIOD: Duration = Duration::from_millis(50);

/// The embedding language's functions for interrupts. They do not unwind.
pub struct Handler {
    /// Returns true if there is a request for the calling thread. Does not run any user code.
    pub is_requested: fn() -> bool,
    /// Handles the request by running the user's code for it. An error ends the evaluation;
    /// otherwise the evaluation continues.
    pub handle: fn() -> Result<()>,
}

static HANDLER: OnceLock<Handler> = OnceLock::new();

/// Registers the handler. Later calls have no effect.
pub fn set_handler(handler: Handler) {
    let _ = HANDLER.set(handler);
}

struct Thread {
    /// The time in milliseconds of [`now`] after which the handler is asked again.
    next: Cell<u64>,
    /// True while the thread runs an evaluation that can be given up.
    active: Cell<bool>,
    /// True if the evaluation has to be given up, because the results of the current tasks are
    /// incomplete.
    cut: Cell<bool>,
    /// True if the current task has to be finished, because it overwrites an operand.
    held: Cell<bool>,
}

/// Number of threads whose evaluation has to be given up. While it is 0, threads need not look at
/// their own thread-local state, which costs a function call in a shared library.
static CUT: AtomicUsize = AtomicUsize::new(0);

/// Number of threads that have to finish the current task. It is counted for the same reason.
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

/// Milliseconds of a clock that is cheap to read.
#[cfg(target_os = "linux")]
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for writing the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

#[cfg(not(target_os = "linux"))]
fn now() -> u64 {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_millis() as u64
}

/// Returns true if there is a handler, so that there can be requests.
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
        // After a request, do not wait for the period: the code that the request stops has to see
        // it at once.
        self.next.set(if requested { now } else { now + PERIOD.as_millis() as u64 });
        requested
    }
}

/// Sets a flag of a thread, and updates the number of threads that have it set. Returns the flag's
/// former value.
fn set(flag: &Cell<bool>, threads: &AtomicUsize, value: bool) -> bool {
    let before = flag.replace(value);
    match (before, value) {
        (false, true) => threads.fetch_add(1, Ordering::Relaxed),
        (true, false) => threads.fetch_sub(1, Ordering::Relaxed),
        _ => 0,
    };
    before
}

/// Handles a request outside evaluations.
///
/// # Errors
/// The language's own error, which ends the wait.
#[cold]
pub fn handle() -> Result<()> {
    HANDLER.get().map_or(Ok(()), |handler| (handler.handle)())
}

/// Runs an evaluation that can be given up. Returns true if it was given up.
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

/// Returns true if the evaluation has to be given up at this point. The point is between tasks, or
/// inside of a loop whose task then stays unfinished.
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

/// Makes sure that the current task is finished, because it overwrites an operand. Outside of
/// tasks, this applies to the whole evaluation.
#[inline]
pub fn hold() {
    if is_possible() {
        THREAD.with(|thread| set(&thread.held, &HELD, true));
    }
}

/// Runs a task, which may call [`hold`].
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
