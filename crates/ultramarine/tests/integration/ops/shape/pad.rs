//! Padding, against a walk along the mirrors.

use super::ints;
use Dtype::*;
use ultramarine::{Array, Dtype, Error, PadMode, Result};

/// The index that padding by mirrors reads, by walking.
fn mirror(mut i: isize, n: isize, mode: PadMode) -> usize {
    if mode == PadMode::Edge {
        return i.clamp(0, n - 1) as usize;
    }
    let skip = (mode == PadMode::Symmetric) as isize;
    while !(0..n).contains(&i) {
        i = if i < 0 { -i - skip } else { 2 * (n - 1) - i + skip };
        if n == 1 {
            i = 0;
        }
    }
    i as usize
}

#[test]
fn padding() -> Result<()> {
    let zero = Array::scalar(0.0f32);
    for n in 1..5usize {
        for mode in [PadMode::Edge, PadMode::Reflect, PadMode::Symmetric] {
            for (low, high) in [(0, 1), (1, 0), (3, 2), (5, 9)] {
                let y = Array::arange(1.0, n as f64 + 1.0, 1.0, Float32)?.pad(
                    &[(low, high)],
                    mode,
                    &zero,
                )?;
                let naive: Vec<f32> = (-(low as isize)..(n + high) as isize)
                    .map(|i| 1.0 + mirror(i, n as isize, mode) as f32)
                    .collect();
                assert_eq!(y.to_vec::<f32>()?, naive, "{n} {mode:?} {low} {high}");
            }
        }
    }
    let x = ints(&[1, 2], &[1, 2]);
    let y = x.pad(&[(1, 0), (0, 1)], PadMode::Constant, Array::scalar(2.5f32))?;
    assert_eq!((y.dtype(), y.to_vec::<i32>()?), (Int32, vec![2, 2, 2, 1, 2, 2]));
    assert!(matches!(x.pad(&[(1, 1)], PadMode::Constant, &zero), Err(Error::Value(_))));
    let empty = Array::zeros(&[0, 3], Float32)?;
    assert_eq!(empty.pad(&[(1, 1), (1, 1)], PadMode::Edge, &zero)?.shape(), [2, 5]);
    assert!(empty.pad(&[(1, 1), (1, 1)], PadMode::Reflect, &zero).is_err());
    assert!(matches!(PadMode::from_name("zz"), Err(Error::Value(_))));
    assert_eq!(Array::scalar(1i32).pad(&[], PadMode::Constant, &zero)?.shape(), [0usize; 0]);
    Ok(())
}
