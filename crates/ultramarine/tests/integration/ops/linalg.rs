//! Decompositions of matrices: what they promise of their results, whatever shapes, batches, strides and
//! dtypes they get; what they refuse; and that mapping over them is a loop.

use crate::support::arrays::{
    assert_near, assert_near_complex, complexes, f64s, uniform_complex, uniform_f32,
};
use ultramarine::{
    Array, Dtype, Error, Result,
    linalg::{
        cholesky, eig, eigh, eigvals, eigvalsh, lu_factor, qr, solve_triangular, svd, svdvals,
    },
    transforms::vmap,
};
use ultramarine_test_support::{Rng, Tolerance};

const DTYPES: [Dtype; 3] = [Dtype::Float32, Dtype::Float64, Dtype::Complex64];

/// Numbers between -1 and 1, the same for each shape.
fn random(shape: &[usize], dtype: Dtype) -> Result<Array> {
    let seed = shape.iter().fold(0, |s: u64, n| s.wrapping_mul(31).wrapping_add(*n as u64));
    let mut rng = Rng::new(seed);
    Ok(match dtype {
        Dtype::Complex64 => uniform_complex(&mut rng, shape, -1.0, 1.0),
        _ => uniform_f32(&mut rng, shape, -1.0, 1.0).astype(dtype),
    })
}

fn adjoint(a: &Array) -> Result<Array> {
    a.swapaxes(-1, -2)?.conjugate()?.reshape(&swapped(a.shape()))
}

fn swapped(shape: &[usize]) -> Vec<usize> {
    let mut shape = shape.to_vec();
    let n = shape.len();
    shape.swap(n - 1, n - 2);
    shape
}

fn tolerance(dtype: Dtype) -> f64 {
    if dtype == Dtype::Float64 { 1e-12 } else { 2e-5 }
}

/// All elements are within `error` of each other's, and none is NaN.
#[track_caller]
fn near(a: &Array, b: &Array, error: f64) {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    let expected = complexes(b);
    assert!(expected.iter().all(|(re, im)| re.is_finite() && im.is_finite()), "{b}");
    match a.dtype() {
        Dtype::Complex64 => assert_near_complex("", a, &expected, Tolerance::absolute(error)),
        _ => assert_near("", a, &f64s(b), Tolerance::absolute(error)),
    }
}

fn scaled(columns: &Array, by: &Array) -> Result<Array> {
    let mut shape = by.shape().to_vec();
    shape.insert(shape.len() - 1, 1);
    columns.multiply(by.reshape(&shape)?.astype(columns.dtype()))
}

fn columns(a: &Array, k: usize) -> Result<Array> {
    let at: Vec<i32> = (0..k as i32).collect();
    a.take(&Array::from_slice(&at, &[k])?, Some(-1))
}

/// The identity, as `q^H q` must be.
fn orthonormal(q: &Array) -> Result<()> {
    let product = adjoint(q)?.matmul(q)?;
    let identity = Array::identity(q.shape()[q.ndim() - 1], q.dtype())?;
    near(&product, &identity.broadcast_to(product.shape())?, tolerance(q.dtype()));
    Ok(())
}

/// Positive definite matrices of these sizes.
fn positive(shape: &[usize], dtype: Dtype) -> Result<Array> {
    let a = random(shape, dtype)?;
    a.matmul(&adjoint(&a)?)?.add(&Array::identity(shape[shape.len() - 1], dtype)?)
}

/// Each layout of the same values.
fn layouts(a: &Array) -> Result<Vec<Array>> {
    let transposed = a.swapaxes(-1, -2)?.contiguous().swapaxes(-1, -2)?;
    let reversed = a.take(&backwards(a.shape()[a.ndim() - 1])?, Some(-1))?;
    reversed.eval()?;
    let negative = flip(&reversed)?;
    let mut wide = vec![2];
    wide.extend_from_slice(a.shape());
    Ok(vec![a.clone(), transposed, negative, a.broadcast_to(&wide)?])
}

fn backwards(n: usize) -> Result<Array> {
    Array::from_slice(&(0..n as i32).rev().collect::<Vec<_>>(), &[n])
}

/// The last axis from the end, by a negative stride.
fn flip(a: &Array) -> Result<Array> {
    let mut start = vec![0isize; a.ndim()];
    let mut stop: Vec<isize> = a.shape().iter().map(|n| *n as isize).collect();
    let mut step = vec![1isize; a.ndim()];
    let last = a.ndim() - 1;
    (start[last], stop[last], step[last]) = (stop[last] - 1, -stop[last] - 1, -1);
    a.slice(&start, &stop, &step)
}

