//! The process's only thread pool. It runs one parallel loop at a time, which starts in about a
//! microsecond.
//!
//! Workers are created at the first use, and live until the process ends. After each loop they spin
//! for a few tens of microseconds, and then park. A caller never waits for another caller's loop:
//! nested calls, and calls while another thread's loop has the workers, run on the calling thread
//! alone. Each such call keeps a processor busy, so the loop with the workers gets one worker less,
//! because a worker that shares a processor delays the whole loop.
//!
//! Handing over a loop uses a single word, `Pool::state`. It holds the loop's number, whether the
//! loop is open, how many workers may join, and how many have joined. The caller writes the loop's
//! description and opens the loop. A worker joins by a compare-and-swap that succeeds only while
//! the loop is open, and only then reads the description. When all indices are taken, the caller
//! closes the loop and waits for the workers that joined. Therefore no worker reads a description
//! after `parallel_for` returned, and a worker that wakes up late costs nothing.
//!
//! A thread that gives work to a stream and then continues also needs a processor, until it waits.
//! An example is building a model's next step while the current one is evaluated. Loops of such
//! work leave a processor free for the thread ([`Submitter`]), because a worker that shares a
//! processor delays the whole loop. As soon as the thread waits, all workers may join.

use crate::fork::{self, ForkStage, Hook};
use crate::sync::modelled::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Condvar, Mutex, UnsafeCell, lock,
    thread::{self, Thread},
};
use crate::{modelled_statics, modelled_thread_locals};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

#[cfg(all(test, ultramarine_loom))]
mod model;

/// Time for which a worker without work, or a caller without remaining indices, spins before it
/// sleeps.
const SPIN: Duration =
    if cfg!(ultramarine_loom) { Duration::ZERO } else { Duration::from_micros(40) };
/// Number of workers that one thread wakes. These workers wake the others.
const FAN_OUT: usize = 4;
/// Limit on the threads of a loop. It must fit the fields of `Pool::state`.
const MAX_THREADS: usize = 1024;

// Fields of `Pool::state`.
const JOINED: u64 = 0xffff;
const OPEN: u64 = 1 << 16;
/// Set while the caller sleeps: the last worker that leaves must wake it.
const ASLEEP: u64 = 1 << 17;
const WANTED_SHIFT: u32 = 20;
const WANTED: u64 = 0xfff;
const NUMBER_SHIFT: u32 = 32;

/// A loop's body, as workers see it. Its true lifetime ends when the caller leaves `Pool::run`.
type Body = dyn Fn(usize) + Sync + 'static;
type Payload = Box<dyn Any + Send>;

modelled_thread_locals! {
    /// True while this thread is inside a parallel loop. Always true for workers.
    static INSIDE: Cell<bool> = Cell::new(false);
    /// True while this thread runs a loop in place that [`IN_PLACE`] counts.
    static COUNTED: Cell<bool> = Cell::new(false);
}

modelled_statics! {
    /// Number of threads that run a loop in place because another thread's loop has the workers.
    static IN_PLACE: AtomicUsize = AtomicUsize::new(0);
}

/// Returns the number of other threads that run a loop in place.
fn others_in_place() -> usize {
    IN_PLACE.load(Ordering::Relaxed).saturating_sub(usize::from(COUNTED.with(Cell::get)))
}

/// Runs a loop in place, and counts it.
fn run_in_place(count: usize, body: &(dyn Fn(usize) + Sync)) -> Option<Payload> {
    let mut indices = 0..count;
    if COUNTED.with(|counted| counted.replace(true)) {
        return drain(|| indices.next(), body);
    }
    IN_PLACE.fetch_add(1, Ordering::Relaxed);
    let panic = drain(|| indices.next(), body);
    // In a child that was forked inside the loop, the count is 0 already.
    let less = |count: usize| count.checked_sub(1);
    let _ = IN_PLACE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    COUNTED.with(|counted| counted.set(false));
    panic
}

/// Time for which a thread that submitted work and continued is assumed to compute.
const ABSENCE: Duration =
    if cfg!(ultramarine_loom) { Duration::from_secs(3600) } else { Duration::from_millis(50) };

