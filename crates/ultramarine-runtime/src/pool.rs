//! The process's only thread pool. It runs one parallel loop at a time, which starts in about a
//! microsecond.
//!
//! Workers are created at the first real use and live as long as the process. After each loop they
//! spin for a few tens of microseconds and then park. A caller never waits for another caller's
//! loop: nested calls, and calls made while another thread's loop has the workers, run in place.
//! Each loop that runs in place keeps a processor busy, and a worker that has to share a processor
//! delays its whole loop. So the loop with the workers gets one worker fewer for each loop in
//! place.
//!
//! Handing over a loop uses one word, `Pool::state`. It holds the loop's number, whether the loop
//! is open, how many workers may join and how many have joined.
//!
//! 1. The caller writes the loop's description and opens the loop.
//! 2. A worker joins by a compare-and-swap that succeeds only while the loop is open. It reads the
//!    description only after it has joined.
//! 3. Once all indices are given out, the caller closes the loop and waits for the workers that
//!    joined.
//!
//! So no worker reads a description after `parallel_for` has returned, and a worker that wakes up
//! late costs nothing.
//!
//! A thread that has given work to a stream continues to compute until it waits: for example, it
//! builds a model's next step while this step is evaluated. Loops of such work leave the thread a
//! processor ([`Submitter`]), because a worker that has to share one delays the whole loop. As soon
//! as the thread waits, all workers may join.

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

/// How long a worker without work spins before it sleeps. A caller spins as long after it has given
/// out all indices.
const SPIN: Duration =
    if cfg!(ultramarine_loom) { Duration::ZERO } else { Duration::from_micros(40) };
/// Workers that one thread wakes by itself. The woken workers wake the others.
const FAN_OUT: usize = 4;
/// Most threads that a loop uses. The fields of `Pool::state` limit the number.
const MAX_THREADS: usize = 1024;

// Bit fields of `Pool::state`.
const JOINED: u64 = 0xffff;
const OPEN: u64 = 1 << 16;
/// The caller sleeps, and the last worker to leave must wake it.
const ASLEEP: u64 = 1 << 17;
const WANTED_SHIFT: u32 = 20;
const WANTED: u64 = 0xfff;
const NUMBER_SHIFT: u32 = 32;

/// A loop's body as workers see it. Its true lifetime is the duration of the caller's `Pool::run`.
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

/// The number of other threads that run a loop in place.
fn others_in_place() -> usize {
    IN_PLACE.load(Ordering::Relaxed).saturating_sub(usize::from(COUNTED.with(Cell::get)))
}

/// Runs a loop in place, and counts it meanwhile.
fn run_in_place(count: usize, body: &(dyn Fn(usize) + Sync)) -> Option<Payload> {
    let mut indices = 0..count;
    if COUNTED.with(|counted| counted.replace(true)) {
        return drain(|| indices.next(), body);
    }
    IN_PLACE.fetch_add(1, Ordering::Relaxed);
    let panic = drain(|| indices.next(), body);
    // A child that was forked inside of the loop counts from 0, so there may be nothing to
    // subtract.
    let less = |count: usize| count.checked_sub(1);
    let _ = IN_PLACE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    COUNTED.with(|counted| counted.set(false));
    panic
}

/// How long a thread counts as computing after it has submitted work.
const ABSENCE: Duration =
    if cfg!(ultramarine_loom) { Duration::from_secs(3600) } else { Duration::from_millis(50) };

/// The pool's record of a thread that gives work to streams.
pub struct Submitter {
    /// The thread waits for something, or has ended.
    waits: AtomicBool,
    /// The time of the last submission, in nanoseconds since `begin`.
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

    /// Returns true if the thread presumably needs a processor.
    fn computes(&self) -> bool {
        let absence = || self.now().saturating_sub(self.submitted.load(Ordering::Relaxed));
        !self.waits.load(Ordering::SeqCst) && absence() < ABSENCE.as_nanos() as u64
    }
}

/// The record of this thread. When the thread ends, it is marked as waiting for ever.
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
    /// The thread that submitted the work which this thread runs.
    static WORKS_FOR: RefCell<Option<Arc<Submitter>>> = RefCell::new(None);
}

