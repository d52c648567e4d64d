//! Where operations run, mixed accelerators, copies between devices. The devices are mocks,
//! and say so: gpu:0 and gpu:1 are of one backend.

use crate::support::mock_device::*;
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{
    Array, Device, Dtype, Error, Result, TransferPolicy, TransferScope, default_stream, random,
    register, set_default_device, set_transfer_policy, stats, synchronize, transforms, with_stream,
};
use ultramarine_test_support::own_process;

const GPU0: Device = Device::gpu(0);
const GPU1: Device = Device::gpu(1);

/// Registers the mock's two devices; the CPU stays the default.
fn register_mock() {
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { register(init) }.unwrap(), [GPU0, GPU1]);
    set_default_device(Device::CPU).unwrap();
}

fn array(data: &[f32]) -> Array {
    Array::from_slice(data, &[data.len()]).unwrap()
}

#[track_caller]
fn refused<T>(result: Result<T>) -> String {
    match result {
        Err(Error::Value(text)) => text.to_string(),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("no error at the call"),
    }
}

#[test]
fn operations_follow_the_scope_their_operands_or_the_default() -> Result<()> {
    own_process!();
    register_mock();
    let x = array(&[1.0, 2.0]);
    assert_eq!(x.add(&x)?.device(), Device::CPU);
    let on0 = x.copy_to(GPU0)?;
    let on1 = x.copy_to(GPU1)?;
    assert_eq!((on0.device(), on1.device()), (GPU0, GPU1));
    // Operands at home on an accelerator, beside those of the host on either side.
    for y in [on1.add(&x)?, x.add(&on1)?, on1.add(Array::scalar(1.0f32))?] {
        assert_eq!(y.device(), GPU1);
        assert_eq!(y.add(&y)?.device(), GPU1, "results are at home there too");
    }
    assert_eq!(on1.add(&x)?.to_vec::<f32>()?, [2.0, 4.0]);
    // A scope wins; on the CPU everything mixes.
    let cpu = default_stream(Device::CPU)?;
    let both = with_stream(cpu, || on0.add(&on1))?;
    assert_eq!((both.device(), both.to_vec::<f32>()?), (Device::CPU, vec![2.0, 4.0]));
    // The default device takes what has no home, and gives none to what is created.
    set_default_device(GPU0)?;
    let made = array(&[3.0, 4.0]);
    assert_eq!(made.add(&x)?.device(), GPU0);
    assert_eq!(made.add(&on1)?.device(), GPU1);
    let zeros = Array::zeros(&[2, 2], Dtype::Float32)?;
    assert_eq!(zeros.add(&on1)?.device(), GPU1);
    assert_eq!(made.reshape(&[2, 1])?.astype(Dtype::Float32).add(&on1)?.device(), GPU1);
    assert_eq!(on1.ones_like().add(&x)?.device(), GPU1);
    assert_eq!(zeros.add(&on1)?.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0]);
    // The default is not asked again when it changes.
    set_default_device(GPU1)?;
    assert_eq!(made.add(&x)?.device(), GPU1);
    Ok(())
}

#[test]
fn composed_operations_stay_with_their_operands() -> Result<()> {
    own_process!();
    register_mock();
    set_default_device(GPU0)?;
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?.copy_to(GPU1)?;
    let index = Array::from_slice(&[-1i32, 0], &[2])?;
    let parts = [
        x.tril(0)?,
        x.triu(1)?,
        x.take(&index, Some(0))?,
        x.index(&[index.clone().into()])?,
        x.subtract(&Array::ones(&[2, 1], Dtype::Float32)?)?,
        x.pad(&[(3, 3), (3, 3)], ultramarine::PadMode::Symmetric, Array::scalar(0.0f32))?,
        x.softmax(None, false)?,
        x.var(None, 0)?,
        random::bernoulli(None, &x, None)?,
        random::permute(&x, 0, None)?,
        random::categorical(&x, -1, random::Samples::One, None)?,
    ];
    assert!(parts.iter().all(|p| p.device() == GPU1));
    // The state of the generator serves both devices by turns.
    let stream = default_stream(GPU1)?;
    with_stream(stream, || random::normal(&[2], None, None, Dtype::Float32, None))?;
    random::normal(&[2], None, None, Dtype::Float32, None)?;
    Ok(())
}

