//! Defers deleters of imported memory until the job ends, because they run foreign code. That code
//! may wait for a lock, such as an interpreter's, whose holder waits for the job's stream. A fork
//! waits for the stream too.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

/// An owner of imported memory. Dropping it releases the memory.
type Release = Box<dyn Any + Send>;

thread_local! {
    /// True while this thread runs a job.
    static IN_JOB: Cell<bool> = const { Cell::new(false) };
    /// Deleters that were deferred by jobs of this thread.
    static DEFERRED: RefCell<Vec<Release>> = const { RefCell::new(Vec::new()) };
}

/// True if owners are leaked from now on.
static LEAKING: AtomicBool = AtomicBool::new(false);

/// From now on, leaks imported memory instead of running its deleters. Called at the exit of an
/// interpreter: deleters may need its lock, and once the interpreter is gone, trying to take the
/// lock ends the thread or the process.
pub fn leak_from_now_on() {
    LEAKING.store(true, Ordering::Release);
}

/// Returns true while this thread runs a job. The thread then owns a stream, and no deleter may
/// run.
#[inline]
pub fn in_job() -> bool {
    IN_JOB.get()
}

/// Runs a job, and defers deleters during it. The caller of the outermost job has to release its
/// stream, and then call [`release`].
pub fn job(f: impl FnOnce()) {
    let before = IN_JOB.replace(true);
    f();
    IN_JOB.set(before);
}

/// Drops a foreign owner: at once, or after the job that this thread is running.
#[inline]
pub fn drop_outside<T: Send + 'static>(release: T) {
    match (LEAKING.load(Ordering::Acquire), in_job()) {
        (true, _) => std::mem::forget(release),
        (_, true) => keep(Box::new(release)),
        _ => drop(release),
    }
}

/// Defers the drop of an owner. While the thread is ending, the owner is dropped at once.
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

/// Runs the deleters that this thread deferred. The caller must hold no locks and own no stream.
/// Inside of a job, this does nothing.
#[inline]
pub fn release() {
    if waiting() > 0 && !in_job() {
        for release in DEFERRED.try_with(RefCell::take).into_iter().flatten() {
            drop_outside(release);
        }
    }
}
