//! Custom functions, checkpoints and `depends` with memory that is not the host's: what they only
//! hand on stays where it is. The device is a mock.

use crate::support::mock_device::{BUFFERS, COPIES, init};
use std::sync::atomic::Ordering;
use ultramarine::transforms::{CustomFunction, checkpointed, grad, vjp};
use ultramarine::{Array, Device, Error, Result, default_stream, depends, register, with_stream};
use ultramarine_test_support::own_process;

#[test]
fn results_stay_where_they_are() -> Result<()> {
    own_process!();
    // SAFETY: the mock keeps to the contract.
    unsafe { register(init) }?;
    let gpu = default_stream(Device::gpu(0))?;
    let other = default_stream(Device::gpu(1))?;
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    let on_gpu = with_stream(gpu, || x.add(&x))?;
    on_gpu.eval()?;
    let copies = COPIES.load(Ordering::SeqCst);

    // One result on each device, neither of which is copied to the other.
    let f =
        CustomFunction::new(move |a| Ok(vec![with_stream(gpu, || a[0].add(&a[0]))?, a[1].clone()]))
            .with_vjp(|_, c, _| Ok(vec![Some(c[0].clone()), Some(c[1].clone())]));
    let cotangents = [x.clone(), x.clone()];
    let (out, g) = vjp(|a: &[Array]| f.call(a), &[on_gpu.clone(), x.clone()], &cotangents)?;
    out[0].eval()?;
    out[1].eval()?;
    assert_eq!(out[0].device(), Device::gpu(0));
    assert_eq!(out[0].value()?.buffer.device(), Device::gpu(0));
    assert_eq!(out[1].value()?.buffer.device(), Device::CPU);
    assert_eq!(COPIES.load(Ordering::SeqCst), copies, "something was copied");
    assert_eq!(out[0].to_vec::<f32>()?, [4.0, 8.0]);
    assert_eq!(g[1].to_vec::<f32>()?, [1.0, 2.0]);

    // An order among devices takes no copies either, not even among two accelerators.
    let elsewhere = with_stream(other, || x.add(&x))?;
    elsewhere.eval()?;
    let copies = COPIES.load(Ordering::SeqCst);
    let after = depends(&[on_gpu.clone(), x.clone()], &[elsewhere.clone(), x.clone()]);
    after[0].eval()?;
    after[1].eval()?;
    assert_eq!(after[0].value()?.buffer.device(), Device::gpu(0));
    assert_eq!(after[1].value()?.buffer.device(), Device::CPU);
    assert_eq!(COPIES.load(Ordering::SeqCst), copies, "something was copied");

    let block = |x: &Array| -> Result<Array> {
        let run = move |a: &[Array]| Ok::<_, Error>(vec![with_stream(gpu, || a[0].add(&a[0]))?]);
        checkpointed(run, std::slice::from_ref(x))?[0].sum(None)
    };
    assert_eq!(grad(block)(&x)?.to_vec::<f32>()?, [2.0, 2.0]);
    drop((x, on_gpu, cotangents, out, g, elsewhere, after));
    assert_eq!(BUFFERS.load(Ordering::SeqCst), 0, "device buffers are left over");
    Ok(())
}
