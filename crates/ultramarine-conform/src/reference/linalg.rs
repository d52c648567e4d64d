//! Matrix decompositions: the identities that results must satisfy, checked in float64. Factors are
//! not unique, so results are not compared with the kit's own. Errors are backward errors, relative
//! to the norm of the matrix, in units of the dtype's epsilon.

use crate::tensor::Array;
use num_complex::Complex64;

/// The allowed error of results in epsilons, for each row or column of the larger side.
const EPSILONS: f64 = 16.0;

/// A dense matrix, row by row.
#[derive(Clone)]
struct Matrix {
    m: usize,
    n: usize,
    data: Vec<Complex64>,
}

const ZERO: Complex64 = Complex64::new(0.0, 0.0);
const ONE: Complex64 = Complex64::new(1.0, 0.0);

impl Matrix {
    fn new(m: usize, n: usize, f: impl Fn(usize, usize) -> Complex64) -> Matrix {
        Matrix { m, n, data: (0..m * n).map(|i| f(i / n, i % n)).collect() }
    }

    fn at(&self, i: usize, j: usize) -> Complex64 {
        self.data[i * self.n + j]
    }

    fn adjoint(&self) -> Matrix {
        Matrix::new(self.n, self.m, |i, j| self.at(j, i).conj())
    }

    fn times(&self, by: &Matrix) -> Matrix {
        Matrix::new(self.m, by.n, |i, j| (0..self.n).map(|k| self.at(i, k) * by.at(k, j)).sum())
    }

    /// The first `n` columns.
    fn columns(&self, n: usize) -> Matrix {
        Matrix::new(self.m, n, |i, j| self.at(i, j))
    }

    /// The Frobenius norm.
    fn norm(&self) -> f64 {
        self.data.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt()
    }

    fn identity(n: usize) -> Matrix {
        Matrix::new(n, n, |i, j| if i == j { ONE } else { ZERO })
    }

    /// Returns the elements on one side of the diagonal, with the diagonal.
    fn triangle(&self, upper: bool) -> Matrix {
        Matrix::new(
            self.m,
            self.n,
            |i, j| {
                if i == j || (i < j) == upper { self.at(i, j) } else { ZERO }
            },
        )
    }

    /// Returns the Hermitian matrix with this triangle.
    fn hermitian(&self, upper: bool) -> Matrix {
        Matrix::new(self.n, self.n, |i, j| match i == j {
            true => Complex64::new(self.at(i, i).re, 0.0),
            false if (i < j) == upper => self.at(i, j),
            false => self.at(j, i).conj(),
        })
    }
}

/// Matrices, or vectors as columns, number `which` of an array.
fn take(a: &Array, which: usize, axes: usize) -> Matrix {
    let last = &a.shape[a.shape.len() - axes..];
    let m = last[0] as usize;
    let n = last.get(1).map_or(1, |n| *n as usize);
    let data = a.values[which * m * n..][..m * n].iter().map(|v| v.complex()).collect();
    Matrix { m, n, data }
}

/// The largest error of the checks so far, in epsilons for each row.
struct Errors {
    worst: f64,
    epsilon: f64,
}

impl Errors {
    /// Checks that two matrices are equal up to rounding errors of numbers of this size.
    fn near(&mut self, what: &str, a: &Matrix, b: &Matrix, size: f64) -> Result<(), String> {
        let difference = Matrix::new(a.m, a.n, |i, j| a.at(i, j) - b.at(i, j)).norm();
        let unit = self.epsilon * size * a.m.max(a.n).max(1) as f64;
        let error = if difference == 0.0 { 0.0 } else { difference / unit };
        self.worst = self.worst.max(error);
        // This comparison also rejects NaN.
        if error <= EPSILONS {
            return Ok(());
        }
        Err(format!("{what} is off by {difference:.3e}, {error:.1} epsilons for each row"))
    }

    fn orthonormal(&mut self, what: &str, q: &Matrix) -> Result<(), String> {
        let product = q.adjoint().times(q);
        let size = (q.n as f64).sqrt();
        self.near(&format!("{what}^H {what} - 1"), &product, &Matrix::identity(q.n), size)
    }

    fn exact(&mut self, what: &str, a: &Matrix, b: &Matrix) -> Result<(), String> {
        // NaN is not checked here.
        let same = |(a, b): (&Complex64, &Complex64)| a == b || (a.is_nan() && b.is_nan());
        let right = a.data.iter().zip(&b.data).all(same);
        if right { Ok(()) } else { Err(format!("{what} should be zeros")) }
    }
}

