//! The pool under loom: loops of a few indices, with one or two workers.

use super::{GENERATION, POOL, Pool, THREADS, for_submitter, parallel_for, submitter, waiting};
use crate::sync::explore::explore;
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs a model with a pool of this number of threads, including the caller.
fn with_pool(threads: usize, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    explore(preemptions, move || {
        THREADS.store(threads, Ordering::Relaxed);
        let pool: &'static Pool = Box::leak(Box::new(Pool::new(threads)));
        POOL.store(ptr::from_ref(pool).cast_mut(), Ordering::Release);
        let workers: Vec<_> =
            (1..threads).map(|i| thread::spawn(move || pool.run_worker(i - 1))).collect();
        for (place, worker) in pool.workers.iter().zip(&workers) {
            let _ = place.0.thread.set(worker.thread().clone());
        }
        model();
        // Workers of an older generation end.
        GENERATION.fetch_add(1, Ordering::Relaxed);
        for worker in workers {
            worker.thread().unpark();
            worker.join().unwrap();
        }
    });
}

/// Results of a loop: each index writes its own once, and they are read when the loop is over.
struct Results(Vec<UnsafeCell<u32>>);

// SAFETY: loom runs one thread at a time, and checks accesses.
unsafe impl Sync for Results {}

impl Results {
    fn new(count: usize) -> Results {
        Results((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn run(&self) {
        parallel_for(self.0.len(), &|i| {
            // SAFETY: loom checks that nothing else accesses it.
            self.0[i].with_mut(|at| unsafe { *at += 1 });
        });
    }

    fn all(&self, times: u32) -> bool {
        // SAFETY: loom checks that there is no concurrent write.
        self.0.iter().all(|cell| cell.with(|at| unsafe { *at }) == times)
    }
}

/// A loop is over when all its calls have returned. No worker accesses it afterwards.
#[test]
fn loops_one_after_another() {
    with_pool(2, 2, || {
        for _ in 0..2 {
            let results = Results::new(2);
            results.run();
            assert!(results.all(1));
        }
    });
}

/// Two callers at the same time: one has the workers, the other runs in place.
#[test]
fn callers_at_once() {
    with_pool(2, 2, || {
        let other = thread::spawn(|| {
            let results = Results::new(2);
            results.run();
            assert!(results.all(1));
        });
        let results = Results::new(2);
        results.run();
        assert!(results.all(1));
        other.join().unwrap();
    });
}

/// Makes index 0 of a loop wait for index 1.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn body(&self, index: usize) {
        let mut open = self.0.lock().unwrap();
        if index == 1 {
            *open = true;
            self.1.notify_all();
        }
        while !*open {
            open = self.1.wait(open).unwrap();
        }
    }
}

/// A parked worker wakes up for a loop. The caller of the loop could not continue without it.
#[test]
fn a_worker_wakes() {
    with_pool(2, 2, || {
        let gate = Gate::default();
        parallel_for(2, &|i| gate.body(i));
    });
}

/// A loop leaves its submitter a processor until the submitter waits. Then the worker joins, even
/// if the loop has begun.
#[test]
fn a_submitter_that_waits_admits_its_worker() {
    with_pool(2, 2, || {
        let own = submitter();
        let stream = thread::spawn(move || {
            for_submitter(own, || {
                let gate = Gate::default();
                parallel_for(2, &|i| gate.body(i));
            });
        });
        waiting(|| stream.join().unwrap());
    });
}

/// A panic in a body reaches the caller after all calls have ended.
#[test]
fn a_panic_arrives_behind_all_calls() {
    with_pool(2, 2, || {
        let results = Arc::new(Results::new(2));
        let of_loop = results.clone();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            parallel_for(2, &|i| {
                // SAFETY: loom checks that nothing else accesses it.
                of_loop.0[i].with_mut(|at| unsafe { *at += 1 });
                std::panic::resume_unwind(Box::new(i));
            });
        }));
        assert!(caught.is_err() && results.all(1));
    });
}
