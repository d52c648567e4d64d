//! Created arrays: identities, triangles, ranges, windows.

use Dtype::*;
use std::f64::consts::TAU;
use ultramarine::{Array, Complex32, Dtype, Error, Result, bartlett, blackman, hamming, hanning};

#[test]
fn creation() -> Result<()> {
    let eye = Array::eye(3, 4, 1, Int32)?;
    assert_eq!(eye.to_vec::<i32>()?, [0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
    assert_eq!(Array::eye(2, 2, isize::MIN, Int32)?.to_vec::<i32>()?, [0; 4]);
    assert_eq!(Array::identity(2, Float32)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(Array::tri(2, 3, 1, Int32)?.to_vec::<i32>()?, [1, 1, 0, 1, 1, 1]);
    assert_eq!(Array::eye(3, 0, 0, Float32)?.shape(), [3, 0]);
    let x = Array::ones(&[2, 2, 3], Int32)?;
    assert_eq!(x.tril(-1)?.to_vec::<i32>()?[..6], [0, 0, 0, 1, 0, 0]);
    assert_eq!(x.triu(1)?.to_vec::<i32>()?[6..], [0, 1, 1, 0, 0, 1]);
    assert!(matches!(Array::ones(&[3], Int32)?.tril(0), Err(Error::Value(_))));
    let line = |n, end, dtype| Array::linspace(0.0, 10.0, n, end, dtype);
    assert_eq!(line(4, true, Int32)?.to_vec::<i32>()?, [0, 3, 6, 10]);
    assert_eq!(line(4, false, Float32)?.to_vec::<f32>()?, [0.0, 2.5, 5.0, 7.5]);
    assert_eq!(line(1, true, Float32)?.to_vec::<f32>()?, [0.0]);
    assert_eq!(line(0, true, Float32)?.size(), 0);
    let range = |a, b, s| Array::arange(a, b, s, Int32)?.to_vec::<i32>();
    assert_eq!(range(0.0, 5.0, 1.5)?, [0, 1, 2, 3]);
    assert_eq!(range(0.5, 3.5, 1.0)?, [0, 1, 2]);
    assert_eq!(range(-0.5, 2.5, 1.0)?, [0, 0, 0]);
    assert_eq!(range(0.0, -5.0, -2.0)?, [0, -2, -4]);
    assert_eq!(range(5.0, 0.0, 1.0)?, [0i32; 0]);
    for (stop, step) in [(5.0, 0.0), (f64::NAN, 1.0), (f64::INFINITY, 1.0), (1e12, 1.0)] {
        assert!(matches!(Array::arange(0.0, stop, step, Float32), Err(Error::Value(_))));
    }
    assert!(matches!(Array::arange(0.0, 2.0, 1.0, Bool), Err(Error::Value(_))));
    let e = Array::empty(&[3, 0, 2], Float32)?;
    assert!(e.is_evaluated() && e.shape() == [3, 0, 2]);
    assert_eq!(x.empty_like()?.shape(), x.shape());
    assert_eq!(Array::empty(&[64], Bool)?.to_vec::<bool>()?, [false; 64]);
    assert!(matches!(Array::empty(&[usize::MAX, 2], Int8), Err(Error::Value(_))));
    assert_eq!(x.full_like(2.9f32).to_vec::<i32>()?, [2; 12]);
    Ok(())
}

#[test]
fn windows() -> Result<()> {
    type Window = (fn(usize) -> Result<Array>, fn(f64) -> f64);
    let all: [Window; 4] = [
        (bartlett, |t| 1.0 - (2.0 * t - 1.0).abs()),
        (blackman, |t| 0.42 - 0.5 * (TAU * t).cos() + 0.08 * (2.0 * TAU * t).cos()),
        (hamming, |t| 0.54 - 0.46 * (TAU * t).cos()),
        (hanning, |t| 0.5 - 0.5 * (TAU * t).cos()),
    ];
    for (window, formula) in all {
        assert_eq!(window(0)?.shape(), [0]);
        assert_eq!(window(1)?.to_vec::<f32>()?, [1.0]);
        for n in [2, 3, 10, 1001] {
            for (i, w) in window(n)?.to_vec::<f32>()?.into_iter().enumerate() {
                let want = formula(i as f64 / (n - 1) as f64);
                assert!((w as f64 - want).abs() < 1e-6, "{n} {i}: {w}, not {want}");
            }
        }
    }
    Ok(())
}

/// Numbers come out in types that hold them.
#[test]
fn items_convert() -> Result<()> {
    let whole = |dtype: Dtype, v: i32| Array::scalar(v).astype(dtype);
    for dtype in [Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64] {
        let x = whole(dtype, 100);
        assert_eq!((x.item::<i8>()?, x.item::<u64>()?, x.item::<f32>()?), (100, 100, 100.0));
        assert!(matches!(x.item::<bool>(), Err(Error::Type(_))), "{dtype} is no bool");
    }
    assert_eq!(whole(Bool, 1).item::<i64>()?, 1);
    assert_eq!(Array::scalar(u64::MAX).item::<u64>()?, u64::MAX);
    for refused in [
        Array::scalar(-1).item::<u32>().map(drop),
        Array::scalar(128).item::<i8>().map(drop),
        Array::scalar(u64::MAX).item::<i64>().map(drop),
        Array::scalar(u64::MAX).item::<f64>().map(drop),
        Array::scalar((1 << 24) + 1).item::<f32>().map(drop),
    ] {
        match refused {
            Err(Error::Value(text)) => assert!(text.contains("cannot be represented as"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let half = Array::scalar(0.1f64);
    assert_eq!((half.item::<f64>()?, half.item::<f32>()?), (0.1, 0.1f32));
    assert_eq!(Array::scalar(1.5f32).astype(Float16).item::<f64>()?, 1.5);
    assert!(Array::scalar(f32::NAN).item::<f64>()?.is_nan());
    assert_eq!(Array::scalar(2.0f32).item::<Complex32>()?, Complex32::new(2.0, 0.0));
    for refused in [Array::scalar(2.0f32).item::<i32>(), Array::scalar(Complex32::ONE).item()] {
        assert!(matches!(refused, Err(Error::Type(_))), "{refused:?}");
    }
    Ok(())
}
