//! The validation layer between the host and a backend: what a correct pair does is let through, what
//! a careless backend does is told. The devices are mocks, and say so.

use crate::support::mock_device;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use ultramarine::backends::{register, validation_findings};
use ultramarine::{Array, Device, Dtype, Result, default_stream, synchronize, with_stream};
use ultramarine_abi as abi;
use ultramarine_test_support::own_process;

/// Says that all is well, and gives no buffer.
unsafe extern "C" fn careless_alloc(
    _: *mut c_void,
    _: u64,
    buffer: *mut *mut c_void,
    _: *mut *mut abi::Error,
) -> abi::Status {
    // SAFETY: the host's place for the answer.
    unsafe { *buffer = std::ptr::null_mut() };
    abi::status::OK
}

unsafe extern "C" fn careless(
    host: *const abi::HostTable,
    table: *mut abi::BackendTable,
    error: *mut *mut abi::Error,
) -> abi::Status {
    // SAFETY: the host's arguments, passed on.
    unsafe {
        let code = mock_device::init(host, table, error);
        (*table).buffer_alloc = Some(careless_alloc);
        code
    }
}

#[test]
fn watched_backends() -> Result<()> {
    own_process!("ULTRAMARINE_VALIDATE" = "1");
    // SAFETY: the mock keeps to the contract.
    let devices = unsafe { register(mock_device::init) }?;
    let gpu = default_stream(devices[0])?;

    // A backend that runs ahead, and the CPU, with mirrors, copies and donations.
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let y = with_stream(gpu, || x.add(&x)?.transpose_axes([1, 0])?.add(&x))?;
    let z = y.exp()?.sum(None)?.add(Array::scalar(1.0f32))?;
    assert_eq!(y.to_vec::<f32>()?, [3.0, 8.0, 7.0, 12.0]);
    z.eval()?;
    let chain = with_stream(gpu, || {
        let mut a = Array::ones(&[1000], Dtype::Float32)?;
        for _ in 0..50 {
            a = a.add(&Array::ones(&[1000], Dtype::Float32)?)?;
        }
        Ok(a)
    })?;
    assert_eq!(chain.to_vec::<f32>()?[7], 51.0);
    let sorted = Array::from_slice(&[3i32, 1, 2], &[3])?.sort(Some(-1))?;
    assert_eq!(sorted.to_vec::<i32>()?, [1, 2, 3]);
    drop((x, y, z, chain));
    // The stream's thread may still hold what it evaluated last.
    synchronize(gpu)?;
    assert_eq!(mock_device::BUFFERS.load(Ordering::SeqCst), 0);
    assert_eq!(validation_findings(), 0);

    // SAFETY: what it does wrong is caught before anything relies on it.
    let devices = unsafe { register(careless) }?;
    assert_eq!(devices[0], Device::gpu(2));
    let filled = with_stream(default_stream(devices[0])?, || Array::ones(&[3], Dtype::Float32))?;
    let error = filled.eval().expect_err("no memory").to_string();
    assert!(error.contains("validation: buffer_alloc of mock"), "{error}");
    assert!(validation_findings() > 0);
    Ok(())
}
