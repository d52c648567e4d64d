//! Bytes written by assembling arrays, counted.

use ultramarine::{Array, Dtype, PadMode, Result, concatenate, eval, reset_stats, stats};
use ultramarine_test_support::own_process;

const N: usize = 1 << 16;
const BYTES: u64 = 4 * N as u64;

/// Bytes written by evaluating what `f` makes.
fn written(f: impl FnOnce() -> Result<Array>) -> Result<u64> {
    let y = f()?;
    eval(&[])?;
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
    let padded = || x.pad(&[(1, 1)], PadMode::Constant, &Array::scalar(0.0f32));
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
