//! Uploads that devices enqueue: the host does not wait for them, and whoever uses what they
//! bring does. The device is a mock, and says so.

use super::{check_memory, streams_of};
use crate::support::mock_device::*;
use crate::support::random_graph::{by_eight_threads, random_graph};
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{Array, Device, Result, Stream, async_eval, new_stream, register, with_stream};
use ultramarine_test_support::own_process;

/// Registers a mock that enqueues uploads, and offers memory in the order of its streams.
fn register_mock() {
    UPLOADS_IN_ORDER.store(true, SeqCst);
    stream_memory::OFFERED.store(true, SeqCst);
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { register(init) }.unwrap().len(), 2);
}

fn check_end(streams: &[Stream]) {
    DELAY.store(0, SeqCst);
    check_memory(streams);
}

/// Steps with an operand of the host each: several uploads are under way at a time, and each step
/// has the values of its own.
#[test]
fn steps_do_not_wait_for_their_uploads() -> Result<()> {
    own_process!();
    register_mock();
    let gpu = new_stream(Device::gpu(0))?;
    DELAY.store(3000, SeqCst);
    let mut sum = Array::from_slice(&[0.0f32; 4], &[4])?;
    MOST_UPLOADS.store(0, SeqCst);
    for step in 0..40 {
        let batch = Array::from_slice(&[step as f32; 4], &[4])?;
        sum = with_stream(gpu, || sum.add(&batch))?;
        async_eval(std::slice::from_ref(&sum))?;
    }
    assert_eq!(sum.to_vec::<f32>()?, [780.0; 4]);
    let most = MOST_UPLOADS.load(SeqCst);
    assert!(most > 3, "the host waited for uploads: {most} were under way at most");
    check_end(&[gpu]);
    Ok(())
}

/// An upload whose array is dropped at once still has its memory.
#[test]
fn dropped_arrays_live_until_they_are_uploaded() -> Result<()> {
    own_process!();
    register_mock();
    let gpus = [new_stream(Device::gpu(0))?, new_stream(Device::gpu(0))?];
    DELAY.store(500, SeqCst);
    for step in 0..20 {
        let x = Array::from_slice(&[step as f32, 2.0], &[2])?;
        let dropped = with_stream(gpus[step % 2], || x.add(&x))?;
        let kept = with_stream(gpus[(step + 1) % 2], || x.add(&x))?;
        async_eval(&[dropped.clone(), kept.clone()])?;
        drop((x, dropped));
        assert_eq!(kept.to_vec::<f32>()?, [2.0 * step as f32, 4.0]);
    }
    check_end(&gpus);
    Ok(())
}

#[test]
fn random_graphs_are_the_cpus() -> Result<()> {
    own_process!();
    register_mock();
    let streams = streams_of(0)?;
    let cpu = vec![streams[3]; streams.len()];
    for seed in 0..40 {
        DELAY.store([0, 0, 100, 400][seed as usize % 4], SeqCst);
        assert_eq!(random_graph(seed, &streams)?, random_graph(seed, &cpu)?, "seed {seed}");
    }
    DELAY.store(20, SeqCst);
    by_eight_threads(&streams, 6);
    check_end(&streams);
    Ok(())
}