fn batches() -> [Vec<usize>; 3] {
    [vec![], vec![3], vec![2, 1, 3]]
}

fn shape(batch: &[usize], m: usize, n: usize) -> Vec<usize> {
    [batch, &[m, n]].concat()
}

#[test]
fn factors() -> Result<()> {
    for dtype in DTYPES {
        for batch in batches() {
            for (m, n) in [(1, 1), (4, 4), (6, 3), (3, 6), (20, 33)] {
                let a = random(&shape(&batch, m, n), dtype)?;
                let k = m.min(n);
                let error = tolerance(dtype) * 4.0;
                let (q, r) = qr(&a)?;
                assert_eq!(
                    (q.shape(), r.shape()),
                    (&shape(&batch, m, k)[..], &shape(&batch, k, n)[..])
                );
                near(&q.matmul(&r)?, &a, error);
                orthonormal(&q)?;
                near(&r, &r.triu(0)?, 0.0);

                let (u, s, vt) = svd(&a)?;
                assert_eq!(u.shape(), shape(&batch, m, m));
                assert_eq!(s.shape(), [&batch[..], &[k]].concat());
                assert_eq!(vt.shape(), shape(&batch, n, n));
                let real = if dtype == Dtype::Complex64 { Dtype::Float32 } else { dtype };
                assert_eq!((u.dtype(), s.dtype(), vt.dtype()), (dtype, real, dtype));
                orthonormal(&u)?;
                orthonormal(&adjoint(&vt)?)?;
                let right = adjoint(&columns(&adjoint(&vt)?, k)?)?;
                near(&scaled(&columns(&u, k)?, &s)?.matmul(&right)?, &a, error);
                near(&svdvals(&a)?, &s, error);

                let (lu, pivots) = lu_factor(&a)?;
                assert_eq!((lu.shape(), pivots.dtype()), (a.shape(), Dtype::Uint32));
                assert_eq!(pivots.shape(), [&batch[..], &[k]].concat());
            }
        }
    }
    Ok(())
}

#[test]
fn lu_multiplies_to_the_swapped_matrix() -> Result<()> {
    for (m, n) in [(5, 5), (7, 4), (4, 7)] {
        let a = random(&[m, n], Dtype::Float64)?;
        let (lu, pivots) = lu_factor(&a)?;
        let k = m.min(n);
        let l = columns(&lu.tril(-1)?, k)?.add(&Array::eye(m, k, 0, Dtype::Float64)?)?;
        let rows: Vec<i32> = (0..k as i32).collect();
        let u = lu.triu(0)?.take(&Array::from_slice(&rows, &[k])?, Some(0))?;
        let mut order: Vec<i32> = (0..m as i32).collect();
        for (i, p) in pivots.to_vec::<u32>()?.into_iter().enumerate() {
            order.swap(i, p as usize);
        }
        let swapped = a.take(&Array::from_slice(&order, &[m])?, Some(0))?;
        near(&l.matmul(&u)?, &swapped, 1e-13);
    }
    // No inverse, and yet factors.
    let (lu, _) = lu_factor(&Array::from_slice(&[1.0f32, 2.0, 2.0, 4.0], &[2, 2])?)?;
    assert_eq!(lu.to_vec::<f32>()?, [2.0, 4.0, 0.5, 0.0]);
    Ok(())
}

