//! Reductions, and what they share with scans and sorting: dtypes, errors, values against plain references.

use crate::support::arrays::f64s;
use ultramarine::{
    Array, Axis, Dtype, Error, KeepDims, Reduced, Result,
    transforms::{grad, vmap},
};
use ultramarine_test_support::{Rng, Tolerance, assert_close};

/// Multiples of 1/500 from -2 to 2.
pub(super) fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| rng.below(2001) as f64 / 500.0 - 2.0).collect()
}

pub(super) fn array(values: &[f64], shape: &[usize]) -> Result<Array> {
    Array::from_slice(values, shape)
}

pub(super) fn close(got: &Array, wanted: &[f64], tolerance: f64, what: &str) -> Result<()> {
    assert_close(what, &f64s(got), wanted, Tolerance::mixed(tolerance));
    Ok(())
}

/// All positions of a shape, in row-major order.
pub(super) fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, n| {
        all.iter()
            .flat_map(|p| (0..*n).map(move |i| p.iter().copied().chain([i]).collect()))
            .collect()
    })
}

pub(super) fn offset(position: &[usize], shape: &[usize]) -> usize {
    position.iter().zip(shape).fold(0, |o, (p, n)| o * n + p)
}

/// Reduces by a plain loop; the result keeps dimensions.
fn reference(
    v: &[f64],
    shape: &[usize],
    axes: &[usize],
    start: f64,
    f: fn(f64, f64) -> f64,
) -> Vec<f64> {
    let kept: Vec<usize> =
        shape.iter().enumerate().map(|(i, n)| if axes.contains(&i) { 1 } else { *n }).collect();
    let mut out = vec![start; kept.iter().product()];
    for p in positions(shape) {
        let q: Vec<usize> =
            p.iter().enumerate().map(|(i, x)| if axes.contains(&i) { 0 } else { *x }).collect();
        let o = &mut out[offset(&q, &kept)];
        *o = f(*o, v[offset(&p, shape)]);
    }
    out
}

/// All reductions take their axes alike.
#[test]
fn kept_and_dropped_axes() -> Result<()> {
    let x = Array::ones(&[2, 3, 4], Dtype::Float32)?;
    macro_rules! shapes {
        ($($name:ident($($more:expr)?))*) => {$(
            for (axes, dropped, kept) in [
                (Some(&[1isize][..]), &[2usize, 4][..], [2usize, 1, 4]),
                (Some(&[0, -1]), &[3], [1, 3, 1]),
                (None, &[], [1, 1, 1]),
            ] {
                let name = stringify!($name);
                assert_eq!(x.$name(axes $(, $more)?)?.shape(), dropped, "{name}");
                assert_eq!(x.$name(KeepDims(axes) $(, $more)?)?.shape(), kept, "{name}");
                for (keepdims, shape) in [(false, dropped), (true, &kept)] {
                    assert_eq!(x.$name(Reduced::new(axes, keepdims) $(, $more)?)?.shape(), shape, "{name}");
                }
            }
        )*};
    }
    shapes! {
        sum() prod() min() max() all() any() mean() median() logsumexp() count_nonzero() var(0) std(1)
    }
    let (least, most) = x.minmax(KeepDims(1))?;
    assert_eq!((least.shape(), most.shape()), (&[2, 1, 4][..], &[2, 1, 4][..]));
    for at in [Array::argmin, Array::argmax] as [fn(&Array, Reduced<Axis>) -> Result<Array>; 2] {
        assert_eq!(at(&x, 1.into())?.shape(), [2, 4]);
        assert_eq!(at(&x, KeepDims(-1).into())?.shape(), [2, 3, 1]);
        assert_eq!(at(&x, KeepDims(..).into())?.shape(), [1, 1, 1]);
        assert_eq!(at(&x, (..).into())?.ndim(), 0);
    }
    Ok(())
}