/// A thread that gives work to streams, as seen by the pool.
pub struct Submitter {
    /// True if it waits, or has ended.
    waits: AtomicBool,
    /// The time of its last submission, in nanoseconds since `begin`.
    submitted: AtomicU64,
    begin: Instant,
}

impl Submitter {
    fn new() -> Submitter {
        let begin = Instant::now();
        Submitter { waits: AtomicBool::new(true), submitted: AtomicU64::new(0), begin }
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Returns true if the thread is assumed to need a processor.
    fn computes(&self) -> bool {
        let absence = || self.now().saturating_sub(self.submitted.load(Ordering::Relaxed));
        !self.waits.load(Ordering::SeqCst) && absence() < ABSENCE.as_nanos() as u64
    }
}

/// This thread's own submitter. When the thread ends, the submitter counts as waiting forever.
struct Own(Arc<Submitter>);

impl Drop for Own {
    fn drop(&mut self) {
        self.0.waits.store(true, Ordering::Relaxed);
    }
}

#[cfg(not(ultramarine_loom))]
thread_local! {
    static OWN: Own = Own(Arc::new(Submitter::new()));
}
#[cfg(ultramarine_loom)]
loom::thread_local! {
    static OWN: Own = Own(Arc::new(Submitter::new()));
}

modelled_thread_locals! {
    /// The submitter that this thread works for.
    static WORKS_FOR: RefCell<Option<Arc<Submitter>>> = RefCell::new(None);
}

/// Returns the calling thread's submitter, for a thread that gives work to another one and
/// continues.
pub fn submitter() -> Option<Arc<Submitter>> {
    OWN.try_with(|own| {
        own.0.submitted.store(own.0.now(), Ordering::Relaxed);
        own.0.waits.store(false, Ordering::Relaxed);
        own.0.clone()
    })
    .ok()
}

/// Calls `work` on behalf of a thread that may have continued.
pub fn for_submitter<T>(submitter: Option<Arc<Submitter>>, work: impl FnOnce() -> T) -> T {
    /// Restores the former value, even after a panic.
    struct Back(Option<Arc<Submitter>>);
    impl Drop for Back {
        fn drop(&mut self) {
            WORKS_FOR.with(|of| of.replace(self.0.take()));
        }
    }
    let _back = Back(WORKS_FOR.with(|of| of.replace(submitter)));
    work()
}

/// Calls `wait`. This thread needs no processor during the call.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let own = OWN.try_with(|own| own.0.clone()).ok();
    let Some(own) = own.filter(|own| !own.waits.swap(true, Ordering::SeqCst)) else {
        return wait();
    };
    let pool = POOL.load(Ordering::Acquire);
    if !pool.is_null() && pool != building() {
        // SAFETY: `build` leaked the pool, and pools are never freed.
        unsafe { &*pool }.admit_all();
    }
    let result = wait();
    own.waits.store(false, Ordering::Relaxed);
    result
}

/// Returns true if the submitter that this thread works for needs a processor.
fn submitter_computes() -> bool {
    WORKS_FOR.with(|of| of.borrow().as_ref().is_some_and(|of| of.computes()))
}

modelled_statics! {
    /// The current pool. Null before the first loop and in a forked child; `building()` while a
    /// thread makes it.
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());
    /// Number of forks. A loop that began with another number has lost its workers.
    static GENERATION: AtomicUsize = AtomicUsize::new(0);
    /// The result of [`threads`], or 0 before its first call. Not a `OnceLock`, because a fork
    /// while it is being set would block the child.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
}

#[repr(align(128))]
struct Padded<T>(T);

/// A loop's body and count. The caller writes it while the loop is closed, and workers that joined
/// read it.
struct Loop {
    body: *const Body,
    count: usize,
}

struct Worker {
    parked: AtomicBool,
    thread: OnceLock<Thread>,
}

struct Pool {
    state: Padded<AtomicU64>,
    next: Padded<AtomicUsize>,
    current: Padded<UnsafeCell<Option<Loop>>>,
    /// True while a caller has the workers.
    busy: Padded<AtomicBool>,
    workers: Box<[Padded<Worker>]>,
    spin: Duration,
    generation: usize,
    panic: Mutex<Option<Payload>>,
    panicked: AtomicBool,
    sleep: Mutex<()>,
    left: Condvar,
}

