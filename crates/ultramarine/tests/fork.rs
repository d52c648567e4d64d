//! Forked children: the pool and the allocator work there, whatever the parent's threads were doing. One test: a
//! process of its own.
#![cfg(unix)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use ultramarine::memory::{alloc, clear_cache, free};
use ultramarine::pool::parallel_for;

/// Uses everything; in the child nothing may panic through the test harness, hence the answer.
fn works() -> bool {
    let sum = AtomicUsize::new(0);
    for _ in 0..50 {
        parallel_for(64, &|i| {
            let bytes = 1 + i * 1000;
            let Ok(block) = alloc(bytes) else { return };
            // SAFETY: our block of these bytes.
            unsafe {
                block.as_ptr().write_bytes(1, bytes);
                free(block, bytes);
            }
            sum.fetch_add(i, Relaxed);
        });
    }
    clear_cache();
    sum.load(Relaxed) == 50 * 2016
}

/// Exit status of a child that does `works`, and forks once more if asked.
fn child(again: bool) -> i32 {
    // SAFETY: the child uses only what is made for it, and leaves by _exit.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: alarm and _exit have no preconditions; a child that hangs is killed.
            unsafe { libc::alarm(20) };
            let good = works() && (!again || child(false) == 0) && works();
            // SAFETY: as above.
            unsafe { libc::_exit(if good { 0 } else { 1 }) }
        }
        pid => {
            assert!(pid > 0, "fork failed");
            let mut status = -1;
            // SAFETY: our child, and a place for its status.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            status
        }
    }
}

#[test]
fn children_work() {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 4) {
        // SAFETY: before any other thread of this test reads the environment.
        unsafe { std::env::set_var("ULTRAMARINE_NUM_THREADS", "4") };
    }
    assert_eq!(child(true), 0, "before the pool exists");
    assert!(works());
    assert_eq!(child(true), 0, "an idle parent");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    assert!(works());
                }
            });
        }
        for round in 0..40 {
            let status = child(round % 4 == 0);
            if status != 0 {
                stop.store(true, Relaxed);
            }
            assert_eq!(status, 0, "round {round}");
        }
        stop.store(true, Relaxed);
    });
    assert!(works());
}
