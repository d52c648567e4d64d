//! Streams: ordered queues of work on a device.
//!
//! A host stream has no thread until it needs one. A synchronous evaluation on an idle stream runs
//! on the calling thread, which owns the stream meanwhile. All other work is queued for a worker
//! thread; streams share the workers (`workers.rs`).
//!
//! Jobs enter queues under the scheduler's lock, in an order that respects their dependencies. So
//! waiting inside a job cannot deadlock: the oldest unfinished job of all streams never waits for a
//! younger one.
//!
//! If processes communicate in several groups, a job also waits for other processes, which may run
//! other jobs first. In this case a job that would wait stays in its queue, and later jobs pass it
//! (`queue.rs`).

mod queue;
mod scope;
mod shutdown;
mod thread_local;
mod workers;

pub use crate::device::Stream;
use crate::error::{Error, Result};
use crate::fork::{self, ForkStage, Hook};
use crate::memory::deferred_deleters;
use crate::{backend, claim, device::Device, devices, interrupt, pool, sync::lock};
pub use queue::{Job, Ready, Stranded};
use queue::{Queue, Waiting};
pub use scope::{
    Scope, current, default_device, default_stream, scoped, scoped_device, set_default_device,
    set_default_stream, with_device, with_stream,
};
pub use shutdown::shutdown;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;
pub use thread_local::{ThreadLocalStream, clear_streams};

/// The most deferred deleters that may wait while there are jobs.
const MOST_DEFERRED: usize = 16;

/// How long a thread sleeps before it checks a queue again.
const IDLE: Duration = Duration::from_secs(2);

/// The queue of a stream on the host: jobs in order, run by one thread at a time.
#[derive(Default)]
pub struct StreamState {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Notified when there is room for jobs again.
    room: Condvar,
    /// The first failure of asynchronous work that has not been raised yet.
    failure: Mutex<Option<Arc<Error>>>,
    /// True if jobs may only run on workers.
    off_callers: AtomicBool,
}

#[derive(Default)]
struct Registry {
    streams: Vec<(Stream, &'static StreamState)>,
    defaults: HashMap<Device, Stream>,
    /// Streams without an owner: those of threads that have ended, and those that were released.
    free: Vec<Stream>,
}

static REGISTRY: RwLock<Option<Registry>> = RwLock::new(None);

/// The states of the first streams. They are found here without the registry's lock.
static FIRST: [AtomicPtr<StreamState>; 64] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 64];

/// Makes the state of a stream. It is never freed, because streams are never destroyed.
fn new_state(stream: Stream) -> &'static StreamState {
    let state: &StreamState = Box::leak(Box::default());
    if let Some(first) = FIRST.get(stream.index as usize) {
        first.store(std::ptr::from_ref(state).cast_mut(), Ordering::Release);
    }
    state
}

fn write<T>(f: impl FnOnce(&mut Registry) -> T) -> T {
    fork::register(ForkStage::Streams, &FORK_HOOK);
    let mut guard = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    f(guard.get_or_insert_with(Registry::default))
}

fn read<T>(f: impl FnOnce(&Registry) -> Option<T>) -> Option<T> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(f)
}

impl Registry {
    fn add(&mut self, device: Device) -> Stream {
        let stream = Stream { index: self.streams.len() as u32, device };
        self.streams.push((stream, new_state(stream)));
        stream
    }
}

/// Returns the default stream of a device, and ignores the thread's scope. [`default_stream`] takes
/// the scope into account.
pub fn default_of(device: Device) -> Stream {
    read(|r| r.defaults.get(&device).copied()).unwrap_or_else(|| {
        write(|r| match r.defaults.get(&device) {
            Some(stream) => *stream,
            None => {
                let stream = r.add(device);
                r.defaults.insert(device, stream);
                stream
            }
        })
    })
}

fn set_default_of(stream: Stream) {
    write(|r| r.defaults.insert(stream.device, stream));
}