// SAFETY: only `current` is not Sync by itself. The protocol of `state` (see the module's
// documentation) orders the caller's writes before the workers' reads, and the reads before the
// caller's return. The body is Sync.
unsafe impl Sync for Pool {}
// SAFETY: as above; no part of a pool belongs to a particular thread.
unsafe impl Send for Pool {}

/// Returns the limit on the threads of a loop, including the caller: `ULTRAMARINE_NUM_THREADS`, or
/// the number of processors that this process may use (considering affinity and control groups). It
/// is fixed at the first call.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let requested = std::env::var("ULTRAMARINE_NUM_THREADS").ok();
            let requested = requested.and_then(|text| text.trim().parse().ok()).filter(|&n| n > 0);
            let found = requested.unwrap_or_else(processors).clamp(1, MAX_THREADS);
            match THREADS.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => found,
                Err(earlier) => earlier,
            }
        }
        known => known,
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Calls `body` once with each index below `count`, on the calling thread and the pool's workers.
/// Returns when all calls have returned. Nested calls, and calls while another thread's loop is
/// running, use only the calling thread.
///
/// # Panics
/// If a call of `body` panics, the remaining indices are still executed. Then the first panic
/// continues in the caller.
pub fn parallel_for(count: usize, body: &(dyn Fn(usize) + Sync)) {
    if count > 1
        && threads() > 1
        && !INSIDE.with(Cell::get)
        && let Some(pool) = pool()
    {
        // Load first, so that callers of a busy pool do not compete for the cache line.
        if others_in_place() < pool.workers.len()
            && !pool.busy.0.load(Ordering::Relaxed)
            && !pool.busy.0.swap(true, Ordering::Acquire)
        {
            let panic = pool.run(count, body);
            pool.busy.0.store(false, Ordering::Release);
            return raise(panic);
        }
        return raise(run_in_place(count, body));
    }
    let mut indices = 0..count;
    raise(drain(|| indices.next(), body));
}

fn raise(panic: Option<Payload>) {
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}

/// Executes `body` with all indices that `next` returns. Indices after a panic are still executed;
/// the first panic is returned.
fn drain(
    mut next: impl FnMut() -> Option<usize>,
    body: &(dyn Fn(usize) + Sync),
) -> Option<Payload> {
    let mut first = None;
    loop {
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            while let Some(index) = next() {
                body(index);
            }
        }));
        match attempt {
            Ok(()) => return first,
            Err(payload) => first = first.or(Some(payload)),
        }
    }
}

/// Spins until `done` returns true, or for `limit`. Returns whether `done` returned true.
fn spin_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    if done() {
        return true;
    }
    if limit.is_zero() {
        return false;
    }
    let begin = Instant::now();
    loop {
        for _ in 0..32 {
            std::hint::spin_loop();
            if done() {
                return true;
            }
        }
        if begin.elapsed() > limit {
            return false;
        }
    }
}

/// Marks that the pool is being built. The pointer is never dereferenced.
fn building() -> *mut Pool {
    ptr::without_provenance_mut(usize::MAX)
}

/// Returns the pool, and builds it if necessary. `None` while another thread builds it.
fn pool() -> Option<&'static Pool> {
    let mut found = POOL.load(Ordering::Acquire);
    if found.is_null() {
        found = build()?;
    }
    if found == building() {
        return None;
    }
    // SAFETY: neither null nor the mark, so `build` leaked the pool, and pools are never freed.
    Some(unsafe { &*found })
}

#[cold]
fn build() -> Option<*mut Pool> {
    if POOL
        .compare_exchange(ptr::null_mut(), building(), Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        return None;
    }
    fork::register(ForkStage::Pool, &FORK_HOOK);
    let pool: &'static Pool = Box::leak(Box::new(Pool::new(threads())));
    for index in 0..pool.workers.len() {
        let name = format!("ultramarine-{index}");
        // If the system provides no more threads, the existing ones do the work.
        match thread::Builder::new().name(name).spawn(move || pool.run_worker(index)) {
            // The worker sets it too; the first one wins.
            Ok(handle) => drop(pool.workers[index].0.thread.set(handle.thread().clone())),
            Err(_) => break,
        }
    }
    let pool = ptr::from_ref(pool).cast_mut();
    POOL.store(pool, Ordering::Release);
    Some(pool)
}