/// A check of all matrices of a batch.
fn each(
    inputs: &[Array],
    one: impl Fn(usize, &Matrix, &mut Errors) -> Result<(), String>,
) -> Result<f64, String> {
    let a = &inputs[0];
    let [.., m, n] = a.shape[..] else { return Err("the kit made no matrices".into()) };
    let mut errors = Errors { worst: 0.0, epsilon: a.dtype.epsilon() };
    for which in 0..a.values.len() / (m * n) as usize {
        one(which, &take(a, which, 2), &mut errors)
            .map_err(|text| format!("matrix {which}: {text}"))?;
    }
    Ok(errors.worst)
}

/// CHOLESKY.
pub fn cholesky(upper: bool, inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let factor = take(&outputs[0], which, 2);
        errors.exact("the other triangle", &factor, &factor.triangle(upper))?;
        let adjoint = factor.adjoint();
        let product = if upper { adjoint.times(&factor) } else { factor.times(&adjoint) };
        let a = a.hermitian(upper);
        errors.near("the product", &product, &a, a.norm())
    })
}

/// LU.
pub fn lu(inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let packed = take(&outputs[0], which, 2);
        let k = a.m.min(a.n);
        let index = |array: &Array, i: usize| {
            let v = take(array, which, 1).at(i, 0).re;
            if (v as usize) < a.m { Ok(v as usize) } else { Err(format!("row {v} of {}", a.m)) }
        };
        let pivots = (0..k).map(|i| index(&outputs[1], i)).collect::<Result<Vec<_>, _>>()?;
        let rows = (0..a.m).map(|i| index(&outputs[2], i)).collect::<Result<Vec<_>, _>>()?;
        let mut swapped: Vec<usize> = (0..a.m).collect();
        pivots.iter().enumerate().for_each(|(i, p)| swapped.swap(i, *p));
        ensure!(swapped == rows, "the pivots lead to rows {swapped:?}, not {rows:?}");
        let l = Matrix::new(a.m, k, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => ZERO,
            std::cmp::Ordering::Equal => ONE,
            std::cmp::Ordering::Greater => packed.at(i, j),
        });
        let u = Matrix::new(k, a.n, |i, j| if i <= j { packed.at(i, j) } else { ZERO });
        let permuted = Matrix::new(a.m, a.n, |i, j| a.at(rows[i], j));
        errors.near("the product", &l.times(&u), &permuted, a.norm())
    })
}

/// QR.
pub fn qr(inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let (q, r) = (take(&outputs[0], which, 2), take(&outputs[1], which, 2));
        errors.exact("r below the diagonal", &r, &r.triangle(true))?;
        errors.orthonormal("q", &q)?;
        errors.near("the product", &q.times(&r), a, a.norm())
    })
}

fn ordered(what: &str, values: &Matrix, descending: bool) -> Result<(), String> {
    let right = values.data.windows(2).all(|w| {
        let (first, second) = if descending { (w[1], w[0]) } else { (w[0], w[1]) };
        first.re <= second.re
    });
    if right { Ok(()) } else { Err(format!("{what} are not in order")) }
}

/// SVD, full or not.
pub fn svd(inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let (u, vt) = (take(&outputs[0], which, 2), take(&outputs[2], which, 2));
        let s = take(&outputs[1], which, 1);
        errors.orthonormal("u", &u)?;
        let v = vt.adjoint();
        errors.orthonormal("v", &v)?;
        ordered("singular values", &s, true)?;
        ensure!(!s.data.iter().any(|s| s.re < 0.0), "a singular value is negative");
        let scaled = Matrix::new(a.m, s.m, |i, j| u.at(i, j) * s.at(j, 0));
        let product = scaled.times(&v.columns(s.m).adjoint());
        errors.near("the product", &product, a, a.norm())
    })
}

/// SINGULAR_VALUES: the sums of their squares, and of the fourth powers, are traces.
pub fn singular_values(inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let s = take(&outputs[0], which, 1);
        ordered("singular values", &s, true)?;
        let squares = a.adjoint().times(a);
        powers(&s, &squares, |s| s * s, errors)
    })
}

/// Checks the sums of `f(w)` and of their squares, which are the traces of a Hermitian matrix and
/// its square.
fn powers(
    w: &Matrix,
    a: &Matrix,
    f: impl Fn(Complex64) -> Complex64,
    errors: &mut Errors,
) -> Result<(), String> {
    let sum = |m: Vec<Complex64>| Matrix { m: w.m, n: 1, data: vec![m.into_iter().sum(); w.m] };
    let trace = |a: &Matrix| sum((0..a.n).map(|i| a.at(i, i)).collect());
    let values: Vec<Complex64> = w.data.iter().map(|w| f(*w)).collect();
    let squares = values.iter().map(|v| v * v).collect();
    let size = a.norm() * (w.m as f64).sqrt();
    errors.near("the sum", &sum(values), &trace(a), size)?;
    errors.near("the sum of squares", &sum(squares), &trace(&a.times(a)), size * a.norm())
}

