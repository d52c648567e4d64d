//! Defers the deleters of imported memory until the job ends, because deleters run foreign code.
//! That code may wait for a lock, such as an interpreter's, whose holder waits for the job's
//! stream. A fork waits for the stream, too.

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

/// From now on, imported memory is leaked instead of running its deleters. Call it when an
/// interpreter exits: a deleter may need the interpreter's lock, and taking it after the
/// interpreter has ended would end the thread or the process.
pub fn leak_from_now_on() {
    LEAKING.store(true, Ordering::Release);
}

/// Returns true while this thread runs a job. The thread then owns a stream, and must not run
/// deleters.
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

/// Drops a foreign owner at once or, inside a job, when the job has ended.
#[inline]
pub fn drop_outside<T: Send + 'static>(release: T) {
    match (LEAKING.load(Ordering::Acquire), in_job()) {
        (true, _) => std::mem::forget(release),
        (_, true) => keep(Box::new(release)),
        _ => drop(release),
    }
}

/// Keeps an owner for later. While the thread is exiting, drops it at once.
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

/// Runs the deleters that this thread deferred. Call it without locks, and without owning a stream.
/// Inside a job it does nothing.
#[inline]
pub fn release() {
    if waiting() > 0 && !in_job() {
        for release in DEFERRED.try_with(RefCell::take).into_iter().flatten() {
            drop_outside(release);
        }
    }
}
