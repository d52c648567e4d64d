//! Counts and limits of devices' memory. The devices are mocks, and say so: gpu:0 and gpu:1
//! are one backend's, which may keep counts of its own; gpu:2 and gpu:3 another's.

use crate::support::mock_device::*;
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::memory::*;
use ultramarine::{Array, Device, Dtype, Error, Result, register, synchronize, with_stream};
use ultramarine_test_support::own_process;

const GPU0: Option<Device> = Some(Device::gpu(0));
const GPU1: Option<Device> = Some(Device::gpu(1));
const GPU2: Option<Device> = Some(Device::gpu(2));
const CPU: Option<Device> = Some(Device::CPU);

/// An evaluated array of so many float32 on a device.
fn floats(n: usize, device: Option<Device>) -> Result<Array> {
    let x = Array::ones(&[n], Dtype::Float32)?.copy_to(device.unwrap())?;
    x.eval()?;
    // The thread that ran it has let go of it, too.
    synchronize(ultramarine::default_stream(device.unwrap())?)?;
    Ok(x)
}

#[test]
fn counts_and_limits() -> Result<()> {
    own_process!();
    // No accelerator: the CPU's, as without devices.
    let host = Array::from_slice(&[0f32; 1024], &[1024])?;
    assert_eq!((active_on(None)?, active_on(CPU)?), (active(), active()));
    assert!(active() >= host.nbytes());
    let former = set_memory_limit_on(1 << 40, None)?;
    assert_eq!(memory_limit(), 1 << 40);
    assert_eq!(set_memory_limit_on(former, CPU)?, 1 << 40);
    assert!(matches!(active_on(GPU0), Err(Error::Value(_))), "no such device yet");

    // SAFETY: the mock keeps to the contract.
    unsafe { register(init) }?;
    assert_eq!(active_on(None)?, 0, "the accelerators', of which nothing is in use");
    assert_eq!(active_on(CPU)?, active());
    let (a, b) = (floats(1000, GPU0)?, floats(500, GPU1)?);
    assert_eq!((active_on(GPU0)?, active_on(GPU1)?, active_on(None)?), (4000, 2000, 6000));
    drop(b);
    assert_eq!((active_on(None)?, peak_on(None)?, peak_on(GPU1)?), (4000, 6000, 2000));
    reset_peak_on(None)?;
    assert_eq!((peak_on(GPU0)?, peak_on(GPU1)?), (4000, 0));
    assert_eq!(cached_on(None)?, 0);
    clear_cache_on(None)?;

    // The host's limit: what is in flight is waited for before it is an error.
    let stream = ultramarine::default_stream(Device::gpu(0))?;
    DELAY.store(200, SeqCst);
    assert_eq!(set_memory_limit_on(16_000, None)?, usize::MAX);
    assert_eq!((memory_limit_on(GPU0)?, memory_limit_on(None)?), (16_000, 16_000));
    let mut y = a.add(&a)?;
    for _ in 0..50 {
        // Two of 4000 bytes are alive at a time, besides `a`.
        y = with_stream(stream, || y.subtract(&a))?;
        ultramarine::async_eval(std::slice::from_ref(&y))?;
    }
    assert_eq!(y.to_vec::<f32>()?, vec![-48.0; 1000]);
    let error = floats(4000, GPU0).expect_err("more than the limit");
    assert!(matches!(error.root(), Error::Memory(t) if t.contains("16000")), "{error}");
    assert_eq!(a.to_vec::<f32>()?[0], 1.0, "what there is stays");
    // Mirrors of host values are given up first.
    let mirrored = Array::from_slice(&[1.0f32; 1000], &[1000])?;
    with_stream(stream, || mirrored.add(&a))?.eval()?;
    drop(y);
    synchronize(ultramarine::default_stream(Device::CPU)?)?;
    synchronize(stream)?;
    assert_eq!(active_on(GPU0)?, 8000);
    let large = floats(3000, GPU0)?;
    assert_eq!(active_on(GPU0)?, 16_000);
    drop(large);
    set_memory_limit_on(usize::MAX, None)?;
    DELAY.store(0, SeqCst);

    // A second backend: setters want to know which.
    // SAFETY: as above.
    unsafe { register(init_plain) }?;
    let refused =
        [set_memory_limit_on(1, None), set_cache_limit_on(1, None), set_wired_limit_on(1, None)];
    for (result, name) in refused.into_iter().zip(["memory", "cache", "wired"]) {
        let form = format!("set_{name}_limit(limit, device)");
        match result {
            Err(Error::Value(t)) => {
                assert!(t.contains(&form) && t.contains("mock") && t.contains("plain"), "{t}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(set_cache_limit_on(5, GPU2)?, usize::MAX);
    assert_eq!(set_cache_limit_on(6, GPU2)?, 5);
    let c = floats(100, GPU2)?;
    assert_eq!(active_on(None)?, active_on(GPU0)? + 400);

    // A backend's own counts and limits stand before the host's.
    STATISTICS.store(true, SeqCst);
    assert_eq!((active_on(GPU0)?, peak_on(GPU0)?, cached_on(GPU0)?), (111, 222, 333));
    assert_eq!(active_on(None)?, 222 + 400);
    assert_eq!((set_wired_limit_on(9, GPU0)?, set_wired_limit_on(8, GPU1)?), (7, 9));
    assert_eq!((LIMITS[2].load(SeqCst), LIMITS[1].load(SeqCst)), (8, 7));
    assert_eq!(memory_limit_on(GPU0)?, 7);
    STATISTICS.store(false, SeqCst);

    drop((a, c, mirrored));
    assert_eq!((active_on(None)?, BUFFERS.load(SeqCst), VIOLATIONS.load(SeqCst)), (0, 0, 0));
    Ok(())
}
