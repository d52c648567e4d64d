//! Memory that is not the host's: mirrors, their counts and their end, and the
//! errors of mixed devices. The device is a mock, and says so.

use crate::support::mock_device::{BUFFERS, COPIES, init};
use std::sync::atomic::Ordering;
use ultramarine::{
    Array, Device, Dtype, Error, Result, Stream, backends, default_stream, memory, op_counts,
    register, set_strict, stats, with_stream,
};
use ultramarine_test_support::own_process;

#[test]
fn a_registered_device() -> Result<()> {
    own_process!();
    let missing = default_stream(Device::gpu(0));
    assert!(matches!(&missing, Err(Error::Value(t)) if t.contains("gpu:0")), "{missing:?}");
    // SAFETY: the mock keeps to the contract.
    let devices = unsafe { register(init) }?;
    assert_eq!(devices, [Device::gpu(0), Device::gpu(1)]);
    assert_eq!(backends()[1].name, "mock");
    let gpu = default_stream(Device::gpu(0))?;

    // A device op reads host values: one mirror each, kept for the next reader.
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let mirrors = stats().mirrors;
    let y = with_stream(gpu, || x.add(&x))?;
    y.eval()?;
    assert_eq!((stats().mirrors - mirrors, COPIES.load(Ordering::SeqCst)), (1, 1));
    let z = with_stream(gpu, || x.add(&y))?;
    z.eval()?;
    assert_eq!(COPIES.load(Ordering::SeqCst), 1, "the mirror of x is used again");

    // A host op reads a device value, also through a view; so does the user.
    let cpu = default_stream(Device::CPU)?;
    let t = with_stream(cpu, || z.transpose_axes([1, 0])?.exp())?;
    let want: Vec<f32> = [3.0f32, 9.0, 6.0, 12.0].iter().map(|v| v.exp()).collect();
    for (a, b) in t.to_vec::<f32>()?.iter().zip(&want) {
        assert!((a - b).abs() < 1e-5 * b);
    }
    assert_eq!(z.to_vec::<f32>()?, [3.0, 6.0, 9.0, 12.0]);
    assert_eq!(COPIES.load(Ordering::SeqCst), 2, "both reads share the mirror of z");

    // What the device does not take contiguously is copied there, and counted.
    let copies = stats().contiguous_copies;
    let s = with_stream(gpu, || z.transpose_axes([1, 0])?.add(&z))?;
    assert_eq!(s.to_vec::<f32>()?, [6.0, 15.0, 15.0, 24.0]);
    assert_eq!(stats().contiguous_copies - copies, 1);

    // What it cannot do runs on the CPU, and the result lives on the device. In strict mode
    // it is an error that names op, dtypes, backend and the way out, and poisons only what
    // depends on it.
    let before = COPIES.load(Ordering::SeqCst);
    let product = with_stream(gpu, || z.multiply(&z))?;
    assert_eq!(product.to_vec::<f32>()?, [9.0, 36.0, 81.0, 144.0]);
    assert_eq!(
        COPIES.load(Ordering::SeqCst) - before,
        2,
        "z has a mirror; the product went up and down"
    );
    let count = op_counts().into_iter().find(|c| c.device == Device::gpu(0) && c.op == "multiply");
    assert_eq!(
        count.map(|c| (c.backend, c.native, c.decomposed, c.cpu)),
        Some(("mock".into(), 0, 0, 1))
    );
    set_strict(true, &[]);
    let bad = with_stream(gpu, || z.multiply(&z))?;
    let error = bad.eval().expect_err("the mock cannot multiply").to_string();
    for word in ["[multiply]", "mock", "gpu:0", "float32", "set_strict"] {
        assert!(error.contains(word), "{error}");
    }
    let dependent = bad.add(&x)?;
    assert!(matches!(dependent.eval(), Err(Error::Poisoned { .. })));
    assert_eq!(z.to_vec::<f32>()?, [3.0, 6.0, 9.0, 12.0]);
    set_strict(true, &["multiply"]);
    assert_eq!(with_stream(gpu, || z.multiply(&z))?.to_vec::<f32>()?, [9.0, 36.0, 81.0, 144.0]);
    set_strict(false, &[]);

    // A dtype that it cannot even store has no fallback.
    let wide = with_stream(gpu, || x.astype(Dtype::Float64).add(x.astype(Dtype::Float64)))?;
    let error = wide.eval().expect_err("no float64 there");
    assert!(
        matches!(&error.root(), Error::Value(t) if t.contains("float64") && t.contains("gpu:0")),
        "{error}"
    );

    foreign_memory(gpu)?;

    // Everything goes back where it came from.
    let ones = with_stream(gpu, || {
        Array::ones(&[1000], Dtype::Float32)?.add(&Array::ones(&[1000], Dtype::Float32)?)
    })?;
    ones.eval()?;
    assert!(BUFFERS.load(Ordering::SeqCst) > 0);
    drop((x, y, z, t, s, product, bad, dependent, wide, ones));
    assert_eq!(BUFFERS.load(Ordering::SeqCst), 0, "device buffers left over");
    Ok(())
}