#[test]
fn symmetric() -> Result<()> {
    for dtype in DTYPES {
        for batch in batches() {
            for n in [1, 2, 5, 33] {
                let a = positive(&shape(&batch, n, n), dtype)?;
                let error = tolerance(dtype) * n as f64;
                for (upper, half) in [(false, a.tril(0)?), (true, a.triu(0)?)] {
                    // Only one triangle is read.
                    let noise = if upper { a.tril(-1)? } else { a.triu(1)? };
                    let half = half.add(&noise.add(&noise)?)?;
                    let (w, v) = eigh(&half, upper)?;
                    assert_eq!(
                        (w.shape(), v.shape()),
                        (&[&batch[..], &[n]].concat()[..], a.shape())
                    );
                    orthonormal(&v)?;
                    near(&a.matmul(&v)?, &scaled(&v, &w)?, error * 4.0);
                    near(&eigvalsh(&half, upper)?, &w, error * 4.0);
                    near(&w, &w.sort(Some(-1))?, 0.0);
                    let factor = cholesky(&half, upper)?;
                    let product = match upper {
                        true => adjoint(&factor)?.matmul(&factor)?,
                        false => factor.matmul(&adjoint(&factor)?)?,
                    };
                    near(&product, &a, error);
                    near(&factor, &if upper { factor.triu(0)? } else { factor.tril(0)? }, 0.0);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn not_positive_definite() -> Result<()> {
    let a = Array::from_slice(&[1.0f32, 2.0, 2.0, 1.0, 4.0, 2.0, 2.0, 2.0], &[2, 2, 2])?;
    for upper in [false, true] {
        let factor = cholesky(&a, upper)?.to_vec::<f32>()?;
        let zero = if upper { 2 } else { 1 };
        for (i, v) in factor[..4].iter().enumerate() {
            assert!(if i == zero { *v == 0.0 } else { v.is_nan() }, "{factor:?}");
        }
        // The other matrix of the batch has its factor.
        assert_eq!(factor[4], 2.0);
    }
    Ok(())
}

#[test]
fn general_eigenvalues() -> Result<()> {
    for dtype in DTYPES {
        for batch in batches() {
            for n in [1, 2, 5, 33] {
                let a = random(&shape(&batch, n, n), dtype)?;
                let (w, v) = eig(&a)?;
                assert_eq!((w.dtype(), v.dtype()), (Dtype::Complex64, Dtype::Complex64));
                assert_eq!((w.shape(), v.shape()), (&[&batch[..], &[n]].concat()[..], a.shape()));
                near(&a.astype(Dtype::Complex64).matmul(&v)?, &scaled(&v, &w)?, 1e-5 * n as f64);
                let norms = v.multiply(&v.conjugate()?)?.sum(-2)?;
                near(&norms, &norms.ones_like(), 1e-5);
                let (sum, trace) = (eigvals(&a)?.sum(-1)?, w.sum(-1)?);
                near(&sum, &trace, 1e-4);
            }
        }
    }
    Ok(())
}

#[test]
fn triangular_systems() -> Result<()> {
    for dtype in DTYPES {
        for (batch, other) in [
            (vec![], vec![]),
            (vec![3], vec![3]),
            (vec![3], vec![]),
            (vec![], vec![2]),
            (vec![2, 1], vec![3]),
        ] {
            for (n, k) in [(1, 1), (4, 2), (33, 5)] {
                let diagonal = Array::full(&[], 40i32)?.astype(dtype);
                let a = random(&shape(&batch, n, n), dtype)?
                    .add(&Array::identity(n, dtype)?.multiply(&diagonal)?)?;
                let b = random(&shape(&other, n, k), dtype)?;
                for upper in [false, true] {
                    let x = solve_triangular(&a, &b, upper)?;
                    let triangle = if upper { a.triu(0)? } else { a.tril(0)? };
                    let product = triangle.matmul(&x)?;
                    near(&product, &b.broadcast_to(product.shape())?, tolerance(dtype));
                }
            }
        }
        let a = positive(&[3, 4, 4], dtype)?;
        let b = random(&[4], dtype)?;
        let x = solve_triangular(&a, &b, true)?;
        assert_eq!(x.shape(), [3, 4]);
        near(
            &a.triu(0)?.matmul(&x.reshape(&[3, 4, 1])?)?.reshape(&[3, 4])?,
            &b.broadcast_to(&[3, 4])?,
            1e-3,
        );
    }
    // Integers are promoted by the other operand.
    let (a, b) = (Array::from_slice(&[2.0f32], &[1, 1])?, Array::from_slice(&[3i32], &[1, 1])?);
    assert_eq!(solve_triangular(&a, &b, false)?.to_vec::<f32>()?, [1.5]);
    let singular = solve_triangular(
        &Array::zeros(&[2, 3, 3], Dtype::Float32)?,
        &Array::ones(&[3], Dtype::Float32)?,
        false,
    )?;
    let error = singular.eval().expect_err("no solution");
    assert!(
        matches!(error.root(), Error::Runtime(_)) && error.to_string().contains("singular"),
        "{error}"
    );
    Ok(())
}

#[test]
fn any_strides() -> Result<()> {
    let a = positive(&[5, 5], Dtype::Float32)?;
    let (_, s, _) = svd(&a)?;
    let (l, r, w) = (cholesky(&a, false)?, qr(&a)?.1, eigvalsh(&a, true)?);
    for a in layouts(&a)? {
        let like = |x: &Array| x.broadcast_to(&[&a.shape()[..a.ndim() - 2], x.shape()].concat());
        near(&svdvals(&a)?, &like(&s)?, 1e-4);
        near(&cholesky(&a, false)?, &like(&l)?, 1e-5);
        near(&qr(&a)?.1, &like(&r)?, 1e-4);
        near(&eigvalsh(&a, true)?, &like(&w)?, 1e-4);
    }
    Ok(())
}

#[test]
fn empty() -> Result<()> {
    for dtype in DTYPES {
        for (m, n) in [(0, 0), (0, 3), (3, 0)] {
            let a = Array::zeros(&[2, m, n], dtype)?;
            let (q, r) = qr(&a)?;
            assert_eq!((q.shape(), r.shape()), (&[2, m, 0][..], &[2, 0, n][..]));
            let (u, s, vt) = svd(&a)?;
            assert_eq!(
                (u.shape(), s.shape(), vt.shape()),
                (&[2, m, m][..], &[2, 0][..], &[2, n, n][..])
            );
            orthonormal(&u)?;
            orthonormal(&vt)?;
            let (lu, pivots) = lu_factor(&a)?;
            assert_eq!((lu.shape(), pivots.shape()), (a.shape(), &[2, 0][..]));
            assert_eq!(svdvals(&a)?.shape(), [2, 0]);
            for x in [q, r, s, lu, pivots, svdvals(&a)?] {
                x.eval()?;
                assert_eq!(x.size(), 0);
            }
        }
        for shape in [vec![0, 0], vec![2, 0, 0], vec![0, 3, 3]] {
            let a = Array::zeros(&shape, dtype)?;
            let values = &shape[..shape.len() - 1];
            let (w, v) = eigh(&a, false)?;
            assert_eq!((w.shape(), v.shape()), (values, &shape[..]));
            let (c, d) = eig(&a)?;
            assert_eq!((c.shape(), d.shape()), (values, &shape[..]));
            let x = solve_triangular(&a, &a, true)?;
            for x in [w, v, c, d, x, cholesky(&a, true)?, eigvals(&a)?, eigvalsh(&a, false)?] {
                assert_eq!(x.to_vec_len()?, 0);
            }
        }
    }
    Ok(())
}

trait Length {
    fn to_vec_len(&self) -> Result<usize>;
}

impl Length for Array {
    fn to_vec_len(&self) -> Result<usize> {
        self.eval()?;
        Ok(self.size())
    }
}

#[test]
fn refusals() -> Result<()> {
    type Call = (&'static str, fn(&Array) -> Result<Array>, bool);
    let calls: [Call; 10] = [
        ("linalg::cholesky", |a| cholesky(a, false), true),
        ("linalg::qr", |a| Ok(qr(a)?.0), false),
        ("linalg::svd", |a| Ok(svd(a)?.0), false),
        ("linalg::svd", svdvals, false),
        ("linalg::lu_factor", |a| Ok(lu_factor(a)?.0), false),
        ("linalg::eigh", |a| Ok(eigh(a, false)?.0), true),
        ("linalg::eigvalsh", |a| eigvalsh(a, false), true),
        ("linalg::eig", |a| Ok(eig(a)?.0), true),
        ("linalg::eigvals", eigvals, true),
        ("linalg::solve_triangular", |a| solve_triangular(a, a, false), true),
    ];
    for (name, call, square) in calls {
        let refused = |a: &Array| {
            let error = call(a).err().unwrap_or_else(|| panic!("{name} took {a}"));
            assert!(matches!(error, Error::Value(_)), "{error}");
            assert!(error.to_string().starts_with(&format!("[{name}] ")), "{error}");
        };
        for dtype in Dtype::ALL.into_iter().filter(|d| !DTYPES.contains(d)) {
            refused(&Array::zeros(&[2, 2], dtype)?);
        }
        refused(&Array::zeros(&[], Dtype::Float32)?);
        refused(&Array::zeros(&[3], Dtype::Float32)?);
        if square {
            refused(&Array::zeros(&[3, 2], Dtype::Float32)?);
        }
    }
    let (a, b) =
        (Array::ones(&[3, 2, 2], Dtype::Float32)?, Array::ones(&[4, 2, 1], Dtype::Float32)?);
    assert!(matches!(solve_triangular(&a, &b, false), Err(Error::Value(_))));
    let b = Array::ones(&[3, 1], Dtype::Float32)?;
    assert!(matches!(solve_triangular(&a, &b, false), Err(Error::Value(_))));
    let b = Array::ones(&[], Dtype::Float32)?;
    assert!(matches!(solve_triangular(&a, &b, false), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn not_finite() -> Result<()> {
    for value in [f32::NAN, f32::INFINITY] {
        let a = Array::full(&[40, 40], value)?;
        for x in [
            svd(&a)?.1,
            svdvals(&a)?,
            eigh(&a, false)?.1,
            eigvalsh(&a, true)?,
            eig(&a)?.0,
            eigvals(&a)?,
        ] {
            let error = x.eval().expect_err("no result");
            assert!(matches!(error.root(), Error::Runtime(_)), "{error}");
            assert!(error.to_string().contains("NaN"), "{error}");
        }
        // These have results, of whatever value.
        let (q, r) = qr(&a)?;
        for x in [cholesky(&a, false)?, lu_factor(&a)?.0, q, r, solve_triangular(&a, &a, false)?] {
            x.eval()?;
        }
    }
    Ok(())
}

/// All results of each operation.
type All = fn(&Array) -> Result<Vec<Array>>;

#[test]
fn mapped_is_a_loop() -> Result<()> {
    let all: [(&str, All); 11] = [
        ("cholesky", |a| Ok(vec![cholesky(a, false)?])),
        ("cholesky upper", |a| Ok(vec![cholesky(a, true)?])),
        ("qr", |a| qr(a).map(|(q, r)| vec![q, r])),
        ("svd", |a| svd(a).map(|(u, s, vt)| vec![u, s, vt])),
        ("svdvals", |a| Ok(vec![svdvals(a)?])),
        ("lu_factor", |a| lu_factor(a).map(|(lu, p)| vec![lu, p])),
        ("eigh", |a| eigh(a, true).map(|(w, v)| vec![w, v])),
        ("eigvalsh", |a| Ok(vec![eigvalsh(a, false)?])),
        ("eig", |a| eig(a).map(|(w, v)| vec![w, v])),
        ("eigvals", |a| Ok(vec![eigvals(a)?])),
        ("solve_triangular", |a| Ok(vec![solve_triangular(a, a, true)?])),
    ];
    let stack = positive(&[3, 2, 4, 4], Dtype::Float32)?;
    for (name, f) in all {
        for axis in [0isize, 2] {
            // The mapped axis may be anywhere.
            let moved = stack.moveaxis(0, axis)?;
            let mapped = vmap(|x| f(&x[0]), &[moved], [Some(axis)], 0)?;
            for i in 0..3 {
                let at = Array::scalar(i);
                let single = f(&stack.take(&at, Some(0))?)?;
                assert_eq!(single.len(), mapped.len(), "{name}");
                for (one, all) in single.iter().zip(&mapped) {
                    let all = all.take(&at, Some(0))?;
                    assert!(
                        one.array_equal(&all, false)?.to_vec::<bool>()?[0],
                        "{name}: {one} {all}"
                    );
                }
            }
        }
    }
    // One of the operands is mapped.
    let b = random(&[4, 2], Dtype::Float32)?;
    let f = |x: &[Array]| Ok::<_, Error>(vec![solve_triangular(&x[0], &x[1], false)?]);
    let each = 0;
    let left = vmap(f, &[stack.clone(), b.clone()], [Some(0), None], each)?;
    near(&left[0], &solve_triangular(&stack, &b, false)?, 0.0);
    let many = random(&[5, 4, 2], Dtype::Float32)?;
    let a = positive(&[4, 4], Dtype::Float32)?;
    let right = vmap(f, &[a.clone(), many.clone()], [None, Some(0)], each)?;
    near(&right[0], &solve_triangular(&a, &many, false)?, 0.0);
    Ok(())
}

/// Tasks of a large batch; each matrix gets its own result.
#[test]
fn large_batches() -> Result<()> {
    let a = random(&[5000, 3, 3], Dtype::Float32)?;
    let (u, s, vt) = svd(&a)?;
    near(&scaled(&u, &s)?.matmul(&vt)?, &a, 1e-4);
    let (q, r) = qr(&a)?;
    near(&q.matmul(&r)?, &a, 1e-4);
    Ok(())
}

/// A result that is not asked for is not missed; all are there in the end.
#[test]
fn results_one_by_one() -> Result<()> {
    let a = random(&[4, 4], Dtype::Float64)?;
    let (u, s, vt) = svd(&a)?;
    s.eval()?;
    drop(a);
    near(
        &scaled(&u, &s)?.matmul(&vt)?.sum(None)?,
        &random(&[4, 4], Dtype::Float64)?.sum(None)?,
        1e-12,
    );
    Ok(())
}
