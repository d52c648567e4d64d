//! Numbers are recorded when something may wait for them, and the calling thread submits what is small. The devices are
//! mocks, which note each value that is recorded.

use super::{check_end, check_memory};
use crate::support::mock_device::*;
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{
    Array, Device, Result, Stream, async_eval, eval, new_stream, register, synchronize, with_stream,
};
use ultramarine_test_support::own_process;

/// Registers the mock, which takes memory back in the order of its streams: so no buffer's release waits for a number.
fn register_mock() -> Result<Stream> {
    stream_memory::OFFERED.store(true, SeqCst);
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { register(init) }.unwrap().len(), 2);
    new_stream(Device::gpu(0))
}

/// Two elements in the device's memory, computed on a stream of their own.
fn on_device() -> Result<Array> {
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    let x = with_stream(new_stream(Device::gpu(0))?, || x.add(&x))?;
    x.eval()?;
    RECORDS.lock().unwrap().clear();
    Ok(x)
}

/// A chain of `n` additions, each a command of its own.
fn chain(x: &Array, n: usize) -> Result<Array> {
    let mut y = x.add(x)?;
    for _ in 1..n {
        y = y.add(x)?;
    }
    Ok(y)
}

/// The values that were recorded since the last call, by one event.
fn recorded() -> Vec<u64> {
    let all = std::mem::take(&mut *RECORDS.lock().unwrap());
    assert!(all.iter().all(|r| r.0 == all[0].0), "records of several streams: {all:?}");
    all.into_iter().map(|r| r.1).collect()
}

#[test]
fn commands_of_an_evaluation_share_a_record() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let x = on_device()?;
    let y = with_stream(gpu, || chain(&x, 40))?;
    y.eval()?;
    assert_eq!(recorded(), [40]);
    // It is kept for those who wait next.
    assert_eq!(y.to_vec::<f32>()?, [82.0, 164.0]);
    synchronize(gpu)?;
    assert!(recorded().is_empty());
    drop((x, y));
    check_end(&[gpu]);
    Ok(())
}

#[test]
fn results_that_are_kept_have_a_record_before_the_next_evaluation() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let x = on_device()?;
    let mut kept = Vec::new();
    for n in [3, 1, 5] {
        let y = with_stream(gpu, || chain(&x, n))?;
        async_eval(std::slice::from_ref(&y))?;
        kept.push(y);
    }
    eval(&kept)?;
    assert_eq!(recorded(), [3, 4, 9]);
    drop((x, kept));
    check_end(&[gpu]);
    Ok(())
}

#[test]
fn results_that_are_written_over_have_none() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let x = on_device()?;
    let mut y = with_stream(gpu, || x.add(&x))?;
    for _ in 1..20 {
        async_eval(std::slice::from_ref(&y))?;
        y = with_stream(gpu, || y.add(&x))?;
    }
    assert_eq!(y.to_vec::<f32>()?, [42.0, 84.0]);
    assert_eq!(recorded(), [20]);
    drop((x, y));
    check_end(&[gpu]);
    Ok(())
}

#[test]
fn long_evaluations_are_recorded_now_and_then() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let x = on_device()?;
    with_stream(gpu, || chain(&x, 200))?.eval()?;
    assert_eq!(recorded(), [64, 128, 192, 200]);
    drop(x);
    check_end(&[gpu]);
    Ok(())
}

#[test]
fn other_streams_ask_for_what_they_wait_for() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let other = new_stream(Device::gpu(0))?;
    let x = on_device()?;
    let y = with_stream(gpu, || chain(&x, 10))?;
    async_eval(std::slice::from_ref(&y))?;
    synchronize_queue(&y);
    assert!(recorded().is_empty());
    let z = with_stream(other, || y.add(&x))?;
    async_eval(std::slice::from_ref(&z))?;
    synchronize_queue(&z);
    assert_eq!(recorded(), [10]);
    assert_eq!(z.to_vec::<f32>()?, [24.0, 48.0]);
    drop((x, y, z));
    check_end(&[gpu, other]);
    Ok(())
}

