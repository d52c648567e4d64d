//! The end of all work: what was given is done, what is computed can be read, and devices refuse all else.

use crate::support::mock_device::*;
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{
    Array, Device, Result, async_eval, eval, new_stream, register, shutdown, synchronize,
    with_stream,
};
use ultramarine_test_support::own_process;

#[test]
fn devices_refuse_work_after_the_end() -> Result<()> {
    own_process!();
    // SAFETY: the mock keeps to the contract.
    unsafe { register(init) }.unwrap();
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    DELAY.store(1000, SeqCst);
    let mut results = Vec::new();
    for device in [Device::gpu(0), Device::gpu(1), Device::CPU] {
        for _ in 0..7 {
            let stream = new_stream(device)?;
            let y = with_stream(stream, || (0..5).try_fold(x.clone(), |y, _| y.add(&x)))?;
            async_eval(std::slice::from_ref(&y))?;
            results.push((stream, y));
        }
    }
    shutdown();
    let live = BUFFERS.load(SeqCst);
    for (stream, y) in results {
        assert!(y.is_available(), "{stream:?}");
        assert_eq!(y.to_vec::<f32>()?, [6.0, 12.0], "{stream:?}");
        let z = with_stream(stream, || y.add(&x))?;
        match stream.device {
            Device::CPU => assert_eq!(z.to_vec::<f32>()?, [7.0, 14.0]),
            _ => {
                let error = eval(&[z]).unwrap_err().to_string();
                assert!(error.contains("cannot be used while the process exits"), "{error}");
                assert!(synchronize(stream).is_err());
            }
        }
    }
    assert_eq!(BUFFERS.load(SeqCst), live, "memory is left to the system");
    assert_eq!(VIOLATIONS.load(SeqCst), 0);
    shutdown();
    Ok(())
}
