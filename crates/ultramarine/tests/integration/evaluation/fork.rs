//! Forked children: the pool and the allocator work there, whatever the parent's threads were doing; and
//! they evaluate, whatever those were evaluating.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::support::fork::in_child;
use ultramarine::memory::{alloc, clear_cache, free};
use ultramarine::pool::parallel_for;
use ultramarine::{Array, Device, Dtype, Result, Stream, async_eval, new_stream, with_stream};
use ultramarine_test_support::own_process;

/// Uses pool and allocator, and returns whether all of it worked.
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

/// Wait status of a child that does `works`, and forks once more if asked.
fn child(again: bool) -> i32 {
    // SAFETY: pool and allocator are usable after a fork.
    unsafe { in_child(|| works() && (!again || child(false) == 0) && works()) }
}

#[test]
fn children_work() {
    let threads = std::thread::available_parallelism().map_or(4, |n| n.get().max(4));
    own_process!("ULTRAMARINE_NUM_THREADS" = threads.to_string());
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

/// Evaluates on two streams, and returns whether the result is right.
fn evaluates(stream: Stream) -> Result<bool> {
    let x = Array::ones(&[300, 300], Dtype::Float32)?;
    let y = x.add(&x)?.exp()?.sum(None)?;
    let other = with_stream(stream, || y.add(&x))?;
    async_eval(std::slice::from_ref(&other))?;
    Ok((other.to_vec::<f32>()?[7] / (9e4 * 2f32.exp()) - 1.0).abs() < 1e-4)
}

/// Wait status of a child that evaluates, and forks once more if asked.
fn evaluating_child(stream: Stream, again: bool) -> i32 {
    let good = || matches!(evaluates(stream), Ok(true));
    // SAFETY: evaluation is usable after a fork.
    unsafe { in_child(|| good() && (!again || evaluating_child(stream, false) == 0)) }
}

#[test]
fn children_evaluate() -> Result<()> {
    own_process!();
    let stream = new_stream(Device::CPU)?;
    assert!(evaluates(stream)?);
    assert_eq!(evaluating_child(stream, true), 0, "an idle parent");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    assert!(matches!(evaluates(stream), Ok(true)));
                }
            });
        }
        for i in 0..10 {
            assert_eq!(evaluating_child(stream, i % 2 == 0), 0, "child {i} of a busy parent");
        }
        stop.store(true, Relaxed);
    });
    Ok(())
}