/// Makes a new stream on a device, which no other code uses. It takes some memory, also on the
/// device, until [`release_stream`].
///
/// # Errors
/// [`crate::Error::Value`] if no loaded backend has the device.
#[inline]
pub fn new_stream(device: Device) -> Result<Stream> {
    devices::get(device)?;
    let stream = take(device);
    thread_local::made(stream);
    Ok(stream)
}

/// Releases a stream that [`new_stream`] made, so that a later call of [`new_stream`] can return
/// it. Work that was given to the stream is still done. Arrays that are to be computed on it are
/// still computed there, in the stream's order, interleaved with the work of its next owner. Has no
/// effect on a stream that was released already, or that is a default stream.
pub fn release_stream(stream: Stream) {
    write(|r| {
        let kept = r.defaults.values().any(|s| *s == stream) || r.free.contains(&stream);
        if !kept && r.streams.get(stream.index as usize).is_some_and(|s| s.0 == stream) {
            r.free.push(stream);
        }
    });
}

/// Takes a stream for a thread, which owns the stream until [`give_back`].
#[inline]
pub fn take(device: Device) -> Stream {
    write(|r| {
        // Take an idle stream, so that its new owner does not wait for the former owner's work.
        let unused =
            |s: &Stream| s.device == device && r.streams[s.index as usize].1.lock().is_idle();
        match r.free.iter().position(unused) {
            Some(i) => r.free.swap_remove(i),
            None => r.add(device),
        }
    })
}

/// Returns streams from [`take`], so that other threads can take them.
pub fn give_back(streams: impl ExactSizeIterator<Item = Stream>) {
    if streams.len() > 0 {
        write(|r| r.free.extend(streams));
    }
}

/// Restricts the jobs of a stream to worker threads. Such jobs may take any time, and a thread that
/// waits for them can be interrupted.
pub fn set_off_callers(stream: Stream, off: bool) {
    if let Some(state) = state(stream)
        && state.off_callers.swap(off, Ordering::Relaxed) != off
    {
        match off {
            true => OFF_CALLERS.fetch_add(1, Ordering::Relaxed),
            false => OFF_CALLERS.fetch_sub(1, Ordering::Relaxed),
        };
    }
}

/// The number of streams that [`set_off_callers`] restricts.
static OFF_CALLERS: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of streams that [`set_off_callers`] restricts.
pub fn off_callers() -> usize {
    OFF_CALLERS.load(Ordering::Relaxed)
}

/// Returns true if [`set_off_callers`] restricts the stream.
pub fn is_off_callers(stream: Stream) -> bool {
    state(stream).is_some_and(|state| state.off_callers.load(Ordering::Relaxed))
}

/// Waits until all work on the stream is done.
///
/// # Errors
/// The first error that was not raised before: of asynchronous work on the stream, or of work that
/// failed on the device after it was submitted. Each error is raised once.
#[inline]
pub fn synchronize(stream: Stream) -> Result<()> {
    let mut failure = None;
    if let Some(state) = state(stream) {
        while !state.wait_until(Queue::is_idle) {
            interrupt::handle()?;
        }
        failure = lock(&state.failure).take();
    }
    let outcome = devices::get(stream.device)?.synchronize(stream);
    failure.map_or(outcome, |error| Err(Error::clone(&error)))
}

/// Marks a failure as raised, so that no stream's [`synchronize`] raises it again.
#[cold]
pub fn raised(error: &Arc<Error>) {
    let all = read(|r| Some(r.streams.iter().map(|s| s.1).collect::<Vec<_>>()));
    for state in all.unwrap_or_default() {
        let mut failure = lock(&state.failure);
        if failure.as_ref().is_some_and(|f| Arc::ptr_eq(Error::cause(f), Error::cause(error))) {
            *failure = None;
        }
    }
}

/// Waits for the work of all streams of all devices. Failures are kept for [`synchronize`] and for
/// the arrays concerned.
pub fn synchronize_all() {
    for (_, state) in all() {
        state.drain();
    }
    for device in backend::gpus() {
        // Ignore the error: it is raised where a value is needed.
        let _ = device.drain();
    }
}

/// Returns all streams.
fn all() -> Vec<(Stream, &'static StreamState)> {
    read(|r| Some(r.streams.clone())).unwrap_or_default()
}

