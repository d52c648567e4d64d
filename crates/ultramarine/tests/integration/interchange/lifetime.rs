//! How long memory lives, on which threads, over forks.

use super::foreign::{Memory, Tensor};
use super::own_stream;
use crate::support::fork::in_child;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ultramarine::{Array, Dtype, Result, async_eval, eval};
use ultramarine_test_support::own_process;

fn floats() -> Vec<f32> {
    (0..1000).map(|n| n as f32).collect()
}

/// Waits, with sleeps, until something is so.
fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn views_outlive_their_base() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&floats());
    let (made, count) = Tensor::new(&memory, Dtype::Float32, &[10, 100]).make();
    let x = Array::from_dlpack(made)?;
    let views = [x.transpose()?, x.slice(&[3, 0], &[4, 5], &[1, 1])?, x.reshape(&[1000])?];
    eval(&views)?;
    drop(x);
    assert_eq!(views[1].to_vec::<f32>()?, [300.0, 301.0, 302.0, 303.0, 304.0]);
    let [a, b, c] = views;
    drop((a, c));
    assert_eq!(count.get(), 0);
    drop(b);
    assert_eq!(count.get(), 1);
    // Work that was never done holds its operands as long as it lives.
    let (made, count) = Tensor::new(&memory, Dtype::Float32, &[1000]).make();
    let lazy = Array::from_dlpack(made)?.exp()?;
    assert_eq!(count.get(), 0);
    drop(lazy);
    assert_eq!(count.get(), 1);
    Ok(())
}

#[test]
fn a_tensor_outlives_its_array() -> Result<()> {
    let _scope = own_stream()?;
    let x = Array::from_slice(&floats(), &[1000])?;
    let tensor = x.transpose()?.to_dlpack()?;
    drop(x);
    // SAFETY: the tensor keeps a thousand numbers.
    let kept = unsafe { std::slice::from_raw_parts(tensor.tensor().data.cast::<f32>(), 1000) };
    // Memory that is given back would be given out again.
    let others: Vec<Array> =
        (0..50).map(|_| Array::from_slice(&[-1.0f32; 1000], &[1000])).collect::<Result<_>>()?;
    eval(&others)?;
    assert_eq!(kept, floats());
    std::thread::scope(|scope| drop(scope.spawn(|| drop(tensor)).join()));
    Ok(())
}

/// Resident pages.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_thousand_journeys_leave_nothing() -> Result<()> {
    own_process!();
    let _scope = own_stream()?;
    let memory = Memory::of(&floats());
    let tensor = Tensor::new(&memory, Dtype::Float32, &[10, 100]);
    let ours = Array::from_slice(&floats(), &[1000])?;
    let round = |n: usize| -> Result<()> {
        for _ in 0..n {
            let (made, count) = tensor.make();
            let x = Array::from_dlpack(made)?;
            let y = Array::from_dlpack(x.to_dlpack()?)?;
            drop(x);
            drop(y);
            assert_eq!(count.get(), 1);
            drop(Array::from_dlpack(ours.to_dlpack()?)?);
        }
        Ok(())
    };
    round(2_000)?;
    // Other tests run beside and may grow meanwhile; a leak grows each time. One of 80 bytes
    // for each journey would be 2000 pages.
    let mut least = usize::MAX;
    for _ in 0..5 {
        let before = resident();
        round(100_000)?;
        least = least.min(resident().saturating_sub(before));
        if least < 200 {
            return Ok(());
        }
    }
    panic!("{least} pages more")
}

