//! Defers deleters of imported memory until the job ends, because they run foreign code. That code may wait for a lock
//! of its own, such as an interpreter's, whose holder waits for the job's stream; a fork waits for the stream, too.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

/// An owner of imported memory, which is released by being dropped.
type Release = Box<dyn Any + Send>;

thread_local! {
    /// True while this thread runs a job.
    static IN_JOB: Cell<bool> = const { Cell::new(false) };
    /// Deleters that the jobs of this thread deferred.
    static DEFERRED: RefCell<Vec<Release>> = const { RefCell::new(Vec::new()) };
}

/// Owners are leaked from here on.
static LEAKING: AtomicBool = AtomicBool::new(false);

/// Leaks imported memory from here on instead of running its deleters. For the exit of an interpreter: deleters may want
/// its lock, and the attempt ends the thread or the process once the interpreter is gone.
pub fn leak_from_now_on() {
    LEAKING.store(true, Ordering::Release);
}

/// Returns true while this thread runs a job: it then owns a stream, and no deleter may run.
#[inline]
pub fn in_job() -> bool {
    IN_JOB.get()
}

/// Runs a job, during which deleters are deferred. The caller of the outermost job releases its
/// stream and then calls [`release`].
pub fn job(f: impl FnOnce()) {
    let before = IN_JOB.replace(true);
    f();
    IN_JOB.set(before);
}

/// Drops a foreign owner: at once, or when the job that this thread is in has ended.
#[inline]
pub fn drop_outside<T: Send + 'static>(release: T) {
    match (LEAKING.load(Ordering::Acquire), in_job()) {
        (true, _) => std::mem::forget(release),
        (_, true) => keep(Box::new(release)),
        _ => drop(release),
    }
}

/// (At the thread's end there is no later.)
#[cold]
fn keep(release: Release) {
    let mut release = Some(release);
    let _ = DEFERRED.try_with(|deferred| deferred.borrow_mut().extend(release.take()));
}

/// Returns the number of deleters that this thread has deferred.
#[inline]
pub fn waiting() -> usize {
    DEFERRED.try_with(|deferred| deferred.borrow().len()).unwrap_or(0)
}

/// Runs the deleters that this thread deferred. Call it without locks and without a stream. Inside of a job it does
/// nothing.
#[inline]
pub fn release() {
    if waiting() > 0 && !in_job() {
        for release in DEFERRED.try_with(RefCell::take).into_iter().flatten() {
            drop_outside(release);
        }
    }
}