/// Waits until an array's commands were submitted, not for the device.
fn synchronize_queue(array: &Array) {
    while !array.is_evaluated() {
        std::thread::yield_now();
    }
}

#[test]
fn work_of_several_streams_is_recorded_at_once() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let other = new_stream(Device::gpu(0))?;
    let x = on_device()?;
    let y = with_stream(gpu, || chain(&x, 3))?;
    let z = with_stream(other, || y.add(&x))?;
    let w = with_stream(gpu, || z.add(&y))?;
    assert_eq!(w.to_vec::<f32>()?, [18.0, 36.0]);
    let mut all: Vec<u64> = RECORDS.lock().unwrap().drain(..).map(|r| r.1).collect();
    all.sort_unstable();
    assert_eq!(all, [1, 1, 2, 3, 4]);
    drop((x, y, z, w));
    check_end(&[gpu, other]);
    Ok(())
}

#[test]
fn the_calling_thread_submits_what_is_small() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let x = on_device()?;
    let here = Some(std::thread::current().id());
    let small = with_stream(gpu, || chain(&x, 5))?;
    async_eval(std::slice::from_ref(&small))?;
    assert_eq!(*SUBMITTER.lock().unwrap(), here);
    // Long evaluations, and those behind another device, go to a worker.
    let large = with_stream(gpu, || chain(&x, 20))?;
    async_eval(std::slice::from_ref(&large))?;
    large.eval()?;
    assert_ne!(*SUBMITTER.lock().unwrap(), here);
    // Not those that ran by an executable.
    for _ in 0..3 {
        let again = with_stream(gpu, || chain(&x, 20))?;
        again.eval()?;
    }
    *SUBMITTER.lock().unwrap() = None;
    let again = with_stream(gpu, || chain(&x, 20))?;
    async_eval(std::slice::from_ref(&again))?;
    assert_eq!(*SUBMITTER.lock().unwrap(), here);
    let host = with_stream(new_stream(Device::CPU)?, || x.exp())?;
    let behind = with_stream(gpu, || host.add(&x))?;
    async_eval(std::slice::from_ref(&behind))?;
    behind.eval()?;
    assert_ne!(*SUBMITTER.lock().unwrap(), here);
    drop((x, small, large, again, host, behind));
    check_memory(&[gpu]);
    Ok(())
}

#[test]
fn a_failure_of_what_the_calling_thread_submits_stays_with_the_stream() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let x = on_device()?;
    MOST_BUFFERS.store(BUFFERS.load(SeqCst), SeqCst);
    let y = with_stream(gpu, || x.add(&x))?;
    async_eval(std::slice::from_ref(&y))?;
    drop(y);
    MOST_BUFFERS.store(usize::MAX, SeqCst);
    let error = synchronize(gpu).expect_err("there was no memory").to_string();
    assert!(error.contains("add") || error.contains("memory"), "{error}");
    synchronize(gpu)?;
    drop(x);
    check_end(&[gpu]);
    Ok(())
}

/// A device's stream that waits for another library records what came before.
#[test]
fn results_from_before_other_work_have_a_record() -> Result<()> {
    own_process!();
    let gpu = register_mock()?;
    let x = on_device()?;
    let y = with_stream(gpu, || chain(&x, 3))?;
    async_eval(std::slice::from_ref(&y))?;
    // Of work on two streams each command is recorded; that before it first.
    let other = new_stream(Device::gpu(0))?;
    let z = with_stream(gpu, || x.add(&x))?;
    let w = with_stream(other, || z.add(&x))?;
    w.eval()?;
    let all: Vec<u64> = RECORDS.lock().unwrap().drain(..).map(|r| r.1).collect();
    assert_eq!(all[..2], [3, 4]);
    drop((x, y, z, w));
    check_end(&[gpu, other]);
    Ok(())
}