#[test]
fn arrays_are_dropped_and_used_on_other_threads() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&floats());
    let (made, count) = Tensor::new(&memory, Dtype::Float32, &[1000]).make();
    let x = Array::from_dlpack(made)?;
    let start = Barrier::new(8);
    let sums: Vec<f32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (x, start) = (x.clone(), &start);
                scope.spawn(move || -> Result<f32> {
                    start.wait();
                    let mut sum = 0.0;
                    for _ in 0..50 {
                        let y = Array::from_dlpack(x.to_dlpack()?)?;
                        sum = (&y + 1.0)?.sum(None)?.item::<f32>()?;
                    }
                    Ok(sum)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect::<Result<_>>()
    })?;
    assert_eq!(sums, [500_500.0; 8]);
    assert_eq!(count.get(), 0);
    std::thread::spawn(move || drop(x)).join().expect("no panic");
    // (A stream's worker may have been the last to hold it.)
    until(|| count.get() == 1);
    Ok(())
}

#[test]
fn dropped_while_it_is_computed_with() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&floats());
    for _ in 0..100 {
        let (made, count) = Tensor::new(&memory, Dtype::Float32, &[1000]).make();
        let x = Array::from_dlpack(made)?;
        let y = (&x.exp()?.log()? + &x)?;
        async_eval(std::slice::from_ref(&y))?;
        drop(x);
        assert_eq!(y.to_vec::<f32>()?.len(), 1000);
        drop(y);
        until(|| count.get() == 1);
    }
    Ok(())
}

/// A lock of a foreign library, such as an interpreter's.
static FOREIGN_LOCK: Mutex<()> = Mutex::new(());

fn take_the_lock() {
    drop(FOREIGN_LOCK.lock().unwrap_or_else(PoisonError::into_inner));
}

#[cfg(unix)]
#[test]
fn a_deleter_that_waits_for_the_forking_thread_does_not_hang() -> Result<()> {
    own_process!();
    let _scope = own_stream()?;
    let memory = Memory::of(&floats());
    let mut tensor = Tensor::new(&memory, Dtype::Float32, &[1000]);
    tensor.on_delete = Some(take_the_lock);
    let mut counts = Vec::new();
    let mut results = Vec::new();
    let held = FOREIGN_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..20 {
        // The job lets go of the import; its deleter has to wait for this thread.
        let (made, count) = tensor.make();
        let y = (&Array::from_dlpack(made)? + 1.0)?;
        async_eval(std::slice::from_ref(&y))?;
        counts.push(count);
        results.push(y);
    }
    // A fork waits for what runs. The child has no threads but this one: it leaves at once.
    // SAFETY: the child does nothing.
    assert_eq!(unsafe { in_child(|| true) }, 0);
    // So does whoever wants a value.
    for y in &results {
        assert_eq!(y.to_vec::<f32>()?[1], 2.0);
    }
    drop(held);
    until(|| counts.iter().all(|c| c.get() == 1));
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_forked_child_has_imports_of_its_own() -> Result<()> {
    own_process!();
    let _scope = own_stream()?;
    let memory = Memory::of(&floats());
    let (made, count) = Tensor::new(&memory, Dtype::Float32, &[1000]).make();
    let x = Array::from_dlpack(made)?;
    let ours = Array::from_slice(&floats(), &[1000])?;
    let tensor = ours.to_dlpack()?;
    (&x + 1.0)?.eval()?;
    let mut held = Some((x, ours, tensor));
    let mut works = || -> Result<bool> {
        let Some((x, ours, tensor)) = held.take() else { return Ok(false) };
        let sum = (&x + &ours)?.sum(None)?.item::<f32>()?;
        drop(tensor);
        let again = Array::from_dlpack(ours.to_dlpack()?)?;
        drop((x, ours));
        Ok(sum == 999_000.0 && count.get() == 1 && again.to_vec::<f32>()? == floats())
    };
    // SAFETY: evaluation and interchange are usable after a fork.
    let status = unsafe { in_child(|| matches!(works(), Ok(true))) };
    assert_eq!(status, 0);
    assert_eq!(count.get(), 0, "the parent's import lives");
    let (x, ..) = held.expect("the parent has not run it");
    drop(x);
    assert_eq!(count.get(), 1);
    Ok(())
}