impl Pool {
    /// Makes a pool whose workers have not been started yet.
    fn new(threads: usize) -> Pool {
        let workers = (1..threads)
            .map(|_| Padded(Worker { parked: AtomicBool::new(false), thread: OnceLock::new() }));
        Pool {
            state: Padded(AtomicU64::new(0)),
            next: Padded(AtomicUsize::new(0)),
            current: Padded(UnsafeCell::new(None)),
            busy: Padded(AtomicBool::new(false)),
            workers: workers.collect(),
            // With fewer processors than threads, spinning would block the thread that is being
            // waited for.
            spin: if processors() >= threads { SPIN } else { Duration::ZERO },
            generation: GENERATION.load(Ordering::Relaxed),
            panic: Mutex::new(None),
            panicked: AtomicBool::new(false),
            sleep: Mutex::new(()),
            left: Condvar::new(),
        }
    }

    /// Runs one loop. The caller has set `busy`.
    fn run(&self, count: usize, body: &(dyn Fn(usize) + Sync)) -> Option<Payload> {
        let borrowed: *const (dyn Fn(usize) + Sync + '_) = body;
        // SAFETY: only the lifetime in the type changes. Workers use the pointer only between
        // joining and leaving, and this function returns after they have left.
        let erased: *const Body = unsafe { std::mem::transmute(borrowed) };
        // SAFETY: `busy` keeps other callers out. The previous loop was closed, and all workers had
        // left it before `busy` was cleared, so no thread reads the cell.
        self.current.0.with_mut(|current| unsafe { *current = Some(Loop { body: erased, count }) });
        self.next.0.store(0, Ordering::Relaxed);
        let number = (self.state.0.load(Ordering::Relaxed) >> NUMBER_SHIFT).wrapping_add(1)
            & u64::from(u32::MAX);
        let shares = submitter_computes();
        let free = self.free_workers().saturating_sub(usize::from(shares));
        let wanted = (count - 1).min(free) as u64;
        // SeqCst orders this store before the load of `parked`. The worker uses the reverse order.
        self.state
            .0
            .store(number << NUMBER_SHIFT | wanted << WANTED_SHIFT | OPEN, Ordering::SeqCst);
        self.wake(0, wanted as usize);
        // The submitter may have begun to wait after the query, but before the loop was open.
        if shares && !submitter_computes() {
            self.admit_all();
        }

        INSIDE.with(|inside| inside.set(true));
        let own = drain(|| self.claim(count), body);
        INSIDE.with(|inside| inside.set(false));

        let state = self.state.0.fetch_and(!OPEN, Ordering::AcqRel);
        if state & JOINED != 0 {
            if GENERATION.load(Ordering::Relaxed) != self.generation {
                return Some(Box::new(
                    "the process was forked inside a parallel loop: its workers are lost",
                ));
            }
            self.wait_for_workers();
        }
        if own.is_some() || self.panicked.load(Ordering::Relaxed) {
            self.panicked.store(false, Ordering::Relaxed);
            let theirs = lock(&self.panic).take();
            return own.or(theirs);
        }
        None
    }

    /// Returns the number of workers that have a processor, considering the loops of other threads.
    fn free_workers(&self) -> usize {
        self.workers.len().saturating_sub(others_in_place())
    }

    /// Allows all workers that have a processor to join the open loop, if there is one.
    fn admit_all(&self) {
        let wanted = self.free_workers() as u64;
        let open = |state: u64| {
            let all = state & !(WANTED << WANTED_SHIFT) | wanted << WANTED_SHIFT;
            (state & OPEN != 0 && state != all).then_some(all)
        };
        if self.state.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, open).is_ok() {
            self.wake(0, wanted as usize);
        }
    }

    #[inline]
    fn claim(&self, count: usize) -> Option<usize> {
        let index = self.next.0.fetch_add(1, Ordering::Relaxed);
        (index < count).then_some(index)
    }

