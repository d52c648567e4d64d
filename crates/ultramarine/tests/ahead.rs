//! Devices that run ahead of the host: what is in flight keeps its memory, streams wait for
//! each other, errors come late but come, and results are the CPU's. The devices are mocks,
//! and say so; gpu:0 and gpu:1 have events, gpu:2 and gpu:3 have none.

mod mock_device;
mod random_graph;

use mock_device::*;
use random_graph::{by_eight_threads, random_graph};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use ultramarine::{
    Array, Device, Error, Result, Stream, async_eval, new_stream, register, synchronize,
    with_stream,
};

/// Tests take turns: the mock's counters and settings are the process's.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static READY: OnceLock<()> = OnceLock::new();
    let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    READY.get_or_init(|| {
        // SAFETY: the mock keeps to the contract.
        let (a, b) = unsafe { (register(init), register(init_plain)) };
        assert_eq!(a.unwrap().len() + b.unwrap().len(), 4);
    });
    MOST_AHEAD.store(0, SeqCst);
    MOST_BUFFERS.store(usize::MAX, SeqCst);
    DELAY.store(0, SeqCst);
    guard
}

/// Nothing is left in flight, nothing was touched after its end.
fn check_end(streams: &[Stream]) {
    for s in streams {
        synchronize(*s).unwrap();
    }
    assert_eq!(VIOLATIONS.load(SeqCst), 0, "freed memory was touched");
    assert_eq!(BUFFERS.load(SeqCst), 0, "device buffers left over");
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
    let _turn = turn();
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
    let _turn = turn();
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
fn failures_come_late_but_come() -> Result<()> {
    let _turn = turn();
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

/// Streams of one device and of the CPU.
fn streams_of(device: u16) -> Result<Vec<Stream>> {
    let mut all = (0..3).map(|_| new_stream(Device::gpu(device))).collect::<Result<Vec<_>>>()?;
    all.push(new_stream(Device::CPU)?);
    Ok(all)
}

#[test]
fn random_graphs_are_the_cpus_also_with_little_memory() -> Result<()> {
    let _turn = turn();
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
    let _turn = turn();
    DELAY.store(20, SeqCst);
    let streams = streams_of(1)?;
    by_eight_threads(&streams, 6);
    check_end(&streams);
    Ok(())
}