#[test]
fn accelerators_mix_only_by_copy_or_policy() -> Result<()> {
    own_process!();
    register_mock();
    let (a, b) = (array(&[1.0, 2.0]).copy_to(GPU0)?, array(&[3.0, 4.0]).copy_to(GPU1)?);
    let text = refused(a.add(&b));
    for part in [
        "[add]",
        "mock gpu:0",
        "mock gpu:1",
        "copy(x, device)",
        "x.copy_to(device)",
        "set_transfer_policy",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    refused(a.reshape(&[1, 2])?.matmul(&b.reshape(&[2, 1])?));
    refused(ultramarine::concatenate(&[a.clone(), b.clone()], 0));
    refused(ultramarine::where_(&a, &b, &b));
    // In a scope too, where only one operand is elsewhere.
    let gpu1 = default_stream(GPU1)?;
    let text = refused(with_stream(gpu1, || a.add(&a)));
    assert!(text.contains("gpu:0") && text.contains("gpu:1"), "{text}");
    refused(with_stream(gpu1, || a.negative()));
    // By the default device at different times.
    set_default_device(GPU0)?;
    let c = array(&[1.0]).add(array(&[1.0]))?;
    set_default_device(GPU1)?;
    refused(c.add(&b));
    set_default_device(Device::CPU)?;

    let before = stats().transfers;
    let sum = {
        let _scope = TransferScope::new(TransferPolicy::Host);
        a.add(&b)?
    };
    refused(a.add(&b));
    assert_eq!((sum.device(), sum.to_vec::<f32>()?), (GPU0, vec![4.0, 6.0]));
    assert_eq!(stats().transfers - before, 1);
    assert_eq!(set_transfer_policy(TransferPolicy::Host), TransferPolicy::Error);
    let sum = with_stream(gpu1, || a.add(&b));
    assert_eq!(set_transfer_policy(TransferPolicy::Error), TransferPolicy::Host);
    assert_eq!(sum?.to_vec::<f32>()?, [4.0, 6.0]);
    Ok(())
}

#[test]
fn copies_are_lazy_and_reverse() -> Result<()> {
    own_process!();
    register_mock();
    let copies = COPIES.load(SeqCst);
    let x = array(&[1.0, 2.0, 3.0]);
    let there = x.copy_to(GPU0)?;
    let across = there.copy_to(GPU1)?;
    let back = across.copy_to(Device::CPU)?;
    assert!(!back.is_evaluated());
    assert_eq!(COPIES.load(SeqCst), copies, "nothing is copied before it is needed");
    assert_eq!(back.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    // Up, down and up again, down.
    assert_eq!(COPIES.load(SeqCst) - copies, 4);
    // A view takes only its elements along, in their order.
    let flipped = x.flip(None)?.copy_to(GPU1)?;
    assert_eq!(flipped.add(&flipped)?.to_vec::<f32>()?, [6.0, 4.0, 2.0]);
    assert!(matches!(x.copy_to(Device::gpu(9)), Err(Error::Value(t)) if t.contains("gpu:9")));

    // A backend that can copies by itself, in the order of the streams.
    PEER.store(true, SeqCst);
    DELAY.store(1000, SeqCst);
    let (copies, peers) = (COPIES.load(SeqCst), PEER_COPIES.load(SeqCst));
    let sum = there.add(&there)?.copy_to(GPU1)?.add(&across)?;
    ultramarine::async_eval(std::slice::from_ref(&sum))?;
    synchronize(default_stream(GPU1)?)?;
    assert_eq!((COPIES.load(SeqCst), PEER_COPIES.load(SeqCst) - peers), (copies, 1));
    assert_eq!(sum.to_vec::<f32>()?, [3.0, 6.0, 9.0]);
    DELAY.store(0, SeqCst);
    PEER.store(false, SeqCst);

    // The gradient comes back to where the operand is.
    let start = x.copy_to(GPU0)?;
    let f = |a: &[Array]| Ok(vec![a[0].add(&a[0])?.copy_to(GPU1)?.add(Array::scalar(1.0f32))?]);
    let seed = array(&[1.0, 10.0, 100.0]);
    let (_, grads) = transforms::vjp(f, std::slice::from_ref(&start), std::slice::from_ref(&seed))?;
    assert_eq!(grads[0].device(), GPU0);
    assert_eq!(grads[0].to_vec::<f32>()?, [2.0, 20.0, 200.0]);
    let (_, tangents) = transforms::jvp(f, &[start], &[seed])?;
    assert_eq!(tangents[0].device(), GPU1);
    assert_eq!(tangents[0].to_vec::<f32>()?, [2.0, 20.0, 200.0]);
    Ok(())
}
