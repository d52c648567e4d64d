//! Streams: ordered queues of work on a device.
//!
//! A host stream has no thread until it needs one: a synchronous
//! evaluation on an idle stream runs on the calling thread, which owns the stream
//! meanwhile; anything else is queued for a worker, which streams share (`workers.rs`). Jobs enter queues
//! under the scheduler's lock, in an order that respects their dependencies, so
//! waiting inside a job cannot deadlock: the oldest unfinished job of all streams
//! never waits for a younger one.

mod scope;
mod thread_local;
mod workers;

pub use crate::device::Stream;
use crate::error::{Error, Result};
use crate::fork::{self, ForkStage, Hook};
use crate::memory::{self, deferred_deleters};
use crate::{backend, device::Device, devices, sync::lock};
pub use scope::{
    Scope, current, default_device, default_stream, scoped, scoped_device, set_default_device,
    set_default_stream, with_stream,
};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;
pub use thread_local::{ThreadLocalStream, clear_streams};

/// A job: a closure in a stream's queue. Never unwinds.
pub type Job = Box<dyn FnOnce() + Send>;

/// Jobs that may wait in one queue before a submitter is held back.
const MAX_QUEUED: usize = 64;

/// Releases of others' memory that may wait while there are jobs.
const MOST_DEFERRED: usize = 16;

/// How long a thread sleeps before it looks at a queue again.
const IDLE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// A thread is running a job of this stream.
    busy: bool,
    /// A worker thread has the stream, or was told to take it (in this process, not in a forked parent).
    worker: bool,
    /// Threads that sleep until something changes. Waking is a system call, even of nobody.
    waiting: usize,
}

/// A stream's queue.
#[derive(Default)]
pub struct StreamState {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// The first failure of asynchronous work that nobody was told of.
    failure: Mutex<Option<Arc<Error>>>,
}

#[derive(Default)]
struct Registry {
    streams: Vec<(Stream, Arc<StreamState>)>,
    defaults: HashMap<Device, Stream>,
    /// Streams that nobody has any more: of threads that have ended, and those that were released.
    free: Vec<Stream>,
}

static REGISTRY: RwLock<Option<Registry>> = RwLock::new(None);

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
        self.streams.push((stream, Arc::default()));
        stream
    }
}

/// The default stream of a device, whatever the scope.
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

/// Makes a new stream on a device: one that nobody else has. It takes some memory, on the device too, until [`release_stream`].
///
/// # Errors
/// [`crate::Error::Value`] when no loaded backend has the device.
#[inline]
pub fn new_stream(device: Device) -> Result<Stream> {
    devices::get(device)?;
    let stream = take(device);
    thread_local::made(stream);
    Ok(stream)
}

/// Gives a stream back that [`new_stream`] made, for a later call of it. Work that it was given is done nevertheless, and arrays that
/// are to be computed there still are, in the order of the stream and beside the work of its next owner. A stream that was given back
/// already, or that is a default stream, stays what it is.
pub fn release_stream(stream: Stream) {
    write(|r| {
        let kept = r.defaults.values().any(|s| *s == stream) || r.free.contains(&stream);
        if !kept && r.streams.get(stream.index as usize).is_some_and(|s| s.0 == stream) {
            r.free.push(stream);
        }
    });
}

/// A stream for a thread, until it gives it back.
#[inline]
pub fn take(device: Device) -> Stream {
    write(|r| {
        // The new owner does not wait for the work of the former one.
        let unused = |s: &Stream| s.device == device && is_idle(&r.streams[s.index as usize].1);
        match r.free.iter().position(unused) {
            Some(i) => r.free.swap_remove(i),
            None => r.add(device),
        }
    })
}

/// Gives streams back for other threads.
pub fn give_back(streams: impl ExactSizeIterator<Item = Stream>) {
    if streams.len() > 0 {
        write(|r| r.free.extend(streams));
    }
}

/// Waits until all work given to the stream is done.
///
/// # Errors
/// The first error of asynchronous work on the stream, or of work that failed on the device after its submission had
/// been taken, that was not raised before. It is raised once.
#[inline]
pub fn synchronize(stream: Stream) -> Result<()> {
    let failure = state(stream).and_then(|state| {
        state.drain();
        lock(&state.failure).take()
    });
    let outcome = devices::get(stream.device)?.synchronize(stream);
    failure.map_or(outcome, |error| Err(Error::clone(&error)))
}

/// Notes that a failure was raised, so that no stream's [`synchronize`] raises it again.
#[cold]
pub fn raised(error: &Arc<Error>) {
    let all = read(|r| Some(r.streams.iter().map(|s| s.1.clone()).collect::<Vec<_>>()));
    for state in all.unwrap_or_default() {
        let mut failure = lock(&state.failure);
        if failure.as_ref().is_some_and(|f| Arc::ptr_eq(Error::cause(f), Error::cause(error))) {
            *failure = None;
        }
    }
}

/// Waits for every stream.
pub fn synchronize_all() {
    let all = read(|r| Some(r.streams.iter().map(|s| s.1.clone()).collect::<Vec<_>>()));
    for state in all.unwrap_or_default() {
        state.drain();
    }
    for device in backend::gpus() {
        // Failures are raised to those who want the values.
        let _ = device.drain();
    }
}

/// Returns true if nothing runs or waits on any stream.
#[inline]
pub fn all_idle() -> bool {
    read(|r| Some(r.streams.iter().all(|s| is_idle(&s.1)))).unwrap_or(true)
}