    fn wait_for_workers(&self) {
        let done = || self.state.0.load(Ordering::Acquire) & JOINED == 0;
        if spin_until(self.spin, done) {
            return;
        }
        let mut guard = lock(&self.sleep);
        self.state.0.fetch_or(ASLEEP, Ordering::AcqRel);
        while !done() {
            guard = self.left.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes the workers `first..first + FAN_OUT` that are wanted and parked.
    fn wake(&self, first: usize, wanted: usize) {
        for Padded(worker) in self.workers.iter().take(wanted).skip(first).take(FAN_OUT) {
            if worker.parked.load(Ordering::SeqCst)
                && worker.parked.swap(false, Ordering::SeqCst)
                && let Some(thread) = worker.thread.get()
            {
                thread.unpark();
            }
        }
    }

    /// Returns the number of the open loop and its wanted workers, if worker `index` is wanted and
    /// has not seen the loop yet.
    fn open_for(state: u64, index: usize, seen: u64) -> Option<(u64, usize)> {
        let wanted = (state >> WANTED_SHIFT & WANTED) as usize;
        let number = state >> NUMBER_SHIFT;
        (state & OPEN != 0 && number != seen && index < wanted).then_some((number, wanted))
    }

    /// The main function of a worker thread: spins, joins open loops, and parks.
    fn run_worker(&self, index: usize) {
        INSIDE.with(|inside| inside.set(true));
        let me = &self.workers[index].0;
        me.thread.get_or_init(thread::current);
        // Not a valid number, because loops' numbers have 32 bits.
        let mut seen = u64::MAX;
        // A worker of another generation exists only after a fork inside a loop's body.
        while GENERATION.load(Ordering::Relaxed) == self.generation {
            let found = spin_until(self.spin, || {
                Self::open_for(self.state.0.load(Ordering::Relaxed), index, seen).is_some()
            });
            if !found {
                me.parked.store(true, Ordering::SeqCst);
                if Self::open_for(self.state.0.load(Ordering::SeqCst), index, seen).is_none() {
                    thread::park();
                }
                me.parked.store(false, Ordering::SeqCst);
                // The worker may have been woken spuriously, so check again.
                if Self::open_for(self.state.0.load(Ordering::Relaxed), index, seen).is_none() {
                    continue;
                }
            }
            self.join(index, &mut seen);
        }
    }

    /// Joins the loop, if it is still open, and works on it.
    fn join(&self, index: usize, seen: &mut u64) {
        let mut state = self.state.0.load(Ordering::Relaxed);
        loop {
            let Some((number, wanted)) = Self::open_for(state, index, *seen) else { return };
            match self.state.0.compare_exchange_weak(
                state,
                state + 1,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    *seen = number;
                    self.wake((index + 1) * FAN_OUT, wanted);
                    break;
                }
                Err(now) => state = now,
            }
        }
        // SAFETY: the worker joined while the loop was open, so the caller waits for the worker
        // before it returns or writes again.
        let current = self.current.0.with(|current| unsafe { (*current).as_ref() });
        if let Some(current) = current {
            // SAFETY: as above: the waiting caller borrows the body.
            let body = unsafe { &*current.body };
            if let Some(payload) = drain(|| self.claim(current.count), body) {
                self.panicked.store(true, Ordering::Relaxed);
                lock(&self.panic).get_or_insert(payload);
            }
        }
        let before = self.state.0.fetch_sub(1, Ordering::AcqRel);
        // From here on the loop may be over, but the pool itself is never freed.
        if before & ASLEEP != 0 && before & JOINED == 1 {
            drop(lock(&self.sleep));
            self.left.notify_all();
        }
    }
}

/// A forked child has none of the workers, and must never touch data that they may have locked. It
/// forgets the pool, and builds another one when needed. (The memory stays, shared with the parent
/// until it is written.) No lock has to be held during the fork, because the pool is found through
/// an atomic pointer.
static FORK_HOOK: Hook = Hook {
    prepare: || {},
    parent: || {},
    child: || {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        IN_PLACE.store(0, Ordering::Relaxed);
        POOL.store(ptr::null_mut(), Ordering::Release);
    },
};