/// Returns true if no stream has work.
#[inline]
pub fn all_idle() -> bool {
    read(|r| Some(r.streams.iter().all(|s| s.1.lock().is_idle()))).unwrap_or(true)
}

/// Returns true if the stream exists.
#[inline]
pub fn exists(stream: Stream) -> bool {
    read(|r| r.streams.get(stream.index as usize).map(|s| s.0 == stream)).unwrap_or(false)
}

/// Returns the queue of a stream; `None` if there is no such stream.
#[inline]
pub fn state(stream: Stream) -> Option<&'static StreamState> {
    let first = FIRST.get(stream.index as usize).map(|state| state.load(Ordering::Acquire));
    // SAFETY: NULL, or a state. States are never freed, and never borrowed mutably.
    let first = first.and_then(|state| unsafe { state.as_ref() });
    first.or_else(|| read(|r| r.streams.get(stream.index as usize).map(|s| s.1)))
}

/// The right to run a job of a stream on the calling thread. When it is dropped, the next job can
/// run.
pub struct Ownership(&'static StreamState);

impl Drop for Ownership {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.end_job();
        let ensured = match queue.jobs.is_empty() {
            true => Ok(()),
            false => self.0.ensure_worker(&mut queue),
        };
        self.0.wake(queue);
        if let Err(stranded) = ensured {
            stranded.fail();
        }
    }
}

impl StreamState {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Takes the stream for the calling thread. Returns `None` if the stream has work, or if
    /// [`set_off_callers`] restricts it.
    #[inline]
    pub fn try_own(&'static self) -> Option<Ownership> {
        if self.off_callers.load(Ordering::Relaxed) {
            return None;
        }
        let mut queue = self.lock();
        if !queue.is_idle() {
            return None;
        }
        queue.busy = true;
        Some(Ownership(self))
    }

    /// Queues a job for the stream's worker.
    ///
    /// # Errors
    /// Returns the queue's jobs if no thread can be started for them. The caller makes them fail
    /// once it holds no locks.
    #[inline]
    pub fn push(&'static self, job: Job) -> Result<(), Stranded> {
        self.push_when(job, None, false)
    }

    /// Queues a job. Later jobs may pass it until it is ready. If `ordered` is true, later jobs
    /// that are `ordered` too may not pass it.
    ///
    /// # Errors
    /// Those of [`StreamState::push`].
    pub fn push_when(
        &'static self,
        job: Job,
        ready: Option<Ready>,
        ordered: bool,
    ) -> Result<(), Stranded> {
        let mut queue = self.lock();
        queue.jobs.push_back(Waiting { job, ready, ordered });
        let ensured = self.ensure_worker(&mut queue);
        let asleep = queue.asleep;
        self.wake(queue);
        if asleep {
            claim::wake_sleepers();
        }
        ensured
    }

    /// Unlocks the queue after a change, and wakes the threads that wait for it.
    fn wake(&self, queue: MutexGuard<'_, Queue>) {
        let anybody = queue.waiting > 0;
        let room = queue.held_back > 0 && queue.has_room();
        drop(queue);
        if anybody {
            self.changed.notify_all();
        }
        if room {
            self.room.notify_all();
        }
    }

