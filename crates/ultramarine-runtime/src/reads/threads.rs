//! The threads that read files. There are few of them, so that reads are done in about the order in
//! which they were submitted. These threads wait only for files and devices, so any other thread
//! may wait for them.

use crate::fork::{self, ForkStage, Hook};
use crate::sync::lock;
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The most threads that read.
const THREADS: usize = 4;

/// The most bytes that may be read ahead and not be consumed yet.
const AHEAD: usize = 256 << 20;

/// A read in pieces. Several threads may read pieces at the same time.
pub trait Read: Send + Sync + 'static {
    /// Returns the bytes that are read ahead. They count until [`consumed`] is called. This is
    /// called once, before the read begins.
    fn ahead(&self) -> usize {
        0
    }
    /// Returns true if a thread is waiting for the read.
    fn is_wanted(&self) -> bool {
        false
    }
    /// Allocates memory, and returns the number of pieces.
    fn begin(&self) -> usize;
    /// Reads a piece.
    fn piece(&self, index: usize);
    /// Called once, after the last piece.
    fn end(&self);
    /// Called if one of the methods above panicked. If it was [`Read::begin`] or a piece,
    /// [`Read::end`] is called too.
    fn panicked(&self, panic: &(dyn Any + Send));
}

/// A read that has begun.
struct Begun {
    read: Arc<dyn Read>,
    pieces: usize,
    /// The number of pieces that are not done.
    left: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<dyn Read>>,
    /// Reads with pieces that no thread has taken, and the number of pieces that were taken.
    begun: VecDeque<(Arc<Begun>, usize)>,
    threads: usize,
    idle: usize,
    /// Number of reads that have not ended.
    open: usize,
    /// Bytes that were read ahead, or are being read, and are not consumed.
    ahead: usize,
    /// Number of threads that wait for all reads.
    resting: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    waiting: VecDeque::new(),
    begun: VecDeque::new(),
    threads: 0,
    idle: 0,
    open: 0,
    ahead: 0,
    resting: 0,
});
/// Notified when there is something to read.
static WORK: Condvar = Condvar::new();
/// Notified when all reads have ended.
static DONE: Condvar = Condvar::new();

/// A step that a thread can do.
enum Step {
    Begin(Arc<dyn Read>),
    Piece(Arc<Begun>, usize),
}

impl Queue {
    /// Returns the next step. Pieces of earlier reads come before later reads.
    fn take(&mut self) -> Option<Step> {
        let Some((read, taken)) = self.begun.front_mut() else {
            if !self.may_begin() {
                return None;
            }
            let read = self.waiting.pop_front()?;
            self.ahead += read.ahead();
            return Some(Step::Begin(read));
        };
        let (read, piece) = (read.clone(), *taken);
        *taken += 1;
        if *taken == read.pieces {
            self.begun.pop_front();
        }
        Some(Step::Piece(read, piece))
    }

    /// Returns false while too many bytes are read ahead. If a thread waits for a read, this read
    /// and all before it may begin anyway.
    fn may_begin(&self) -> bool {
        let free = self.ahead < AHEAD || self.resting > 0 || self.threads == 0;
        free || self.waiting.iter().any(|read| read.is_wanted())
    }

    /// Wakes threads for this number of new steps, and starts threads if too few are idle.
    fn wake(&mut self, steps: usize) {
        (0..steps.min(self.idle)).for_each(|_| WORK.notify_one());
        let wanted = steps.saturating_sub(self.idle).min(THREADS - self.threads);
        for _ in 0..wanted {
            let named = std::thread::Builder::new().name("ultramarine-read".into());
            self.threads += usize::from(named.spawn(work).is_ok());
        }
    }
}

/// Submits a read. It is done after those that were submitted before. If the system refuses to
/// start a thread, the calling thread does the read.
pub fn submit(read: Arc<dyn Read>) {
    fork::register(ForkStage::Reads, &FORK_HOOK);
    let mut queue = lock(&QUEUE);
    queue.open += 1;
    queue.waiting.push_back(read);
    queue.wake(1);
    while queue.threads == 0
        && let Some(step) = queue.take()
    {
        drop(queue);
        step.run();
        queue = lock(&QUEUE);
    }
}

fn work() {
    let mut queue = lock(&QUEUE);
    loop {
        match queue.take() {
            Some(step) => {
                drop(queue);
                step.run();
                queue = lock(&QUEUE);
            }
            None => {
                queue.idle += 1;
                queue = WORK.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }
}

impl Step {
    fn run(self) {
        match self {
            Step::Begin(read) => {
                let pieces = catching(&read, || read.begin()).unwrap_or(0);
                if pieces == 0 {
                    return end(&read);
                }
                let begun = Begun { read, pieces, left: AtomicUsize::new(pieces) };
                let mut queue = lock(&QUEUE);
                queue.begun.push_back((Arc::new(begun), 0));
                // This thread takes one piece itself.
                queue.wake(pieces - 1);
            }
            Step::Piece(begun, piece) => {
                catching(&begun.read, || begun.read.piece(piece));
                if begun.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    end(&begun.read);
                }
            }
        }
    }
}

fn catching<T>(read: &Arc<dyn Read>, f: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| read.panicked(&*panic)).ok()
}