#[test]
fn dtypes_of_results() -> Result<()> {
    use Dtype::*;
    for d in Dtype::ALL {
        let x = Array::ones(&[2, 3], d)?;
        let wide = match d {
            Bool | Int8 | Int16 => Int32,
            Uint8 | Uint16 => Uint32,
            d => d,
        };
        let real = if d == Complex64 { Float32 } else { d.to_inexact() };
        let axes: Option<&[isize]> = Some(&[0]);
        for (name, out, wanted) in [
            ("sum", x.sum(axes)?, wide),
            ("prod", x.prod(axes)?, wide),
            ("min", x.min(axes)?, d),
            ("max", x.max(axes)?, d),
            ("all", x.all(axes)?, Bool),
            ("any", x.any(axes)?, Bool),
            ("mean", x.mean(axes)?, d.to_inexact()),
            ("var", x.var(axes, 0)?, real),
            ("std", x.std(axes, 0)?, real),
            ("median", x.median(axes)?, d.to_inexact()),
            ("logsumexp", x.logsumexp(axes)?, d.to_inexact()),
            ("softmax", x.softmax(axes, false)?, d.to_inexact()),
            ("argmin", x.argmin(Some(0))?, Uint32),
            ("cumsum", x.cumsum(Some(0), false, true)?, if d == Bool { Int32 } else { d }),
            ("cumprod", x.cumprod(Some(0), false, true)?, d),
            ("cummax", x.cummax(Some(0), false, true)?, d),
            ("logcumsumexp", x.logcumsumexp(Some(0), false, true)?, d.to_inexact()),
            ("sort", x.sort(Some(0))?, d),
            ("argsort", x.argsort(Some(0))?, Uint32),
            ("count_nonzero", x.count_nonzero(axes)?, Int32),
        ] {
            assert_eq!(out.dtype(), wanted, "{name} of {d}");
            out.eval()?;
        }
    }
    Ok(())
}

#[test]
fn sums_of_nothing() -> Result<()> {
    let z = Array::zeros(&[0, 3], Dtype::Float32)?;
    assert_eq!(z.sum(0)?.to_vec::<f32>()?, [0.0; 3]);
    assert_eq!(z.prod(0)?.to_vec::<f32>()?, [1.0; 3]);
    assert!(z.all(None)?.item::<bool>()?);
    assert!(!z.any(None)?.item::<bool>()?);
    assert!(z.mean(None)?.item::<f32>()?.is_nan());
    assert_eq!(z.min(1)?.shape(), [0]);
    assert_eq!(z.softmax(0, false)?.shape(), [0, 3]);
    // No axes: nothing changes, not even a small dtype.
    let small = Array::ones(&[2], Dtype::Int8)?;
    assert_eq!(small.sum([0; 0])?.dtype(), Dtype::Int8);
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let z = Array::zeros(&[0, 3], Dtype::Float32)?;
    let x = Array::zeros(&[2, 3], Dtype::Float32)?;
    let s = Array::scalar(1.0f32);
    let value = |r: Result<Array>| matches!(r, Err(Error::Value(_)));
    let index = |r: Result<Array>| matches!(r, Err(Error::Index(_)));
    assert!(value(z.min(None)));
    assert!(value(z.max(0)));
    assert!(value(z.median(0)));
    assert!(value(z.logsumexp(0)));
    assert!(value(z.argmin(Some(1))));
    assert!(index(x.sum(2)));
    assert!(index(x.sum(-3)));
    assert!(value(x.sum([0, -2])));
    assert!(index(s.sum(0)));
    assert!(value(s.softmax(0, false)));
    assert!(index(x.cumsum(Some(2), false, true)));
    assert!(index(s.sort(Some(-1))));
    assert!(value(x.topk(4, Some(-1))));
    assert!(value(x.topk(-1, Some(-1))));
    assert!(value(x.partition(3, Some(-1))));
    assert!(value(x.argpartition(-4, Some(-1))));
    assert!(index(x.partition(0, Some(2))));
    let Err(e) = z.min(None) else { panic!("no error") };
    assert_eq!(
        e.to_string(),
        "[min] Cannot min reduce over axis 0 with size 0. Pass at least one element."
    );
    Ok(())
}

