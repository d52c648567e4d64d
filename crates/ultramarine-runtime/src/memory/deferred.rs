//! Releases of others' memory that a job causes. They run code of strangers, who may wait for
//! locks of theirs (an interpreter's, say), so they wait until the job has left its stream: a fork, or
//! whoever holds such a lock and waits for the stream, would else wait for ever.

use std::any::Any;
use std::cell::{Cell, RefCell};

/// What is released by being dropped.
type Release = Box<dyn Any + Send>;

thread_local! {
    /// Whether this thread is inside of a job.
    static IN_JOB: Cell<bool> = const { Cell::new(false) };
    /// What the jobs of this thread left behind.
    static LATE: RefCell<Vec<Release>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread is inside of a job: it owns a stream.
#[inline]
pub fn in_job() -> bool {
    IN_JOB.get()
}

/// Runs a job. Whoever ran the outermost one gives its stream free and then calls
/// [`release`].
pub fn job(f: impl FnOnce()) {
    let before = IN_JOB.replace(true);
    f();
    IN_JOB.set(before);
}

/// Releases what a stranger owns: now, or inside of a job once that is over.
#[inline]
pub fn drop_outside<T: Send + 'static>(release: T) {
    if in_job() { keep(Box::new(release)) } else { drop(release) }
}

/// (At the thread's end there is no later.)
#[cold]
fn keep(release: Release) {
    let mut release = Some(release);
    let _ = LATE.try_with(|late| late.borrow_mut().extend(release.take()));
}

/// How much waits to be released by this thread.
pub fn waiting() -> usize {
    LATE.try_with(|late| late.borrow().len()).unwrap_or(0)
}

/// Releases what the jobs of this thread left behind. Call it without locks and without a
/// stream. In jobs it does nothing.
#[inline]
pub fn release() {
    if waiting() > 0 && !in_job() {
        let late = LATE.try_with(RefCell::take);
        drop(late);
    }
}
