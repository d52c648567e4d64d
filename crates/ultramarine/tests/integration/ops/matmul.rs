//! Matrix products: shapes, errors, values of any layout, rules.

use ultramarine::{
    Array, Complex32, Dtype, Error, Result, addmm,
    transforms::{grad, vjp, vmap},
};

fn numbers(shape: &[usize], seed: i64) -> Result<Array> {
    let n: usize = shape.iter().product();
    let v: Vec<f64> = (0..n as i64).map(|i| (((i + seed) * 7919 % 23) - 11) as f64 / 4.0).collect();
    Array::from_slice(&v, shape)
}

/// Products of matrices by the plain loop; batches already equal.
fn plain(a: &Array, b: &Array) -> Result<Vec<f64>> {
    let (m, k) = (a.shape()[a.ndim() - 2], a.shape()[a.ndim() - 1]);
    let n = b.shape()[b.ndim() - 1];
    let (a, b) = (a.to_vec::<f64>()?, b.to_vec::<f64>()?);
    let mut out = Vec::new();
    for batch in 0..a.len() / (m * k) {
        for i in 0..m {
            for j in 0..n {
                let at = |l: usize| a[batch * m * k + i * k + l] * b[batch * k * n + l * n + j];
                out.push((0..k).map(at).sum());
            }
        }
    }
    Ok(out)
}

#[test]
fn shapes_of_results() -> Result<()> {
    let ones = |s: &[usize]| Array::ones(s, Dtype::Float32);
    for (a, b, out) in [
        (&[3][..], &[3][..], &[][..]),
        (&[3], &[2, 3, 4], &[2, 4]),
        (&[2, 3, 4], &[4], &[2, 3]),
        (&[2, 1, 3, 4], &[3, 4, 5], &[2, 3, 3, 5]),
        (&[2, 3, 4], &[4, 5], &[2, 3, 5]),
        (&[2, 0], &[0, 3], &[2, 3]),
        (&[0, 2], &[2, 3], &[0, 3]),
        (&[0, 2, 2], &[2, 3], &[0, 2, 3]),
    ] {
        let got = ones(a)?.matmul(&ones(b)?)?;
        assert_eq!(got.shape(), out, "{a:?} {b:?}");
        let k = a[a.len() - 1] as f32;
        assert!(got.to_vec::<f32>()?.iter().all(|v| *v == k));
    }
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let f = |s: &[usize]| Array::ones(s, Dtype::Float32);
    let i = |s: &[usize]| Array::ones(s, Dtype::Int32);
    let text = |r: Result<Array>| match r {
        Err(Error::Value(text)) => text,
        other => panic!("{:?}", other.map(|a| a.shape().to_vec())),
    };
    assert_eq!(
        text(f(&[2, 3])?.matmul(&f(&[2, 3])?)),
        "[matmul] Last dimension of first input with shape (2, 3) must match second to last dimension of second input with shape (2, 3). Transpose or reshape one of them."
    );
    assert!(text(i(&[2, 2])?.matmul(&i(&[2, 2])?)).starts_with("[matmul] Only inexact types"));
    assert!(text(f(&[])?.matmul(&f(&[2])?)).starts_with("[matmul] Got 0 dimension input."));
    assert!(text(f(&[2, 3, 4])?.matmul(&f(&[3, 4, 5])?)).contains("cannot be broadcast"));
    assert!(text(addmm(&f(&[5, 2, 3])?, &f(&[2, 2])?, &f(&[2, 3])?, 1.0, 1.0)).contains("[addmm]"));
    assert!(text(f(&[2, 3])?.inner(&f(&[4])?)).contains("[inner]"));
    assert!(text(f(&[2, 3])?.tensordot(&f(&[2, 3])?, 1)).contains("[tensordot]"));
    assert!(text(f(&[2, 3])?.tensordot(&f(&[2, 3])?, 3)).contains("[tensordot]"));
    assert!(text(f(&[])?.vecdot(&f(&[2])?, -1)).contains("[vecdot]"));
    assert!(text(f(&[2, 3])?.vecdot(&f(&[2, 1, 3])?, 0)).contains("must have one size in both"));
    Ok(())
}

#[test]
fn dtypes_are_promoted() -> Result<()> {
    let one = |d| Array::ones(&[2, 2], d);
    let of = |a, b| -> Result<Dtype> { Ok(one(a)?.matmul(&one(b)?)?.dtype()) };
    assert_eq!(of(Dtype::Int32, Dtype::Float16)?, Dtype::Float16);
    assert_eq!(of(Dtype::Float16, Dtype::Bfloat16)?, Dtype::Float32);
    assert_eq!(of(Dtype::Float32, Dtype::Complex64)?, Dtype::Complex64);
    assert_eq!(one(Dtype::Uint8)?.outer(&one(Dtype::Uint8)?)?.dtype(), Dtype::Uint8);
    Ok(())
}

