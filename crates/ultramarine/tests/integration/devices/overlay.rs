//! Backends of device type CPU lie over cpu:0: they are asked first, by score, and what
//! they refuse falls through to the built-in kernels. Counts say whose kernels ran.

use crate::support::partial_backend::{Like, PLAIN, Partial, register};
use std::sync::atomic::{AtomicBool, Ordering};
use ultramarine::{
    Array, Device, Dtype, OpCount, Result, device_count, op_counts, reset_op_counts, stats,
};
use ultramarine_abi::{
    schema::{binary, op, unary},
    status,
};
use ultramarine_test_support::own_process;

/// In this order: overlays stay for the rest of the process, and counts are the process'.
#[test]
fn overlays() -> Result<()> {
    own_process!();
    backends_that_are_no_overlay()?;
    troublesome()?;
    over_the_built_in_kernels()?;
    an_overlay_arrives_during_evaluations()
}

fn count(backend: &str, name: &str) -> Option<OpCount> {
    op_counts()
        .into_iter()
        .find(|c| c.device == Device::CPU && c.backend == backend && c.op == name)
}

fn numbers() -> Array {
    Array::arange(1.0, 10_001.0, 1.0, Dtype::Float32).expect("a range")
}

fn overlay(name: &'static std::ffi::CStr, fused: bool, refuse: &'static [u32]) -> Partial {
    let like = Like { overlay: true, fused, name, ..PLAIN };
    let partial = register(
        like,
        Box::new(move |r| match refuse.contains(&r.op) {
            true => status::UNSUPPORTED,
            false => status::OK,
        }),
    );
    assert_eq!(partial.device, Device::CPU);
    partial
}

fn over_the_built_in_kernels() -> Result<()> {
    // Planned by the built-in kernels, and still alive when the overlay comes.
    let x = numbers();
    let before = x.exp()?;
    before.eval()?;
    let want = before.to_vec::<f32>()?;
    let devices = device_count(ultramarine::DeviceType::Cpu);

    let over = overlay(c"first", false, &[op::REDUCE, op::MATMUL]);
    reset_op_counts();
    assert_eq!(before.to_vec::<f32>()?, want, "arrays stay valid");
    let after = x.exp()?;
    assert_eq!(after.to_vec::<f32>()?, want);
    // The plan was made anew, by the overlay.
    assert_eq!(count("first", "exp").map(|c| (c.native, c.decomposed, c.cpu)), Some((1, 0, 0)));
    assert_eq!(over.commands(), 1);
    assert!(count("cpu", "exp").is_none());
    // What it refuses is the built-in kernels' own, no fallback.
    let m = x.reshape(&[100, 100])?;
    let product = m.matmul(&m)?.sum(None)?;
    product.eval()?;
    assert_eq!(count("cpu", "matmul").map(|c| c.native), Some(1));
    assert!(op_counts().iter().all(|c| c.decomposed + c.cpu == 0));
    // Fused programs too: an overlay without the interface leaves them to the others.
    let programs = stats().fused;
    let y = x.multiply(&x)?.add(&x)?.sqrt()?;
    y.eval()?;
    assert_eq!(stats().fused, programs + 1);
    assert_eq!(count("cpu", "sqrt").map(|c| c.native), Some(1));
    assert!(count("first", "sqrt").is_none());
    assert_eq!(device_count(ultramarine::DeviceType::Cpu), devices, "no device is added");

    // Of equal score: the first one first. What neither takes falls through both.
    let second = overlay(c"second", true, &[op::MATMUL]);
    reset_op_counts();
    assert_eq!(x.exp()?.to_vec::<f32>()?, want);
    assert!(count("first", "exp").is_some() && count("second", "exp").is_none());
    let z = x.multiply(&x)?.add(&x)?.sqrt()?;
    assert_eq!(z.to_vec::<f32>()?, y.to_vec::<f32>()?);
    assert_eq!(count("second", "sqrt").map(|c| c.native), Some(1));
    assert_eq!(second.commands(), 1);
    m.matmul(&m)?.eval()?;
    assert_eq!(count("cpu", "matmul").map(|c| c.native), Some(1));
    Ok(())
}

/// Overlays that come while other threads evaluate: every result is right, and plans of
/// tables that are no longer asked first are used to their end.
fn an_overlay_arrives_during_evaluations() -> Result<()> {
    let x = numbers();
    x.eval()?;
    let want = x.square()?.add(&x)?.sum(None)?.to_vec::<f32>()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = || -> Result<usize> {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) || rounds < 10 {
                let y = x.square()?.add(&x)?;
                y.eval()?;
                assert_eq!(y.sum(None)?.to_vec::<f32>()?, want);
                rounds += 1;
            }
            Ok(rounds)
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        for i in 0..20 {
            let refuse: &[u32] = if i % 2 == 0 { &[op::BINARY] } else { &[op::UNARY] };
            overlay(c"late", i % 3 == 0, refuse);
        }
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            assert!(worker.join().expect("no panic").expect("no error") >= 10);
        }
    });
    Ok(())
}

/// An overlay that asks for contiguous tensors where none can be had, or fails to make plans,
/// does not take the built-in kernels with it.
fn troublesome() -> Result<()> {
    let like = Like { overlay: true, name: c"troublesome", ..PLAIN };
    register(
        like,
        Box::new(|r| match (r.op, r.strided) {
            (op::SORT, _) => status::ERROR,
            (_, true) => status::NEEDS_CONTIGUOUS,
            _ => status::UNSUPPORTED,
        }),
    );
    let x = Array::arange(0.0, 12.0, 1.0, Dtype::Float32)?.reshape(&[3, 4])?;
    let t = x.transpose_axes([1, 0])?;
    assert_eq!(t.contiguous().to_vec::<f32>()?[..3], [0.0, 4.0, 8.0]);
    let row = Array::ones(&[3, 1], Dtype::Float32)?;
    let updated = x.slice_update(&row, &[0, 1], &[3, 2], &[1, 1])?;
    assert_eq!(updated.to_vec::<f32>()?[..6], [0.0, 1.0, 2.0, 3.0, 4.0, 1.0]);
    assert_eq!(t.sort(Some(1))?.to_vec::<f32>()?[..3], [0.0, 4.0, 8.0]);
    assert_eq!(t.exp()?.to_vec::<f32>()?[0], 1.0);
    Ok(())
}

fn backends_that_are_no_overlay() -> Result<()> {
    // A GPU of the same table is a device, not an overlay.
    let gpu = register(
        PLAIN,
        Box::new(|r| match (r.op, r.code) {
            (op::UNARY, unary::EXP) | (op::BINARY, binary::ADD) => status::UNSUPPORTED,
            _ => status::OK,
        }),
    );
    assert_ne!(gpu.device, Device::CPU);
    reset_op_counts();
    numbers().exp()?.eval()?;
    assert_eq!(gpu.commands(), 0);
    Ok(())
}
