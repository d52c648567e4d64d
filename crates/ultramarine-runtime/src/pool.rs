//! The process's only thread pool: one parallel loop at a time, entered in about a microsecond.
//!
//! Workers are created at the first real use, live as long as the process, spin for a few tens of microseconds after
//! each loop and then park. A caller never waits for somebody else's loop: nested calls, and calls made while another
//! thread's loop has the workers, run in place. Each of these keeps a processor busy, so that the loop with the workers is
//! given so many fewer of them: a worker that has to share a processor keeps the whole loop waiting.
//!
//! How a loop is handed over: all of it hangs on one word, `Pool::state`, which holds the loop's number, whether it
//! is open, how many workers may join and how many have. The caller writes the loop's description and opens it; a
//! worker joins by a compare-and-swap that succeeds only while the loop is open, and only then reads the
//! description; the caller, once the indices are given out, closes the loop and waits for those who joined. So no
//! worker reads a description after `parallel_for` returned, and a worker that wakes up late costs nothing.
//!
//! A thread that has given work to a stream and goes on computes itself, until it waits: a model's next step is built
//! while this one is evaluated. Loops of such work leave it a processor ([`Submitter`]), since a worker that has to share one
//! keeps the whole loop waiting. As soon as the thread waits, all workers may join.

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

/// How long a worker without work, or a caller whose indices are given out, spins before it sleeps.
const SPIN: Duration =
    if cfg!(ultramarine_loom) { Duration::ZERO } else { Duration::from_micros(40) };
/// Workers that one thread wakes by itself; these wake the others.
const FAN_OUT: usize = 4;
/// Most threads that a loop uses; bounded by the fields of `Pool::state`.
const MAX_THREADS: usize = 1024;

// Fields of `Pool::state`.
const JOINED: u64 = 0xffff;
const OPEN: u64 = 1 << 16;
/// The caller sleeps: the last worker to leave must wake it.
const ASLEEP: u64 = 1 << 17;
const WANTED_SHIFT: u32 = 20;
const WANTED: u64 = 0xfff;
const NUMBER_SHIFT: u32 = 32;

/// A loop's body as workers see it: its true lifetime is the caller's stay in `Pool::run`.
type Body = dyn Fn(usize) + Sync + 'static;
type Payload = Box<dyn Any + Send>;

modelled_thread_locals! {
    /// True while this thread is inside a parallel loop; always true for a worker.
    static INSIDE: Cell<bool> = Cell::new(false);
    /// True while this thread runs a loop in place that it counts in [`IN_PLACE`].
    static COUNTED: Cell<bool> = Cell::new(false);
}

modelled_statics! {
    /// Threads that run a loop in place because another thread's loop has the workers.
    static IN_PLACE: AtomicUsize = AtomicUsize::new(0);
}

/// The other threads that run a loop in place.
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
    // In a child that was forked inside of the loop, which counts from 0, there is nothing to take away.
    let less = |count: usize| count.checked_sub(1);
    let _ = IN_PLACE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    COUNTED.with(|counted| counted.set(false));
    panic
}

/// How long a thread that submitted work and went on counts as one that computes.
const ABSENCE: Duration =
    if cfg!(ultramarine_loom) { Duration::from_secs(3600) } else { Duration::from_millis(50) };

/// A thread that gives work to streams, as the pool sees it.
pub struct Submitter {
    /// It waits for something, or is gone.
    waits: AtomicBool,
    /// The last time that it submitted something, in nanoseconds since `begin`.
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

    /// Returns true if it is presumed to need a processor.
    fn computes(&self) -> bool {
        let absence = || self.now().saturating_sub(self.submitted.load(Ordering::Relaxed));
        !self.waits.load(Ordering::SeqCst) && absence() < ABSENCE.as_nanos() as u64
    }
}

/// This thread's own; a thread that ends waits for ever.
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
    /// The thread that this one works for.
    static WORKS_FOR: RefCell<Option<Arc<Submitter>>> = RefCell::new(None);
}

/// The calling thread, which gives work to another one and goes on.
pub fn submitter() -> Option<Arc<Submitter>> {
    OWN.try_with(|own| {
        own.0.submitted.store(own.0.now(), Ordering::Relaxed);
        own.0.waits.store(false, Ordering::Relaxed);
        own.0.clone()
    })
    .ok()
}