fn is_idle(state: &StreamState) -> bool {
    let queue = lock(&state.queue);
    !queue.busy && queue.jobs.is_empty()
}

/// Returns true if the stream exists.
#[inline]
pub fn exists(stream: Stream) -> bool {
    read(|r| r.streams.get(stream.index as usize).map(|s| s.0 == stream)).unwrap_or(false)
}

/// The queue of a stream, if there is such a stream.
#[inline]
pub fn state(stream: Stream) -> Option<Arc<StreamState>> {
    read(|r| r.streams.get(stream.index as usize).map(|s| s.1.clone()))
}

/// The right to run a job on the calling thread.
pub struct Ownership(Arc<StreamState>);

impl Drop for Ownership {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.busy = false;
        if !queue.jobs.is_empty() {
            StreamState::ensure_worker(&self.0, &mut queue);
        }
        self.0.wake(queue);
    }
}

impl StreamState {
    /// Takes the stream for the calling thread, if nothing runs or waits on it.
    #[inline]
    pub fn try_own(self: &Arc<Self>) -> Option<Ownership> {
        let mut queue = lock(&self.queue);
        if queue.busy || !queue.jobs.is_empty() {
            return None;
        }
        queue.busy = true;
        Some(Ownership(self.clone()))
    }

    /// Queues a job for the stream's worker.
    #[inline]
    pub fn push(self: &Arc<Self>, job: Job) {
        let mut queue = lock(&self.queue);
        queue.jobs.push_back(job);
        Self::ensure_worker(self, &mut queue);
        self.wake(queue);
    }

    /// Lets go of the queue, which has changed.
    fn wake(&self, queue: MutexGuard<'_, Queue>) {
        let anybody = queue.waiting > 0;
        drop(queue);
        if anybody {
            self.changed.notify_all();
        }
    }

    /// Sleeps until the queue changes, at most for [`IDLE`]; false when that is over.
    fn sleep<'a>(&self, mut queue: MutexGuard<'a, Queue>) -> (MutexGuard<'a, Queue>, bool) {
        queue.waiting += 1;
        let waited = self.changed.wait_timeout(queue, IDLE);
        let (mut queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.waiting -= 1;
        (queue, !timeout.timed_out())
    }

    /// Keeps the failure of asynchronous work for [`synchronize`], unless there is an earlier one.
    pub fn keep_failure(&self, error: Arc<Error>) {
        lock(&self.failure).get_or_insert(error);
    }

    /// Holds the caller back while too many jobs wait, or while any do and memory is
    /// over its limit: running them is what frees memory. Call it without locks.
    pub fn throttle(&self) {
        let crowded = |queue: &Queue| {
            queue.jobs.len() > MAX_QUEUED
                || (!queue.jobs.is_empty() && memory::active() > memory::memory_limit())
        };
        let mut queue = lock(&self.queue);
        while crowded(&queue) {
            queue = self.sleep(queue).0;
        }
    }

    fn drain(&self) {
        let mut queue = lock(&self.queue);
        while queue.busy || !queue.jobs.is_empty() {
            queue = self.sleep(queue).0;
        }
    }

    fn ensure_worker(this: &Arc<Self>, queue: &mut Queue) {
        if queue.worker {
            return;
        }
        queue.worker = workers::start(this).is_ok();
        if !queue.worker {
            // No thread to be had: run what waits here rather than never.
            let jobs = std::mem::take(&mut queue.jobs);
            jobs.into_iter().for_each(|job| job());
        }
    }

    fn run_jobs(self: &Arc<Self>) {
        let mut queue = lock(&self.queue);
        loop {
            if deferred_deleters::waiting() >= if queue.jobs.is_empty() { 1 } else { MOST_DEFERRED }
            {
                // Strangers may take their time: who queues jobs meanwhile gets another worker.
                queue.worker = false;
                if !queue.jobs.is_empty() {
                    Self::ensure_worker(self, &mut queue);
                }
                drop(queue);
                deferred_deleters::release();
                queue = lock(&self.queue);
                if std::mem::replace(&mut queue.worker, true) {
                    return;
                }
            }
            if !queue.busy
                && let Some(job) = queue.jobs.pop_front()
            {
                queue.busy = true;
                drop(queue);
                job();
                queue = lock(&self.queue);
                queue.busy = false;
                self.wake(queue);
                queue = lock(&self.queue);
                continue;
            }
            if queue.jobs.is_empty() {
                queue.worker = false;
                return;
            }
            // The thread that owns the stream says when it is done.
            queue = self.sleep(queue).0;
        }
    }
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Locks of the registry and of the workers, held over a fork.
type Held = (RwLockWriteGuard<'static, Option<Registry>>, MutexGuard<'static, workers::Workers>);

static FORK_HOOK: Hook = Hook {
    prepare: || {
        let guard = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
        fork::keep(&HELD, (guard, workers::hold()));
    },
    parent: || drop(fork::take(&HELD)),
    // The streams were drained before the fork, with the scheduler's lock held; they have no workers here.
    child: || {
        let Some((mut guard, mut workers)) = fork::take(&HELD) else {
            return;
        };
        workers.forget();
        for (_, state) in guard.iter_mut().flat_map(|registry| &mut registry.streams) {
            *state = Arc::default();
        }
    },
};
