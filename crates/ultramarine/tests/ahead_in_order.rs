//! A device that takes memory back in the order of its streams: temporaries take no more than the
//! stream needs at a time, however far ahead the host is, and results are the CPU's.

mod mock_device;
mod random_graph;

use mock_device::*;
use random_graph::{by_eight_threads, random_graph};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use ultramarine::{
    Array, Device, Result, Stream, async_eval, new_stream, register, synchronize, with_stream,
};

/// Tests take turns: the mock's counters and settings are the process's.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static READY: OnceLock<()> = OnceLock::new();
    let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    READY.get_or_init(|| {
        in_order::OFFERED.store(true, SeqCst);
        // SAFETY: the mock keeps to the contract.
        let devices = unsafe { register(init) };
        assert_eq!(devices.unwrap().len(), 2);
    });
    MOST_AHEAD.store(0, SeqCst);
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

#[test]
fn temporaries_take_the_memory_of_a_few() -> Result<()> {
    let _turn = turn();
    let gpu = new_stream(Device::gpu(0))?;
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    DELAY.store(1500, SeqCst);
    let before = in_order::NEW.load(SeqCst);
    let mut last = None;
    for _ in 0..100 {
        let y = with_stream(gpu, || x.add(&x))?;
        async_eval(std::slice::from_ref(&y))?;
        last = Some(y);
    }
    let last = last.unwrap();
    assert_eq!(last.to_vec::<f32>()?, [2.0, 4.0]);
    assert!(MOST_AHEAD.load(SeqCst) > 8, "submitting waited for the device");
    let new = in_order::NEW.load(SeqCst) - before;
    assert!(new <= 8, "100 temporaries took the memory of {new}");
    drop((x, last));
    check_end(&[gpu]);
    Ok(())
}

/// Three streams of a device, and one of the CPU.
fn streams_of(device: u16) -> Result<Vec<Stream>> {
    let mut all = (0..3).map(|_| new_stream(Device::gpu(device))).collect::<Result<Vec<_>>>()?;
    all.push(new_stream(Device::CPU)?);
    Ok(all)
}

#[test]
fn random_graphs_are_the_cpus() -> Result<()> {
    let _turn = turn();
    let streams = streams_of(0)?;
    let cpu: Vec<Stream> = streams.iter().map(|_| streams[3]).collect();
    let before = in_order::TAKEN_AGAIN.load(SeqCst);
    for seed in 0..40u64 {
        DELAY.store([0, 50, 100, 400][seed as usize % 4], SeqCst);
        let want = random_graph(seed, &cpu)?;
        assert_eq!(random_graph(seed, &streams)?, want, "seed {seed}");
    }
    assert!(in_order::TAKEN_AGAIN.load(SeqCst) > before, "nothing was given back in order");
    check_end(&streams);
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