/// Returns the record of the calling thread, which gives work to another thread and continues.
pub fn submitter() -> Option<Arc<Submitter>> {
    OWN.try_with(|own| {
        own.0.submitted.store(own.0.now(), Ordering::Relaxed);
        own.0.waits.store(false, Ordering::Relaxed);
        own.0.clone()
    })
    .ok()
}

/// Calls `work` on behalf of the thread that submitted it and that may compute meanwhile.
pub fn for_submitter<T>(submitter: Option<Arc<Submitter>>, work: impl FnOnce() -> T) -> T {
    /// Restores the former value, also after a panic.
    struct Back(Option<Arc<Submitter>>);
    impl Drop for Back {
        fn drop(&mut self) {
            WORKS_FOR.with(|of| of.replace(self.0.take()));
        }
    }
    let _back = Back(WORKS_FOR.with(|of| of.replace(submitter)));
    work()
}

/// Calls `wait`. The calling thread counts as needing no processor meanwhile.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let own = OWN.try_with(|own| own.0.clone()).ok();
    let Some(own) = own.filter(|own| !own.waits.swap(true, Ordering::SeqCst)) else {
        return wait();
    };
    let pool = POOL.load(Ordering::Acquire);
    if !pool.is_null() && pool != building() {
        // SAFETY: the pool was leaked by `build`, and pools are never freed.
        unsafe { &*pool }.admit_all();
    }
    let result = wait();
    own.waits.store(false, Ordering::Relaxed);
    result
}

/// Returns true if the thread that submitted this thread's work needs a processor.
fn submitter_computes() -> bool {
    WORKS_FOR.with(|of| of.borrow().as_ref().is_some_and(|of| of.computes()))
}

modelled_statics! {
    /// The pool. It is NULL before the first loop and in a forked child, and `building()` while a
    /// thread makes it.
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());
    /// Number of forks. A loop that began with another number has lost its workers.
    static GENERATION: AtomicUsize = AtomicUsize::new(0);
    /// The result of [`threads`]; 0 before its first call. This is not a `OnceLock`, because a fork
    /// while one is being set would block the child.
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

// SAFETY: `current` is the only part that is not Sync by itself. The protocol of `state`, which the
// module's documentation describes, orders the caller's writes before the workers' reads, and these
// reads before the caller's return. The body is Sync.
unsafe impl Sync for Pool {}
// SAFETY: as above. In addition, nothing in a pool belongs to a particular thread.
unsafe impl Send for Pool {}

/// The most threads that a loop uses, including the caller: `ULTRAMARINE_NUM_THREADS`, or the
/// number of processors that this process may use, according to its affinity and control group. The
/// first call fixes the number.
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
/// Returns when all calls have returned. Nested calls, and calls while another thread's loop runs,
/// are executed on the calling thread alone.
///
/// # Panics
/// If a call of `body` panics, the remaining indices are still executed; then the first panic
/// continues in the caller.
pub fn parallel_for(count: usize, body: &(dyn Fn(usize) + Sync)) {
    if count > 1
        && threads() > 1
        && !INSIDE.with(Cell::get)
        && let Some(pool) = pool()
    {
        // Load first, so that callers do not contend for the cache line while the pool is busy.
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

/// Executes `body` for all indices that `next` returns, also after a panic. Returns the first
/// panic.
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

/// Spins until `done` returns true or `limit` has passed. Returns the last result of `done`.
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

/// A marker that says that the pool is being built. It is never dereferenced.
fn building() -> *mut Pool {
    ptr::without_provenance_mut(usize::MAX)
}

/// Returns the pool, and builds it if necessary. Returns `None` while another thread builds it.
fn pool() -> Option<&'static Pool> {
    let mut found = POOL.load(Ordering::Acquire);
    if found.is_null() {
        found = build()?;
    }
    if found == building() {
        return None;
    }
    // SAFETY: the pointer is neither NULL nor the marker, so it points to a pool that `build`
    // leaked. Pools are never freed.
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
        // If the system refuses more threads, the existing ones do the work.
        match thread::Builder::new().name(name).spawn(move || pool.run_worker(index)) {
            // The worker sets its handle too. The first one to set it wins.
            Ok(handle) => drop(pool.workers[index].0.thread.set(handle.thread().clone())),
            Err(_) => break,
        }
    }
    let pool = ptr::from_ref(pool).cast_mut();
    POOL.store(pool, Ordering::Release);
    Some(pool)
}