#[test]
fn values_of_any_layout() -> Result<()> {
    for (m, k, n) in [(1, 5, 4), (6, 1, 3), (4, 7, 1), (17, 33, 9)] {
        let a = numbers(&[2, 3, m, k], 1)?;
        let b = numbers(&[2, 3, k, n], 5)?;
        let wanted = plain(&a, &b)?;
        // Row-major, transposed in memory, and reversed along an axis.
        let lay = |x: &Array| -> Result<[Array; 3]> {
            let t = x.swapaxes(-1, -2)?.contiguous().swapaxes(-1, -2)?;
            let r = x.flip(-1)?.contiguous().flip(-1)?;
            Ok([x.clone(), t, r])
        };
        for a in lay(&a)? {
            for b in lay(&b)? {
                for d in [Dtype::Float64, Dtype::Float32, Dtype::Bfloat16] {
                    let got = a.astype(d).matmul(b.astype(d))?.astype(Dtype::Float64);
                    let tolerance = if d == Dtype::Bfloat16 { 0.01 } else { 1e-4 };
                    for (g, w) in got.to_vec::<f64>()?.iter().zip(&wanted) {
                        assert!((g - w).abs() <= tolerance * (1.0 + w.abs()), "{d}: {g} {w}");
                    }
                }
            }
        }
        // Broadcast batches, on either side.
        let row = b.index(&ultramarine::index![1, 2])?;
        let shared = row.broadcast_to(&[2, 3, k, n])?;
        assert_eq!(a.matmul(&row)?.to_vec::<f64>()?, plain(&a, &shared)?);
        let one = a.index(&ultramarine::index![0..1, 1..2])?;
        let wide = one.broadcast_to(&[2, 3, m, k])?;
        assert_eq!(one.matmul(&b)?.to_vec::<f64>()?, plain(&wide, &b)?);
    }
    Ok(())
}

#[test]
fn relatives() -> Result<()> {
    let x = numbers(&[2, 3], 2)?;
    let y = numbers(&[2, 3], 4)?;
    let t = |a: &Array| a.transpose_axes([1, 0]);
    let product = x.matmul(&t(&y)?)?.to_vec::<f64>()?;
    assert_eq!(x.inner(&y)?.to_vec::<f64>()?, product);
    assert_eq!(x.tensordot_axes(&y, [1], [-1])?.to_vec::<f64>()?, product);
    let all: f64 = x.multiply(&y)?.sum(None)?.item()?;
    assert_eq!(x.tensordot(&y, 2)?.item::<f64>()?, all);
    assert_eq!(x.tensordot(&y, 0)?.shape(), [2, 3, 2, 3]);
    assert_eq!(x.outer(&y)?.shape(), [6, 6]);
    assert_eq!(x.vecdot(&y, 0)?.shape(), [3]);
    // An axis that one of them lacks has size 1 there.
    let batch = y.reshape(&[1, 2, 3])?;
    assert_eq!(x.vecdot(&batch, 0)?.to_vec::<f64>()?, x.multiply(&y)?.to_vec::<f64>()?);
    let i = Array::from_slice(&[Complex32::new(1.0, 2.0)], &[1])?;
    assert_eq!(i.vecdot(&i, -1)?.item::<Complex32>()?, Complex32::new(5.0, 0.0));
    let c = Array::ones(&[2], Dtype::Float64)?;
    let got = addmm(&c, &x, &t(&y)?, 2.0, 3.0)?.to_vec::<f64>()?;
    let wanted: Vec<f64> = product.iter().map(|p| 2.0 * p + 3.0).collect();
    assert_eq!(got, wanted);
    Ok(())
}

#[test]
fn derivatives() -> Result<()> {
    let a = numbers(&[2, 1, 3, 4], 1)?;
    let b = numbers(&[5, 4, 2], 3)?;
    let (da, db) = grad(|(a, b): &(Array, Array)| a.matmul(b)?.sum(None))(&(a.clone(), b.clone()))?;
    assert_eq!((da.shape(), db.shape()), (a.shape(), b.shape()));
    // d/da: the sums of b's rows, once for each batch; d/db: those of a's columns.
    let rows = b.sum([0, 2])?.to_vec::<f64>()?;
    assert_eq!(da.to_vec::<f64>()?[..4], rows[..]);
    let columns = a.sum([0, 1, 2])?.to_vec::<f64>()?;
    assert!(db.to_vec::<f64>()?.chunks(2).zip(columns.iter().cycle()).all(|(d, c)| d == [*c; 2]));
    let z = |re, im| Array::from_slice(&[Complex32::new(re, im)], &[1, 1]);
    let f = |x: &[Array]| Ok::<_, Error>(vec![x[0].matmul(&x[1])?]);
    let (_, d) = vjp(f, &[z(0.0, 1.0)?, z(1.0, 2.0)?], &[z(1.0, 0.0)?])?;
    assert_eq!(d[0].item::<Complex32>()?, Complex32::new(1.0, -2.0));
    assert_eq!(d[1].item::<Complex32>()?, Complex32::new(0.0, -1.0));
    Ok(())
}

#[test]
fn mapped_over_either_side() -> Result<()> {
    for (left, right) in [(Some(0), Some(2)), (Some(1), None), (None, Some(1)), (None, Some(0))] {
        for batched in [false, true] {
            let shape = |mapped: Option<isize>, m: usize, n: usize| {
                let mut s = if batched { vec![2, m, n] } else { vec![m, n] };
                if let Some(axis) = mapped {
                    s.insert(axis as usize, 6);
                }
                s
            };
            let a = numbers(&shape(left, 3, 4), 1)?;
            let b = numbers(&shape(right, 4, 5), 2)?;
            let got = vmap(
                |x: &[Array]| Ok::<_, Error>(vec![x[0].matmul(&x[1])?]),
                &[a.clone(), b.clone()],
                [left, right],
                0,
            )?;
            for i in 0..6 {
                let at = Array::scalar(i);
                let pick = |x: &Array, axis: Option<isize>| match axis {
                    Some(_) => x.take(&at, axis),
                    None => Ok(x.clone()),
                };
                let wanted = pick(&a, left)?.matmul(&pick(&b, right)?)?.to_vec::<f64>()?;
                assert_eq!(got[0].take(&at, Some(0))?.to_vec::<f64>()?, wanted);
            }
        }
    }
    Ok(())
}
