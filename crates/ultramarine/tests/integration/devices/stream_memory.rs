//! A device that takes memory back in the order of its streams: temporaries take no more than the
//! stream needs at a time, however far ahead the host is, and results are the CPU's.

use super::{check_end, streams_of};
use crate::support::mock_device::*;
use crate::support::random_graph::{by_eight_threads, random_graph};
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{Array, Device, Result, Stream, async_eval, new_stream, register, with_stream};
use ultramarine_test_support::own_process;

/// Registers a mock that offers memory in the order of its streams.
fn register_mock() {
    stream_memory::OFFERED.store(true, SeqCst);
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { register(init) }.unwrap().len(), 2);
}

#[test]
fn temporaries_take_the_memory_of_a_few() -> Result<()> {
    own_process!();
    register_mock();
    let gpu = new_stream(Device::gpu(0))?;
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    DELAY.store(1500, SeqCst);
    let before = stream_memory::NEW.load(SeqCst);
    let mut last = None;
    for _ in 0..100 {
        let y = with_stream(gpu, || x.add(&x))?;
        async_eval(std::slice::from_ref(&y))?;
        last = Some(y);
    }
    let last = last.unwrap();
    assert_eq!(last.to_vec::<f32>()?, [2.0, 4.0]);
    assert!(MOST_AHEAD.load(SeqCst) > 8, "submitting waited for the device");
    let new = stream_memory::NEW.load(SeqCst) - before;
    assert!(new <= 8, "100 temporaries took the memory of {new}");
    drop((x, last));
    check_end(&[gpu]);
    Ok(())
}

#[test]
fn random_graphs_are_the_cpus() -> Result<()> {
    own_process!();
    register_mock();
    let streams = streams_of(0)?;
    let cpu: Vec<Stream> = streams.iter().map(|_| streams[3]).collect();
    let before = stream_memory::TAKEN_AGAIN.load(SeqCst);
    for seed in 0..40u64 {
        DELAY.store([0, 50, 100, 400][seed as usize % 4], SeqCst);
        let want = random_graph(seed, &cpu)?;
        assert_eq!(random_graph(seed, &streams)?, want, "seed {seed}");
    }
    assert!(stream_memory::TAKEN_AGAIN.load(SeqCst) > before, "nothing was given back in order");
    check_end(&streams);
    Ok(())
}

#[test]
fn eight_threads() -> Result<()> {
    own_process!();
    register_mock();
    DELAY.store(20, SeqCst);
    let streams = streams_of(1)?;
    by_eight_threads(&streams, 6);
    check_end(&streams);
    Ok(())
}