impl Pool {
    /// Makes a pool whose workers are not started yet.
    fn new(threads: usize) -> Pool {
        let workers = (1..threads)
            .map(|_| Padded(Worker { parked: AtomicBool::new(false), thread: OnceLock::new() }));
        Pool {
            state: Padded(AtomicU64::new(0)),
            next: Padded(AtomicUsize::new(0)),
            current: Padded(UnsafeCell::new(None)),
            busy: Padded(AtomicBool::new(false)),
            workers: workers.collect(),
            // With fewer processors than threads, a spinning thread would keep the thread that it
            // waits for from running.
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
        // joining and leaving, and this function returns after all of them have left.
        let erased: *const Body = unsafe { std::mem::transmute(borrowed) };
        // SAFETY: `busy` keeps other callers out. The previous loop was closed, and all its workers
        // had left, before `busy` was cleared. So no thread reads the cell.
        self.current.0.with_mut(|current| unsafe { *current = Some(Loop { body: erased, count }) });
        self.next.0.store(0, Ordering::Relaxed);
        let number = (self.state.0.load(Ordering::Relaxed) >> NUMBER_SHIFT).wrapping_add(1)
            & u64::from(u32::MAX);
        let shares = submitter_computes();
        let free = self.free_workers().saturating_sub(usize::from(shares));
        let wanted = (count - 1).min(free) as u64;
        // SeqCst orders this store before the load of `parked`. The worker stores and loads in the
        // reverse order.
        self.state
            .0
            .store(number << NUMBER_SHIFT | wanted << WANTED_SHIFT | OPEN, Ordering::SeqCst);
        self.wake(0, wanted as usize);
        // The submitter may have begun to wait after the check above and before the loop was open.
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

    /// The number of workers that find a processor, given the other threads' loops.
    fn free_workers(&self) -> usize {
        self.workers.len().saturating_sub(others_in_place())
    }

    /// Lets all workers for which there is a processor join the open loop, if there is one.
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

    /// Wakes the workers among `first..first + FAN_OUT` that are wanted and parked.
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

    /// The main function of a worker thread: it spins, joins open loops, and parks.
    fn run_worker(&self, index: usize) {
        INSIDE.with(|inside| inside.set(true));
        let me = &self.workers[index].0;
        me.thread.get_or_init(thread::current);
        // Not the number of any loop, because those have 32 bits.
        let mut seen = u64::MAX;
        // A worker of another generation is alive only after a fork inside a loop's body.
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
                // The worker may have been unparked for another reason, so check again.
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
        // SAFETY: this worker joined while the loop was open, so the caller waits for it before it
        // returns or writes again.
        let current = self.current.0.with(|current| unsafe { (*current).as_ref() });
        if let Some(current) = current {
            // SAFETY: as above. The caller, which waits, still borrows the body.
            let body = unsafe { &*current.body };
            if let Some(payload) = drain(|| self.claim(current.count), body) {
                self.panicked.store(true, Ordering::Relaxed);
                lock(&self.panic).get_or_insert(payload);
            }
        }
        let before = self.state.0.fetch_sub(1, Ordering::AcqRel);
        // From here on the loop may be over. The pool itself is never freed.
        if before & ASLEEP != 0 && before & JOINED == 1 {
            drop(lock(&self.sleep));
            self.left.notify_all();
        }
    }
}

/// A child has none of the workers, and must never touch anything that they may have locked. It
/// forgets the pool and builds another when it needs one. The memory of the old pool stays, shared
/// with the parent until written. No lock has to be held across the fork, because the pool is found
/// through an atomic pointer.
static FORK_HOOK: Hook = Hook {
    prepare: || {},
    parent: || {},
    child: || {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        IN_PLACE.store(0, Ordering::Relaxed);
        POOL.store(ptr::null_mut(), Ordering::Release);
    },
};
