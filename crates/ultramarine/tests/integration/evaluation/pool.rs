//! The thread pool: every index once, from everywhere, whatever happens inside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ultramarine_test_support::own_process;

use ultramarine::pool::{for_submitter, parallel_for, submitter, threads, waiting};

/// Each index of a loop must have come exactly once.
fn once_each(count: usize) {
    let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
    parallel_for(count, &|i| {
        seen[i].fetch_add(1, Relaxed);
    });
    assert!(seen.iter().all(|n| n.load(Relaxed) == 1), "count {count}");
}

#[test]
fn every_index_once() {
    for count in [0, 1, 2, 3, 7, 64, 1000, 100_000] {
        once_each(count);
    }
}

#[test]
fn results_are_seen_by_the_caller() {
    // Plain (not atomic) writes of the workers must be visible after the return.
    for round in 0..2000u64 {
        let mut out = [0u64; 64];
        let start = out.as_mut_ptr().expose_provenance();
        parallel_for(64, &|i| {
            let at: *mut u64 = std::ptr::with_exposed_provenance_mut(start);
            // SAFETY: each index writes its own element.
            unsafe { at.add(i).write(round * 64 + i as u64) };
        });
        assert!(out.iter().enumerate().all(|(i, &x)| x == round * 64 + i as u64));
    }
}

#[test]
fn nested() {
    let sum = AtomicU64::new(0);
    parallel_for(10, &|i| {
        parallel_for(10, &|j| {
            parallel_for(3, &|k| {
                sum.fetch_add((i * 100 + j * 10 + k) as u64, Relaxed);
            });
        });
    });
    let expected: usize = (0..10)
        .map(|i| {
            (0..10).map(|j| (0..3).map(|k| i * 100 + j * 10 + k).sum::<usize>()).sum::<usize>()
        })
        .sum();
    assert_eq!(sum.load(Relaxed), expected as u64);
}

#[test]
fn concurrent_callers() {
    std::thread::scope(|scope| {
        for caller in 0..8 {
            scope.spawn(move || {
                for round in 0..500 {
                    once_each(1 + (round * 7 + caller) % 50);
                }
            });
        }
    });
}

#[test]
fn a_caller_does_not_wait_for_anothers_loop() {
    let (started, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            parallel_for(2, &|_| {
                started.store(1, Relaxed);
                while done.load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
            });
        });
        while started.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        once_each(100);
        done.store(1, Relaxed);
    });
}

#[test]
fn panics_reach_the_caller_after_all_indices() {
    for bad in [0, 1, 50, 99] {
        let ran = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            parallel_for(100, &|i| {
                ran.fetch_add(1, Relaxed);
                if i == bad {
                    std::panic::panic_any(i);
                }
                std::thread::sleep(Duration::from_micros(20));
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref::<usize>(), Some(&bad));
        assert_eq!(ran.load(Relaxed), 100);
        once_each(100);
    }
}

#[test]
fn many_tiny_loops() {
    let sum = AtomicU64::new(0);
    for round in 0..100_000u64 {
        let count = 2 + round as usize % 5;
        parallel_for(count, &|i| {
            sum.fetch_add(i as u64 + 1, Relaxed);
        });
        if round % 10_000 == 0 {
            // Let the workers park.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let expected: u64 = (0..100_000u64).map(|round| 2 + round % 5).map(|n| n * (n + 1) / 2).sum();
    assert_eq!(sum.load(Relaxed), expected);
}

#[test]
fn uneven_work_makes_the_caller_sleep_and_wake() {
    for slow in 0..8 {
        let ran = AtomicUsize::new(0);
        parallel_for(8, &|i| {
            if i == slow {
                std::thread::sleep(Duration::from_millis(2));
            }
            ran.fetch_add(1, Relaxed);
        });
        assert_eq!(ran.load(Relaxed), 8);
    }
}

/// All of the above with other numbers of threads (more than processors, and one).
#[test]
fn other_numbers_of_threads() {
    const ASKED: &str = "ULTRAMARINE_NUM_THREADS";
    if let Ok(asked) = std::env::var(ASKED) {
        assert_eq!(threads(), asked.parse::<usize>().unwrap());
        return;
    }
    assert_eq!(threads(), std::thread::available_parallelism().map_or(1, |n| n.get()));
    let tests = module_path!().split_once("::").map_or("", |(_, inside)| inside);
    for asked in ["1", "2", "7", "32"] {
        let mut run = Command::new(std::env::current_exe().unwrap());
        let run = run.arg(tests).env(ASKED, asked).output().unwrap();
        let printed = String::from_utf8_lossy(&run.stdout);
        let ran = printed.contains("test result: ok. 11 passed");
        assert!(run.status.success() && ran, "{asked} threads: {printed}");
    }
}

/// Returns true if two threads run a loop of two indices at once.
fn is_shared() -> bool {
    let begun = AtomicUsize::new(0);
    let met = AtomicUsize::new(0);
    parallel_for(2, &|_| {
        begun.fetch_add(1, Relaxed);
        let start = Instant::now();
        while begun.load(Relaxed) < 2 && start.elapsed() < Duration::from_millis(500) {
            std::thread::yield_now();
        }
        met.fetch_add(usize::from(begun.load(Relaxed) == 2), Relaxed);
    });
    // Alone, the second index comes when the first one has given up.
    met.load(Relaxed) == 2
}

#[test]
fn a_submitter_keeps_a_processor_until_it_waits() {
    own_process!("ULTRAMARINE_NUM_THREADS" = "2");
    assert!(is_shared(), "the loop of a thread that nobody gave work to");
    let own = submitter();
    let run = |own| std::thread::spawn(move || for_submitter(own, is_shared)).join().unwrap();
    assert!(!run(own.clone()), "the submitter computes");
    let again = own.clone();
    assert!(waiting(move || run(again)), "the submitter waits");
    // It begins to wait while the loop runs.
    submitter();
    let late = std::thread::spawn(move || for_submitter(own, is_shared));
    std::thread::sleep(Duration::from_millis(20));
    assert!(waiting(|| late.join().unwrap()), "the loop is open to all then");
}

#[test]
fn loops_in_place_keep_their_processors() {
    own_process!("ULTRAMARINE_NUM_THREADS" = "2");
    let stage = AtomicUsize::new(0);
    let reach = |next: usize| {
        stage.fetch_max(next, Relaxed);
        while stage.load(Relaxed) == next {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            while stage.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            // In place, as the workers have a loop.
            parallel_for(2, &|_| reach(2));
        });
        parallel_for(2, &|_| reach(1));
        assert!(!is_shared(), "the other thread's loop has the second processor");
        stage.store(3, Relaxed);
        other.join().unwrap();
        assert!(is_shared(), "there is no other loop");
    });
}