/// EIGH.
pub fn eigh(upper: bool, inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let (w, v) = (take(&outputs[0], which, 1), take(&outputs[1], which, 2));
        let a = a.hermitian(upper);
        ordered("eigenvalues", &w, false)?;
        errors.orthonormal("v", &v)?;
        let scaled = Matrix::new(a.n, a.n, |i, j| v.at(i, j) * w.at(j, 0));
        errors.near("a v", &a.times(&v), &scaled, a.norm())
    })
}

/// EIGVALSH.
pub fn eigvalsh(upper: bool, inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let w = take(&outputs[0], which, 1);
        ordered("eigenvalues", &w, false)?;
        powers(&w, &a.hermitian(upper), |w| w, errors)
    })
}

/// EIG: also of float64 the results are complex64.
pub fn eig(inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        errors.epsilon = f64::from(f32::EPSILON);
        let (w, v) = (take(&outputs[0], which, 1), take(&outputs[1], which, 2));
        let norms = Matrix::new(a.n, 1, |j, _| (0..a.n).map(|i| ONE * v.at(i, j).norm_sqr()).sum());
        errors.near("the squared norm", &norms, &Matrix::new(a.n, 1, |_, _| ONE), 1.0)?;
        let scaled = Matrix::new(a.n, a.n, |i, j| v.at(i, j) * w.at(j, 0));
        errors.near("a v", &a.times(&v), &scaled, a.norm())
    })
}

/// EIGVALS.
pub fn eigvals(inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        errors.epsilon = f64::from(f32::EPSILON);
        powers(&take(&outputs[0], which, 1), a, |w| w, errors)
    })
}

/// SOLVE_TRIANGULAR.
pub fn solve_triangular(upper: bool, inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    each(inputs, |which, a, errors| {
        let (b, x) = (take(&inputs[1], which, 2), take(&outputs[0], which, 2));
        let a = a.triangle(upper);
        errors.near("a x", &a.times(&x), &b, a.norm() * x.norm())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Num};

    fn array(shape: &[i64], values: &[f64]) -> Array {
        let values: Vec<Num> = values.iter().map(|v| Num::Real(*v)).collect();
        Array::cycle(DType::F32, shape, &values)
    }

    #[test]
    fn wrong_factors_are_found() {
        let a = [array(&[2, 2], &[3.0, 1.0, 4.0, 2.0])];
        let q = array(&[2, 2], &[0.6, -0.8, 0.8, 0.6]);
        let r = array(&[2, 2], &[5.0, 2.2, 0.0, 0.4]);
        assert!(qr(&a, &[q.clone(), r.clone()]).is_ok());
        // Another product; not orthonormal; not triangular; NaN.
        let wrong = |q: &Array, r: &Array| qr(&a, &[q.clone(), r.clone()]).expect_err("wrong");
        assert!(wrong(&q, &array(&[2, 2], &[5.0, 2.2, 0.0, 0.41])).contains("product"));
        let (double, half) =
            (array(&[2, 2], &[1.2, -1.6, 1.6, 1.2]), array(&[2, 2], &[2.5, 1.1, 0.0, 0.2]));
        assert!(wrong(&double, &half).contains("q^H q"));
        assert!(wrong(&q, &array(&[2, 2], &[5.0, 2.2, 1e-9, 0.4])).contains("zeros"));
        assert!(wrong(&q, &array(&[2, 2], &[5.0, f64::NAN, 0.0, 0.4])).contains("product"));
    }

    #[test]
    fn order_and_traces() {
        let a = [array(&[2, 2], &[2.0, 0.0, 0.0, 1.0])];
        let values = |v: [f64; 2]| [array(&[2], &v)];
        assert!(eigvalsh(false, &a, &values([1.0, 2.0])).is_ok());
        assert!(eigvalsh(false, &a, &values([2.0, 1.0])).is_err());
        // The sum is right, the squares are not.
        assert!(eigvalsh(false, &a, &values([1.4, 1.6])).is_err());
        assert!(singular_values(&a, &values([2.0, 1.0])).is_ok());
        assert!(singular_values(&a, &values([1.0, 2.0])).is_err());
        assert!(singular_values(&a, &values([2.0, 1.001])).is_err());
    }
}
