//! Bytes written by assembling arrays, counted.

use ultramarine::{Array, Dtype, PadMode, Result, concatenate, eval, reset_stats, stats};
use ultramarine_test_support::own_process;

const N: usize = 1 << 16;
const BYTES: u64 = 4 * N as u64;

/// Bytes written by evaluating what `f` makes.
fn written(f: impl FnOnce() -> Result<Array>) -> Result<u64> {
    let y = f()?;
    eval(&[] as &[Array])?;
    reset_stats();
    y.eval()?;
    Ok(stats().bytes_written)
}

#[test]
fn each_element_is_written_once_or_little_more() -> Result<()> {
    own_process!();
    let x = Array::from_slice(&vec![1.0f32; N], &[N])?;
    x.eval()?;
    // Updates of an intermediate happen in its own memory.
    let chain = || -> Result<Array> {
        let mut y = x.exp()?;
        for i in 0..10isize {
            y = y.slice_update(&Array::scalar(0.0f32), &[i], &[i + 1], &[1])?;
        }
        Ok(y)
    };
    assert!(written(chain)? < BYTES + 400, "{}", written(chain)?);
    // What somebody holds is copied, once.
    let held = || x.slice_update(&Array::scalar(0.0f32), &[0], &[1], &[1]);
    assert!(written(held)? <= BYTES + 8);
    let before = x.to_vec::<f32>()?;
    assert!(before.iter().all(|v| *v == 1.0));
    // A padded array: the filling, then the elements.
    let padded = || x.pad(&[(1, 1)], PadMode::Constant, Array::scalar(0.0f32));
    assert!(written(padded)? <= 2 * BYTES + 8);
    // Constants are not written out before they are joined.
    let zeros = Array::zeros(&[N], Dtype::Float32)?;
    let joined = || concatenate(&[x.clone(), zeros.clone()], 0);
    assert!(written(joined)? <= 2 * BYTES + 4);
    // Views write nothing.
    let views = || x.reshape(&[256, -1])?.transpose()?.flip(None)?.diagonal(0, 0, 1);
    assert_eq!(written(views)?, 0);
    Ok(())
}

/// A step of a cache that grows: at an offset in an array, and at one that is known, an update writes no more than itself.
#[test]
fn an_update_of_a_cache_writes_the_update() -> Result<()> {
    own_process!();
    let shape = [1, 8, 512, 16];
    let bytes = 4 * 8 * 16;
    let update = Array::from_slice(&vec![1.5f32; 8 * 16], &[1, 8, 1, 16])?;
    let offsets: Vec<Array> =
        (0..100).map(|i| Array::from_slice(&[i], &[1])).collect::<Result<_>>()?;
    let run = |step: &dyn Fn(&Array, usize) -> Result<Array>| -> Result<(u64, u64, Vec<f32>)> {
        let mut cache = Array::full(&shape, 0.0f32)?.add(Array::scalar(0.0f32))?;
        cache.eval()?;
        reset_stats();
        for i in 0..100 {
            cache = step(&cache, i)?;
            cache.eval()?;
        }
        eval(&[] as &[Array])?;
        let counts = stats();
        Ok((counts.bytes_written, counts.donations, cache.to_vec()?))
    };
    let computed = run(&|cache, i| cache.slice_update_at(&update, &offsets[i], [2]))?;
    let known = run(&|cache, i| {
        let i = i as isize;
        cache.slice_update(&update, &[0, 0, i, 0], &[1, 8, i + 1, 16], &[1; 4])
    })?;
    assert_eq!(computed, known);
    assert_eq!((computed.0, computed.1), (100 * bytes, 100));
    assert_eq!(computed.2.iter().sum::<f32>(), 1.5 * 100.0 * 8.0 * 16.0);
    // A step whose cache is needed afterwards writes a copy.
    let kept = Array::full(&shape, 0.0f32)?.add(Array::scalar(0.0f32))?;
    kept.eval()?;
    let whole = 4 * shape.iter().product::<usize>() as u64;
    assert_eq!(written(|| kept.slice_update_at(&update, &offsets[3], [2]))?, whole);
    assert_eq!(kept.sum(None)?.item::<f32>()?, 0.0);
    // Its window is read alone.
    reset_stats();
    let part = kept.slice_at(&offsets[7], [2], &[1, 8, 1, 16])?;
    part.eval()?;
    eval(&[] as &[Array])?;
    assert_eq!(stats().bytes_written, bytes);
    Ok(())
}