#[test]
fn values_over_all_axes_and_layouts() -> Result<()> {
    let shape = [3, 4, 2, 5];
    let v = numbers(120, 1);
    let x = array(&v, &shape)?;
    let turned = x.transpose_axes([3, 1, 0, 2])?;
    for mask in 1..16usize {
        let axes: Vec<usize> = (0..4).filter(|i| mask >> i & 1 == 1).collect();
        let signed: Vec<isize> = axes.iter().map(|a| *a as isize - 4 * (a % 2) as isize).collect();
        // The same axes of the transposed array, whose result is turned back.
        let places: Vec<isize> = axes.iter().map(|a| [2isize, 1, 3, 0][*a]).collect();
        let back = |a: Array| a.transpose_axes([2, 1, 3, 0]);
        type Fold = fn(f64, f64) -> f64;
        let table: [(&str, f64, Fold); 4] = [
            ("sum", 0.0, |a, b| a + b),
            ("prod", 1.0, |a, b| a * b),
            ("min", f64::INFINITY, f64::min),
            ("max", f64::NEG_INFINITY, f64::max),
        ];
        for (name, start, f) in table {
            let run = |a: &Array, axes: &[isize]| match name {
                "sum" => a.sum(KeepDims(Some(axes))),
                "prod" => a.prod(KeepDims(Some(axes))),
                "min" => a.min(KeepDims(Some(axes))),
                _ => a.max(KeepDims(Some(axes))),
            };
            let wanted = reference(&v, &shape, &axes, start, f);
            close(&run(&x, &signed)?, &wanted, 1e-12, name)?;
            close(&back(run(&turned, &places)?)?, &wanted, 1e-12, name)?;
        }
        let n: usize = axes.iter().map(|a| shape[*a]).product();
        let sums = reference(&v, &shape, &axes, 0.0, |a, b| a + b);
        let means: Vec<f64> = sums.iter().map(|s| s / n as f64).collect();
        close(&x.mean(KeepDims(&signed))?, &means, 1e-12, "mean")?;
        let squares = reference(&v, &shape, &axes, 0.0, |a, b| a + b * b);
        if n > 1 {
            let var: Vec<f64> = (squares.iter().zip(&means))
                .map(|(s, m)| (s - n as f64 * m * m) / (n as f64 - 1.0))
                .collect();
            close(&x.var(KeepDims(&signed), 1)?, &var, 1e-9, "var")?;
        }
        let logs: Vec<f64> =
            reference(&v, &shape, &axes, 0.0, |a, b| a + b.exp()).iter().map(|s| s.ln()).collect();
        close(&x.logsumexp(KeepDims(&signed))?, &logs, 1e-12, "logsumexp")?;
        let soft = x.softmax(&signed, false)?;
        let ones = vec![1.0; sums.len()];
        close(&soft.sum(KeepDims(&signed))?, &ones, 1e-12, "softmax")?;
        // The median: as many on either side.
        let median = x.median(KeepDims(&signed))?.broadcast_to(&shape)?.to_vec::<f64>()?;
        let sides: Vec<f64> = v.iter().zip(&median).map(|(a, m)| (a - m).signum()).collect();
        let below = reference(&sides, &shape, &axes, 0.0, |a, s| a + (s < 0.0) as u8 as f64);
        assert!(below.iter().all(|b| *b <= n as f64 / 2.0));
    }
    Ok(())
}

#[test]
fn infinities_and_nans() -> Result<()> {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let of = |v: &[f32]| Array::from_slice(v, &[v.len()]);
    let median = |v: &[f32]| of(v)?.median(None)?.item::<f32>();
    assert!(median(&[1.0, 2.0, nan])?.is_nan());
    assert_eq!(median(&[1.0, 2.0, inf])?, 2.0);
    assert_eq!(median(&[3.0, 1.0, 2.0, 0.0])?, 1.5);
    assert!(of(&[1.0, nan])?.max(None)?.item::<f32>()?.is_nan());
    assert_eq!(of(&[1.0, nan, 3.0, nan])?.argmax(None)?.item::<u32>()?, 1);
    assert_eq!(of(&[1.0, 5.0, 5.0])?.argmax(KeepDims(None))?.to_vec::<u32>()?, [1]);
    Ok(())
}