    /// Sleeps until the queue changes, or for the time `longest`. Returns false if the time has
    /// passed.
    fn sleep<'a>(
        &self,
        mut queue: MutexGuard<'a, Queue>,
        longest: Duration,
    ) -> (MutexGuard<'a, Queue>, bool) {
        queue.waiting += 1;
        let waited = pool::waiting(|| self.changed.wait_timeout(queue, longest));
        let (mut queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.waiting -= 1;
        (queue, !timeout.timed_out())
    }

    /// Keeps the failure of asynchronous work for [`synchronize`], unless an earlier failure is
    /// kept.
    pub fn keep_failure(&self, error: Arc<Error>) {
        lock(&self.failure).get_or_insert(error);
    }

    /// Makes the caller wait if too many jobs are queued, or if any are queued while memory is over
    /// its limit. It waits until half of the jobs are done and there is memory. The caller must
    /// hold no locks.
    pub fn throttle(&self) {
        let mut queue = self.lock();
        if !queue.is_crowded() {
            return;
        }
        queue.held_back += 1;
        while !queue.has_room() {
            let waited = self.room.wait_timeout(queue, IDLE);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.held_back -= 1;
    }

    fn drain(&self) {
        let mut queue = self.lock();
        while !queue.is_idle() {
            queue = self.sleep(queue, IDLE).0;
        }
    }

    /// Sleeps until `done` returns true for the queue. Returns false if the thread was interrupted
    /// before.
    fn wait_until(&self, done: impl Fn(&Queue) -> bool) -> bool {
        let mut queue = self.lock();
        while !done(&queue) {
            queue = self.sleep(queue, interrupt::PERIOD).0;
            drop(queue);
            if interrupt::is_requested() {
                return false;
            }
            queue = self.lock();
        }
        true
    }

    fn ensure_worker(&'static self, queue: &mut Queue) -> Result<(), Stranded> {
        if queue.worker {
            return Ok(());
        }
        match workers::start(self) {
            Ok(()) => queue.worker = true,
            // The thread that owns the stream finds the jobs when it is done.
            Err(_) if queue.busy => {}
            Err(error) => {
                let error = Error::runtime(
                    "eval",
                    format!(
                        "The system cannot start a thread for a stream: {error}. Raise the limit of processes and threads \
                         (`ulimit -u`, or the container's), or of address space."
                    ),
                );
                return Err(Stranded { jobs: std::mem::take(&mut queue.jobs), error });
            }
        }
        Ok(())
    }

    fn run_jobs(&'static self) {
        let mut queue = self.lock();
        loop {
            let most = if queue.jobs.is_empty() { 1 } else { MOST_DEFERRED };
            // Deleters may take long, so another worker takes over the jobs meanwhile. If no other
            // worker can be started, the jobs come first.
            if deferred_deleters::waiting() >= most
                && (queue.jobs.is_empty() || workers::start(self).is_ok())
            {
                queue.worker = !queue.jobs.is_empty();
                queue.releasing += 1;
                drop(queue);
                deferred_deleters::release();
                queue = self.lock();
                queue.releasing -= 1;
                let replaced = std::mem::replace(&mut queue.worker, true);
                self.wake(queue);
                if replaced {
                    return;
                }
                queue = self.lock();
            }
            if !queue.busy
                && let Some(Waiting { job, ready, .. }) = queue.take_ready()
            {
                queue.busy = true;
                drop(queue);
                // Drop this first: the values that it holds would count as another use of the job's
                // operands.
                drop(ready);
                job(Ok(()));
                queue = self.lock();
                queue.end_job();
                self.wake(queue);
                queue = self.lock();
                continue;
            }
            if queue.jobs.is_empty() {
                queue.worker = false;
                return;
            }
            if queue.busy {
                // The thread that owns the stream wakes this one when it is done.
                queue = self.sleep(queue, IDLE).0;
                continue;
            }
            // All jobs wait for values.
            queue.asleep = true;
            drop(queue);
            pool::waiting(|| claim::sleep_until(IDLE, || self.lock().has_ready()));
            queue = self.lock();
            queue.asleep = false;
        }
    }
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The locks of the registry and of the workers, which are held during a fork.
type Held = (RwLockWriteGuard<'static, Option<Registry>>, MutexGuard<'static, workers::Workers>);

static FORK_HOOK: Hook = Hook {
    prepare: || {
        let guard = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
        fork::keep(&HELD, (guard, workers::hold()));
    },
    parent: || drop(fork::take(&HELD)),
    // The streams were drained before the fork, while the scheduler's lock was held. In the child
    // they have no workers.
    child: || {
        let Some((mut guard, mut workers)) = fork::take(&HELD) else {
            return;
        };
        workers.forget();
        for (stream, state) in guard.iter_mut().flat_map(|registry| &mut registry.streams) {
            *state = new_state(*stream);
        }
    },
};
