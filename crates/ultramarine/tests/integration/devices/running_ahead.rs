//! Devices that run ahead of the host: what is in flight keeps its memory, streams wait for
//! each other, errors come late but come, and results are the CPU's. The devices are mocks,
//! and say so; gpu:0 and gpu:1 have events, gpu:2 and gpu:3 have none.

use super::{check_end, streams_of};
use crate::support::mock_device::*;
use crate::support::random_graph::{by_eight_threads, random_graph};
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{
    Array, Device, Error, Result, Stream, async_eval, new_stream, register, synchronize,
    with_stream,
};
use ultramarine_test_support::own_process;

/// Registers gpu:0 and gpu:1 with events, and gpu:2 and gpu:3 without.
fn register_mocks() {
    // SAFETY: the mock keeps to the contract.
    let (a, b) = unsafe { (register(init), register(init_plain)) };
    assert_eq!(a.unwrap().len() + b.unwrap().len(), 4);
}

/// A chain of `n` additions, each in its own task.
fn chain(x: &Array, n: usize) -> Result<Array> {
    let mut y = x.add(x)?;
    for _ in 1..n {
        y = y.add(x)?;
    }
    Ok(y)
}

#[test]
fn the_host_runs_ahead_and_memory_waits() -> Result<()> {
    own_process!();
    register_mocks();
    let gpu = new_stream(Device::gpu(0))?;
    DELAY.store(3000, SeqCst);
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    let y = with_stream(gpu, || chain(&x, 40))?;
    async_eval(std::slice::from_ref(&y))?;
    // Its inputs go while it is in flight.
    drop(x);
    assert_eq!(y.to_vec::<f32>()?, [41.0, 82.0]);
    assert!(MOST_AHEAD.load(SeqCst) > 3, "submitting waited for the device");
    // Dropped in flight, never looked at.
    let z = with_stream(gpu, || chain(&y, 10))?;
    async_eval(std::slice::from_ref(&z))?;
    drop((y, z));
    check_end(&[gpu]);
    Ok(())
}

#[test]
fn streams_wait_for_each_other() -> Result<()> {
    own_process!();
    register_mocks();
    for device in [0, 2] {
        let (a, b) = (new_stream(Device::gpu(device))?, new_stream(Device::gpu(device))?);
        DELAY.store(500, SeqCst);
        let mut x = Array::from_slice(&[1.0f32; 8], &[8])?;
        for step in 0..30 {
            // `kept` is read on one stream while the other would like to write over x.
            let kept = with_stream(a, || x.add(&x))?;
            let half = with_stream(b, || kept.subtract(&x))?;
            x = with_stream(if step % 2 == 0 { a } else { b }, || half.add(&half)?.subtract(&x))?;
            if step % 7 == 0 {
                async_eval(std::slice::from_ref(&x))?;
            }
        }
        assert_eq!(x.to_vec::<f32>()?, [1.0; 8]);
        drop(x);
        check_end(&[a, b]);
    }
    Ok(())
}

#[test]
fn deferred_failures_are_raised() -> Result<()> {
    own_process!();
    register_mocks();
    let (a, b) = (new_stream(Device::gpu(1))?, new_stream(Device::gpu(1))?);
    DELAY.store(2000, SeqCst);
    let cursed = Array::from_slice(&[CURSED], &[1])?;
    let fine = Array::from_slice(&[1.0f32], &[1])?;
    let before = with_stream(a, || fine.add(&fine))?;
    before.eval()?;
    let bad = with_stream(a, || cursed.add(&cursed))?;
    let other = with_stream(b, || bad.add(&fine))?;
    async_eval(&[bad.clone(), other.clone()])?;
    for array in [&bad, &other, &bad] {
        let error = array.eval().expect_err("the mock fails");
        assert!(matches!(error.root(), Error::Runtime(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("[add]") && text.contains("mock gpu:1"), "{text}");
    }
    // What depends on it fails too; what was done before and what comes later is fine.
    let dependent = with_stream(b, || bad.add(&fine))?;
    dependent.eval().expect_err("its operand is lost");
    assert_eq!(before.to_vec::<f32>()?, [2.0]);
    for s in [a, b] {
        let after = with_stream(s, || fine.add(&before))?;
        assert_eq!(after.to_vec::<f32>()?, [3.0]);
    }
    // Nobody waited: synchronize says it.
    let c = new_stream(Device::gpu(1))?;
    let unseen = with_stream(c, || cursed.add(&cursed))?;
    async_eval(std::slice::from_ref(&unseen))?;
    // The job is queued first, then the device's work awaited.
    synchronize(c).expect_err("an unseen failure");
    drop((cursed, fine, before, bad, other, dependent, unseen));
    check_end(&[a, b, c]);
    Ok(())
}

#[test]
fn random_graphs_are_the_cpus_also_with_little_memory() -> Result<()> {
    own_process!();
    register_mocks();
    for device in [0u16, 2] {
        let streams = streams_of(device)?;
        let cpu: Vec<Stream> = streams.iter().map(|_| streams[3]).collect();
        for (seed, delay, most) in (0..40u64)
            .map(|s| (s, [0, 0, 100, 400][s as usize % 4], [usize::MAX, 24][s as usize % 2]))
        {
            DELAY.store(delay, SeqCst);
            let want = random_graph(seed, &cpu)?;
            MOST_BUFFERS.store(most, SeqCst);
            match random_graph(seed, &streams) {
                Ok(found) => assert_eq!(found, want, "seed {seed} on gpu:{device}"),
                Err(e) => assert!(most < usize::MAX && matches!(e.root(), Error::Memory(_)), "{e}"),
            }
            MOST_BUFFERS.store(usize::MAX, SeqCst);
        }
        check_end(&streams);
    }
    Ok(())
}

#[test]
fn eight_threads() -> Result<()> {
    own_process!();
    register_mocks();
    DELAY.store(20, SeqCst);
    let streams = streams_of(1)?;
    by_eight_threads(&streams, 6);
    check_end(&streams);
    Ok(())
}