fn end(read: &Arc<dyn Read>) {
    catching(read, || read.end());
    let mut queue = lock(&QUEUE);
    queue.open -= 1;
    if queue.open == 0 {
        DONE.notify_all();
    }
}

/// Reports that bytes that were read ahead are no longer held.
pub fn consumed(bytes: usize) {
    if bytes > 0 {
        let mut queue = lock(&QUEUE);
        queue.ahead -= bytes;
        let waiting = queue.waiting.len();
        queue.wake(waiting);
    }
}

/// Called when a thread begins to wait for a read. [`Read::is_wanted`] of the read has to return
/// true from then on.
pub fn hurry() {
    let mut queue = lock(&QUEUE);
    let waiting = queue.waiting.len();
    queue.wake(waiting);
}

/// Waits until all submitted reads have ended.
pub fn rest() {
    drop(rested());
}

fn rested() -> MutexGuard<'static, Queue> {
    let mut queue = lock(&QUEUE);
    queue.resting += 1;
    let waiting = queue.waiting.len();
    queue.wake(waiting);
    while queue.open > 0 {
        queue = DONE.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    queue.resting -= 1;
    queue
}

thread_local! {
    static HELD: RefCell<Option<MutexGuard<'static, Queue>>> = const { RefCell::new(None) };
}

/// Waits for all reads before a fork, because the child has no threads that could finish them.
static FORK_HOOK: Hook = Hook {
    prepare: || fork::keep(&HELD, rested()),
    parent: || drop(fork::take(&HELD)),
    child: || {
        if let Some(mut queue) = fork::take(&HELD) {
            // The threads do not exist in the child.
            (queue.threads, queue.idle) = (0, 0);
        }
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// A read that adds up the numbers of its pieces.
    #[derive(Default)]
    struct Sum {
        pieces: usize,
        panics: bool,
        ahead: usize,
        wanted: AtomicBool,
        sum: AtomicUsize,
        panicked: AtomicBool,
        ended: AtomicUsize,
    }

    impl Read for Sum {
        fn ahead(&self) -> usize {
            self.ahead
        }

        fn is_wanted(&self) -> bool {
            self.wanted.load(Ordering::Relaxed)
        }

        fn begin(&self) -> usize {
            self.pieces
        }

        fn piece(&self, index: usize) {
            assert!(!self.panics || index != 1, "a piece");
            self.sum.fetch_add(index, Ordering::Relaxed);
        }

        fn end(&self) {
            self.ended.fetch_add(1, Ordering::Relaxed);
        }

        fn panicked(&self, _: &(dyn Any + Send)) {
            self.panicked.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_piece_is_read_once_and_the_end_comes_last() {
        let reads: Vec<Arc<Sum>> = (0..100)
            .map(|i| Arc::new(Sum { pieces: i % 7, panics: i % 10 == 4, ..Sum::default() }))
            .collect();
        reads.iter().for_each(|read| submit(read.clone()));
        rest();
        for read in reads {
            let fails = read.panics && read.pieces > 1;
            let sum = (0..read.pieces).filter(|i| !fails || *i != 1).sum::<usize>();
            assert_eq!(read.ended.load(Ordering::Relaxed), 1);
            assert_eq!(read.sum.load(Ordering::Relaxed), sum);
            assert_eq!(read.panicked.load(Ordering::Relaxed), fails);
        }
        reads_ahead_are_bounded();
    }

    /// Reading ahead stops at the limit, until data was consumed or a thread waits for a read.
    fn reads_ahead_are_bounded() {
        let read = || Arc::new(Sum { pieces: 2, ahead: AHEAD / 2, ..Sum::default() });
        let reads: Vec<Arc<Sum>> = (0..8).map(|_| read()).collect();
        reads.iter().for_each(|read| submit(read.clone()));
        let ended = || reads.iter().filter(|r| r.ended.load(Ordering::Relaxed) > 0).count();
        let reaches = |wanted: usize| {
            while ended() < wanted {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(ended(), wanted);
        };
        reaches(2);
        consumed(AHEAD / 2);
        reaches(3);
        reads[5].wanted.store(true, Ordering::Relaxed);
        hurry();
        reaches(6);
        rest();
        reaches(8);
        consumed(7 * (AHEAD / 2));
    }
}