/// Calls `work` for a thread that may have gone on.
pub fn for_submitter<T>(submitter: Option<Arc<Submitter>>, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there, after a panic, too.
    struct Back(Option<Arc<Submitter>>);
    impl Drop for Back {
        fn drop(&mut self) {
            WORKS_FOR.with(|of| of.replace(self.0.take()));
        }
    }
    let _back = Back(WORKS_FOR.with(|of| of.replace(submitter)));
    work()
}

/// Calls `wait`, during which this thread needs no processor.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let own = OWN.try_with(|own| own.0.clone()).ok();
    let Some(own) = own.filter(|own| !own.waits.swap(true, Ordering::SeqCst)) else {
        return wait();
    };
    let pool = POOL.load(Ordering::Acquire);
    if !pool.is_null() && pool != building() {
        // SAFETY: a pool that `build` leaked; pools are never freed.
        unsafe { &*pool }.admit_all();
    }
    let result = wait();
    own.waits.store(false, Ordering::Relaxed);
    result
}

/// Returns true if the thread that this one works for needs a processor.
fn submitter_computes() -> bool {
    WORKS_FOR.with(|of| of.borrow().as_ref().is_some_and(|of| of.computes()))
}

modelled_statics! {
    /// The pool in use: null before the first loop and in a forked child, `building()` while a thread makes it.
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());
    /// Number of forks. A loop that began under another number has lost its workers.
    static GENERATION: AtomicUsize = AtomicUsize::new(0);
    /// The result of [`threads`], 0 before its first call. No `OnceLock`: a fork while it is set would block the child.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
}

#[repr(align(128))]
struct Padded<T>(T);

/// A loop's body and count, written by the caller while the loop is closed, and read by workers that joined.
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
    /// A caller has the workers.
    busy: Padded<AtomicBool>,
    workers: Box<[Padded<Worker>]>,
    spin: Duration,
    generation: usize,
    panic: Mutex<Option<Payload>>,
    panicked: AtomicBool,
    sleep: Mutex<()>,
    left: Condvar,
}

// SAFETY: `current` is the only part that is not Sync by itself; the protocol of `state` (see the module's text) orders the
// caller's writes before the workers' reads, and these before the caller's return. The body is Sync.
unsafe impl Sync for Pool {}
// SAFETY: as above; nothing in a pool belongs to a particular thread.
unsafe impl Send for Pool {}

/// Threads that a loop uses at most, the caller included: `ULTRAMARINE_NUM_THREADS`, or the processors that this process
/// may use (affinity and control groups counted). Fixed at the first question.
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

/// Calls `body` once with each index below `count`, on the calling thread and the pool's workers, and returns when all
/// calls have. Nested calls, and calls while another thread's loop runs, are executed on the calling thread alone.
///
/// # Panics
/// If a call of `body` panics, the remaining indices are still executed, then the first panic goes on in the caller.
pub fn parallel_for(count: usize, body: &(dyn Fn(usize) + Sync)) {
    if count > 1
        && threads() > 1
        && !INSIDE.with(Cell::get)
        && let Some(pool) = pool()
    {
        // A load first, so that callers in a busy pool do not fight for the line.
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

/// Executes `body` with all that `next` gives; the first panic is handed back, the indices after it are executed.
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

/// Spins until `done` or for `limit`; says whether `done`.
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

/// Marks that the pool is being built; never read through.
fn building() -> *mut Pool {
    ptr::without_provenance_mut(usize::MAX)
}

/// The pool, built if need be; `None` while another thread builds it.
fn pool() -> Option<&'static Pool> {
    let mut found = POOL.load(Ordering::Acquire);
    if found.is_null() {
        found = build()?;
    }
    if found == building() {
        return None;
    }
    // SAFETY: neither null nor the mark, so a pool that `build` leaked; pools are never freed.
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
        // Where the system refuses more threads, those that there are do the work.
        match thread::Builder::new().name(name).spawn(move || pool.run_worker(index)) {
            // The worker sets it too: whoever comes first.
            Ok(handle) => drop(pool.workers[index].0.thread.set(handle.thread().clone())),
            Err(_) => break,
        }
    }
    let pool = ptr::from_ref(pool).cast_mut();
    POOL.store(pool, Ordering::Release);
    Some(pool)
}

impl Pool {
    /// A pool whose workers are yet to be started.
    fn new(threads: usize) -> Pool {
        let workers = (1..threads)
            .map(|_| Padded(Worker { parked: AtomicBool::new(false), thread: OnceLock::new() }));
        Pool {
            state: Padded(AtomicU64::new(0)),
            next: Padded(AtomicUsize::new(0)),
            current: Padded(UnsafeCell::new(None)),
            busy: Padded(AtomicBool::new(false)),
            workers: workers.collect(),
            // With fewer processors than threads, spinning keeps off the processor whom one waits for.
            spin: if processors() >= threads { SPIN } else { Duration::ZERO },
            generation: GENERATION.load(Ordering::Relaxed),
            panic: Mutex::new(None),
            panicked: AtomicBool::new(false),
            sleep: Mutex::new(()),
            left: Condvar::new(),
        }
    }