/// What reading arrays of a device leaves on the host is a cache: its limit is the cache's.
#[test]
fn mirrors_on_the_host_are_limited() -> Result<()> {
    own_process!();
    const BYTES: usize = 4096;
    // SAFETY: the mock keeps to the contract.
    unsafe { register(init) }?;
    let gpu = default_stream(Device::gpu(0))?;
    let one = Array::ones(&[BYTES / 4], Dtype::Float32)?;
    let make = || -> Result<Array> {
        let x = with_stream(gpu, || one.add(&one))?;
        x.eval()?;
        Ok(x)
    };
    let all = (0..10).map(|_| make()).collect::<Result<Vec<_>>>()?;
    let before = memory::active();
    let mirrors = || (memory::active() - before) / BYTES;
    let read = |i: usize| all[i].to_vec::<f32>().map(|v| assert_eq!(v, [2.0; BYTES / 4]));
    let copies = |i: usize| -> Result<usize> {
        let before = COPIES.load(Ordering::SeqCst);
        read(i)?;
        Ok(COPIES.load(Ordering::SeqCst) - before)
    };
    (0..10).try_for_each(read)?;
    assert_eq!(mirrors(), 10);
    // A lower limit is that of those that are there already; the oldest go first.
    let former = memory::set_cache_limit(3 * BYTES + 100);
    assert_eq!(mirrors(), 3);
    assert_eq!((copies(9)?, copies(7)?, copies(6)?), (0, 0, 1));
    assert_eq!((mirrors(), copies(7)?, copies(6)?, copies(9)?), (3, 1, 0, 0));
    // One that is larger than the limit is not kept.
    memory::set_cache_limit(BYTES - 1);
    assert_eq!((mirrors(), copies(9)?, copies(9)?, mirrors()), (0, 1, 1, 0));
    // Mirrors of arrays that are gone do not count.
    memory::set_cache_limit(2 * BYTES);
    for _ in 0..5 {
        make()?.to_vec::<f32>()?;
    }
    assert_eq!((mirrors(), copies(0)?, copies(1)?), (0, 1, 1));
    assert_eq!((mirrors(), copies(0)?), (2, 0));
    // Nor do mirrors of host values on devices, which the host's cache has nothing to do with.
    let made = COPIES.load(Ordering::SeqCst);
    let host = Array::from_slice(&[1.0f32; BYTES], &[BYTES])?;
    for _ in 0..2 {
        with_stream(gpu, || host.add(&host))?.eval()?;
    }
    assert_eq!(COPIES.load(Ordering::SeqCst), made + 1);
    drop(host);
    assert_eq!(mirrors(), 2);
    memory::clear_cache();
    assert_eq!(mirrors(), 0);
    memory::set_cache_limit(former);
    Ok(())
}

/// Memory that others may write to has no mirror that is kept: it is copied for each operand.
fn foreign_memory(gpu: Stream) -> Result<()> {
    let copies = |x: &Array, wanted: [f32; 2]| -> Result<usize> {
        let before = COPIES.load(Ordering::SeqCst);
        let y = with_stream(gpu, || x.add(x))?;
        y.eval()?;
        let copies = COPIES.load(Ordering::SeqCst) - before;
        assert_eq!(y.to_vec::<f32>()?, wanted);
        Ok(copies)
    };
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    let write = |value: f32| {
        // SAFETY: two numbers, which nobody reads at this time.
        x.value().map(|v| unsafe { v.data().cast::<f32>().write(value) })
    };
    assert_eq!((copies(&x, [2.0, 4.0])?, copies(&x, [2.0, 4.0])?), (1, 0));
    // An export ends the mirror that is there, and there is no other while it lives.
    let tensor = x.to_dlpack()?;
    write(3.0)?;
    assert_eq!(copies(&x, [6.0, 4.0])?, 2);
    write(4.0)?;
    assert_eq!(copies(&x, [8.0, 4.0])?, 2);
    // As an import it is the same memory.
    let y = Array::from_dlpack(tensor)?;
    assert_eq!((copies(&y, [8.0, 4.0])?, copies(&y, [8.0, 4.0])?), (2, 2));
    drop(y);
    assert_eq!((copies(&x, [8.0, 4.0])?, copies(&x, [8.0, 4.0])?), (1, 0), "ours again");
    Ok(())
}