/// The gradient of the sum of `f`.
fn slope(f: impl Fn(&Array) -> Result<Array>, v: &[f32]) -> Result<Vec<f32>> {
    let x = Array::from_slice(v, &[v.len()])?;
    grad(|a: &Array| f(a)?.sum(None))(&x)?.to_vec::<f32>()
}

#[test]
fn derivatives_at_ties_and_zeros() -> Result<()> {
    let ties = [1.0f32, 3.0, 3.0, 2.0];
    let zero = [2.0f32, 0.0, 3.0];
    let zeros = [2.0f32, 0.0, 0.0];
    assert_eq!(slope(|x| x.max(None), &ties)?, [0.0, 0.5, 0.5, 0.0]);
    assert_eq!(slope(|x| x.prod(None), &zero)?, [0.0, 6.0, 0.0]);
    assert_eq!(slope(|x| x.prod(None), &zeros)?, [0.0; 3]);
    assert_eq!(slope(|x| x.cumprod(None, false, true), &zero)?, [1.0, 8.0, 0.0]);
    assert_eq!(slope(|x| x.cumprod(None, false, true), &zeros)?, [1.0, 2.0, 0.0]);
    assert_eq!(slope(|x| x.cumprod(None, false, false), &zero)?, [1.0, 2.0, 0.0]);
    assert_eq!(slope(|x| x.cumsum(None, true, true), &zero)?, [1.0, 2.0, 3.0]);
    assert_eq!(slope(|x| x.cumsum(None, false, false), &zero)?, [2.0, 1.0, 0.0]);
    assert_eq!(slope(|x| x.cummax(None, false, true), &ties)?, [1.0, 1.0, 2.0, 0.0]);
    assert_eq!(slope(|x| x.cummin(None, false, true), &ties)?, [4.0, 0.0, 0.0, 0.0]);
    // Where MLX counts the position that an exclusive scan has no element for too.
    assert_eq!(slope(|x| x.cummax(None, false, false), &ties)?, [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(slope(|x| x.cummax(None, true, true), &ties)?, [0.0, 2.0, 1.0, 1.0]);
    assert_eq!(slope(|x| x.median(None), &ties)?, [0.0, 0.5, 0.0, 0.5]);
    assert_eq!(slope(|x| x.topk(2, None), &ties)?, [0.0, 1.0, 1.0, 0.0]);
    let lce = slope(|x| x.logcumsumexp(None, false, true), &ties)?;
    for (g, w) in lce.iter().zip([1.23665f32, 1.74859, 0.867797, 0.146963]) {
        assert!((g - w).abs() < 1e-5, "{lce:?}");
    }
    let lse = slope(|x| x.logsumexp(None), &[1.0, 2.0])?;
    assert!((lse[0] - 0.268941).abs() < 1e-6 && (lse[1] - 0.731059).abs() < 1e-6);
    Ok(())
}

#[test]
fn mapped_like_row_by_row() -> Result<()> {
    let v = numbers(60, 3);
    let x = array(&v, &[3, 4, 5])?;
    type F = fn(&Array) -> Result<Array>;
    let table: [(&str, F); 8] = [
        ("sum", |a| a.sum(1)),
        ("prod", |a| a.prod(None)),
        ("argmax", |a| a.argmax(Some(0))),
        ("argmin", |a| a.argmin(None)),
        ("cumsum", |a| a.cumsum(Some(0), true, true)),
        ("sort", |a| a.sort(Some(1))),
        ("argsort", |a| a.argsort(Some(0))),
        ("softmax", |a| a.softmax(-1, true)),
    ];
    for (name, f) in table {
        for axis in 0..3usize {
            let all = vmap(
                |a: &[Array]| Ok::<_, Error>(vec![f(&a[0])?]),
                std::slice::from_ref(&x),
                [Some(axis as isize)],
                0,
            )?;
            let mut wanted = Vec::new();
            for i in 0..x.shape()[axis] {
                let row = x.take(Array::scalar(i as i32), Some(axis as isize))?;
                wanted.extend(f(&row)?.astype(Dtype::Float64).to_vec::<f64>()?);
            }
            close(&all[0], &wanted, 1e-12, name)?;
        }
    }
    Ok(())
}
