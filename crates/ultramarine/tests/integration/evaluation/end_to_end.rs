//! The path of data from a call to its value.

use ultramarine::{Array, Dtype, Result, eval};
use ultramarine_test_support::own_process;

#[test]
fn arithmetic_and_reduction() -> Result<()> {
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let row = Array::from_slice(&[10.0f32, 20.0, 30.0], &[3])?;
    let y = x.multiply(&row)?.add(Array::scalar(1.0f32))?;
    assert_eq!(y.to_vec::<f32>()?, [11.0, 41.0, 91.0, 41.0, 101.0, 181.0]);
    let s = y.sum(1)?;
    assert_eq!(s.to_vec::<f32>()?, [143.0, 323.0]);
    let t = x.transpose_axes([1, 0])?.add(&Array::ones(&[3, 2], Dtype::Float32)?)?;
    assert_eq!(t.to_vec::<f32>()?, [2.0, 5.0, 3.0, 6.0, 4.0, 7.0]);
    let ones = Array::ones(&[5, 7], Dtype::Int32)?;
    assert_eq!(ones.add(&ones)?.sum([0, 1])?.item::<i32>()?, 70);
    Ok(())
}

#[test]
fn deep_chain() -> Result<()> {
    let y = Array::from_slice(&[1.0f32; 4], &[4])?;
    let mut x = Array::zeros(&[4], Dtype::Float32)?;
    for _ in 0..1_000_000 {
        x = x.add(&y)?;
    }
    assert_eq!(x.to_vec::<f32>()?, [1e6; 4]);
    Ok(())
}

#[test]
fn deep_chain_dropped_unevaluated() -> Result<()> {
    let mut x = Array::zeros(&[4], Dtype::Float32)?;
    for _ in 0..1_000_000 {
        x = x.add(&x)?;
    }
    drop(x);
    Ok(())
}

#[test]
fn threads_share_lazy_arrays() -> Result<()> {
    let x = Array::from_slice(&[1.0f32; 64], &[64])?;
    for _ in 0..100 {
        let shared = x.add(&x)?.exp()?;
        let sum: Vec<_> = std::thread::scope(|s| {
            let work = || {
                let y = shared.multiply(&shared)?.sum(0)?;
                eval(std::slice::from_ref(&y))?;
                y.item::<f32>()
            };
            let threads: Vec<_> = (0..8).map(|_| s.spawn(work)).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        for s in sum {
            assert!((s? - 64.0 * 4f32.exp()).abs() < 0.1);
        }
    }
    Ok(())
}

#[test]
fn arrays_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Array>();
    check::<ultramarine::Error>();
}

#[test]
fn queued_work_is_held_back_over_the_memory_limit() -> Result<()> {
    own_process!();
    use ultramarine::{Device, async_eval, memory, new_stream, with_stream};
    let stream = new_stream(Device::CPU)?;
    let before = memory::set_memory_limit(1 << 20);
    let x = Array::ones(&[1 << 18], Dtype::Float32)?;
    let mut held = Vec::new();
    // Each result is as large as the limit; the submitter waits, and all finish.
    for i in 0..20 {
        let y = with_stream(stream, || x.add(Array::scalar(i as f32)))?;
        async_eval(std::slice::from_ref(&y))?;
        held.push(y);
    }
    for (i, y) in held.iter().enumerate() {
        assert_eq!(y.to_vec::<f32>()?[5], 1.0 + i as f32);
    }
    memory::set_memory_limit(before);
    Ok(())
}
