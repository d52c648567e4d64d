//! Derivatives of functions of integers and bool.

use crate::support::arrays::f64s;
use ultramarine::transforms::{jvp, vjp};
use ultramarine::{Array, Dtype, Error, KeepDims, Result};

type Function = fn(&Array) -> Result<Array>;

/// Cotangents of ones and tangents of `t`, pulled back and pushed forward.
fn both(f: Function, x: &Array, t: &[f64]) -> Result<[Vec<f64>; 2]> {
    let g = |x: &[Array]| Ok::<_, Error>(vec![f(&x[0])?]);
    let x = [x.clone()];
    let ones = f(&x[0])?.ones_like();
    let t = Array::from_slice(t, x[0].shape())?.astype(x[0].dtype());
    Ok([f64s(&vjp(g, &x, &[ones])?.1[0]), f64s(&jvp(g, &x, &[t])?.1[0])])
}

#[test]
fn extremes_share_their_derivative() -> Result<()> {
    for dtype in [Dtype::Int8, Dtype::Int32, Dtype::Int64, Dtype::Uint8, Dtype::Uint32] {
        let x = Array::from_slice(&[1i32, 5, 5, 2], &[4])?.astype(dtype);
        let max = both(|x| x.max(None), &x, &[1.0, 2.0, 4.0, 8.0])?;
        assert_eq!(max, [vec![0.0, 0.5, 0.5, 0.0], vec![3.0]], "{dtype}");
        let min = both(|x| x.min(KeepDims(0)), &x, &[3.0, 2.0, 4.0, 8.0])?;
        assert_eq!(min, [vec![1.0, 0.0, 0.0, 0.0], vec![3.0]], "{dtype}");
    }
    let x = Array::from_slice(&[true, false, true], &[3])?;
    let max = both(|x| x.max(None), &x, &[1.0, 1.0, 1.0])?;
    assert_eq!(max, [vec![0.5, 0.0, 0.5], vec![1.0]]);
    Ok(())
}

#[test]
fn ties_of_halves_are_counted_beyond_what_halves_hold() -> Result<()> {
    // 100,000 is infinite in float16, and no longer grows in steps of one in bfloat16.
    let n = 100_000usize;
    for (dtype, share) in [(Dtype::Float16, 1.0 / n as f64), (Dtype::Bfloat16, 1.0 / n as f64)] {
        let x = Array::zeros(&[n], dtype)?;
        let [back, forward] = both(|x| x.max(None), &x, &vec![1.0; n])?;
        assert!((back[n / 2] / share - 1.0).abs() < 0.01, "{dtype}: {}", back[n / 2]);
        assert_eq!(forward, [1.0], "{dtype}");
    }
    Ok(())
}

#[test]
fn running_products_have_derivatives() -> Result<()> {
    for dtype in [Dtype::Int32, Dtype::Uint8, Dtype::Int64] {
        let x = Array::from_slice(&[2i32, 3, 0, 4], &[4])?.astype(dtype);
        let products = both(|x| x.cumprod(Some(0), false, true), &x, &[1.0, 1.0, 1.0, 1.0])?;
        // Of 2, 6, 0 and 0.
        assert_eq!(products, [vec![4.0, 2.0, 30.0, 0.0], vec![1.0, 5.0, 6.0, 24.0]], "{dtype}");
        let product = both(|x| x.prod(None), &x, &[1.0, 1.0, 1.0, 1.0])?;
        assert_eq!(product, [vec![0.0, 0.0, 24.0, 0.0], vec![24.0]], "{dtype}");
    }
    let x = Array::from_slice(&[true, true, false], &[3])?;
    let [back, _] = both(|x| x.cumprod(Some(0), false, true), &x, &[1.0, 0.0, 0.0])?;
    assert_eq!(back, [2.0, 1.0, 1.0]);
    Ok(())
}

#[test]
fn steps_are_flat() -> Result<()> {
    let steps: [(&str, Function); 5] = [
        ("floor", Array::floor),
        ("ceil", Array::ceil),
        ("trunc", Array::trunc),
        ("round", |x| x.round(0)),
        ("round to decimals", |x| x.round(2)),
    ];
    for dtype in [Dtype::Bool, Dtype::Uint8, Dtype::Int32, Dtype::Float32] {
        let x = Array::from_slice(&[1i32, 0, 1], &[3])?.astype(dtype);
        for (name, f) in steps {
            // Beside what is not flat.
            let zeros = both(f, &x, &[1.0, 1.0, 1.0])?;
            assert_eq!(zeros, [vec![0.0; 3], vec![0.0; 3]], "{name} of {dtype}");
            assert_eq!(f64s(&f(&x)?), [1.0, 0.0, 1.0], "{name} of {dtype}");
        }
    }
    Ok(())
}

#[test]
fn differences_of_bool_and_unsigned_integers_have_derivatives() -> Result<()> {
    let cases: [(&str, Function); 3] = [
        ("remainder", |x| x.ones_like().remainder(x)),
        ("remainder of itself", |x| x.remainder(x.ones_like())),
        ("subtract", |x| x.ones_like().subtract(x)),
    ];
    for (name, f) in cases {
        let x = Array::from_slice(&[true, true], &[2])?;
        assert_eq!(both(f, &x, &[1.0, 1.0])?, [vec![1.0; 2], vec![1.0; 2]], "{name}");
    }
    // Minus one wraps.
    let x = Array::from_slice(&[1u8, 2], &[2])?;
    assert_eq!(both(Array::negative, &x, &[1.0, 2.0])?, [vec![255.0; 2], vec![255.0, 254.0]]);
    Ok(())
}