    /// One loop, by the caller that has `busy`.
    fn run(&self, count: usize, body: &(dyn Fn(usize) + Sync)) -> Option<Payload> {
        let borrowed: *const (dyn Fn(usize) + Sync + '_) = body;
        // SAFETY: only the lifetime in the type changes; workers use the pointer only between joining and leaving, and
        // this function returns after they left.
        let erased: *const Body = unsafe { std::mem::transmute(borrowed) };
        // SAFETY: `busy` keeps other callers out, and the loop before was closed and left by all before `busy` was given
        // up, so nobody reads the cell.
        self.current.0.with_mut(|current| unsafe { *current = Some(Loop { body: erased, count }) });
        self.next.0.store(0, Ordering::Relaxed);
        let number = (self.state.0.load(Ordering::Relaxed) >> NUMBER_SHIFT).wrapping_add(1)
            & u64::from(u32::MAX);
        let shares = submitter_computes();
        let free = self.free_workers().saturating_sub(usize::from(shares));
        let wanted = (count - 1).min(free) as u64;
        // SeqCst orders this store before the look at `parked`, as the worker orders the reverse.
        self.state
            .0
            .store(number << NUMBER_SHIFT | wanted << WANTED_SHIFT | OPEN, Ordering::SeqCst);
        self.wake(0, wanted as usize);
        // It may have begun to wait after it was asked, and before the loop was open.
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

    /// Workers that find a processor, as other threads' loops leave them.
    fn free_workers(&self) -> usize {
        self.workers.len().saturating_sub(others_in_place())
    }

    /// Lets all workers that find a processor join the open loop, if there is one.
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

    /// Wakes those of the workers `first..first + FAN_OUT` that are wanted and parked.
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

    /// The number and wanted workers of an open loop that worker `index` has not seen yet and is wanted in.
    fn open_for(state: u64, index: usize, seen: u64) -> Option<(u64, usize)> {
        let wanted = (state >> WANTED_SHIFT & WANTED) as usize;
        let number = state >> NUMBER_SHIFT;
        (state & OPEN != 0 && number != seen && index < wanted).then_some((number, wanted))
    }

    /// The loop of a worker thread: spins, joins open loops, parks.
    fn run_worker(&self, index: usize) {
        INSIDE.with(|inside| inside.set(true));
        let me = &self.workers[index].0;
        me.thread.get_or_init(thread::current);
        // No loop's number: these have 32 bits.
        let mut seen = u64::MAX;
        // Only after a fork inside a loop's body is a worker of another generation alive.
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
                // The park may have been for nothing: look again.
                if Self::open_for(self.state.0.load(Ordering::Relaxed), index, seen).is_none() {
                    continue;
                }
            }
            self.join(index, &mut seen);
        }
    }

    /// Joins the open loop, if it is still open, and works on it.
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
        // SAFETY: joined while the loop was open, so the caller waits for this worker before it returns or writes again.
        let current = self.current.0.with(|current| unsafe { (*current).as_ref() });
        if let Some(current) = current {
            // SAFETY: as above: the body is borrowed by the waiting caller.
            let body = unsafe { &*current.body };
            if let Some(payload) = drain(|| self.claim(current.count), body) {
                self.panicked.store(true, Ordering::Relaxed);
                lock(&self.panic).get_or_insert(payload);
            }
        }
        let before = self.state.0.fetch_sub(1, Ordering::AcqRel);
        // From here on the loop may be over; the pool itself lives for ever.
        if before & ASLEEP != 0 && before & JOINED == 1 {
            drop(lock(&self.sleep));
            self.left.notify_all();
        }
    }
}

/// A child has none of the workers and must never touch what they may have held locked: it forgets the pool (the memory
/// stays, shared with the parent until written) and builds another when it needs one. There is no lock to hold across
/// the fork: the pool is found through an atomic pointer.
static FORK_HOOK: Hook = Hook {
    prepare: || {},
    parent: || {},
    child: || {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        IN_PLACE.store(0, Ordering::Relaxed);
        POOL.store(ptr::null_mut(), Ordering::Release);
    },
};
