//! Inverses and solutions of linear equations, computed from decompositions.

use crate::ops::linalg::matrices::{check_square, identities, sizes};
use crate::ops::linalg::triangular::{SolveTriangular, solve_system};
use crate::ops::{linalg::lu::Lu, matmul::adjoint, rules::builders::with_axis};
use crate::shape::{self, Shape};
use crate::{array::Array, error::Result, placement::follow};

/// Returns the solution x of `a x = b`, by LU factors with partial pivoting.
///
/// `a` is `(..., n, n)`; b is `(n)` or `(..., n, k)`, and x has its shape. Batches are broadcast.
/// Operands are promoted to float32, float64 or complex64. Derivatives are those of the factors.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[2.0f32, 1.0, 1.0, 3.0], &[2, 2])?;
/// let b = Array::from_slice(&[4.0f32, 7.0], &[2])?;
/// let x = linalg::solve(&a, &b)?.to_vec::<f32>()?;
/// assert!((x[0] - 1.0).abs() < 1e-6 && (x[1] - 2.0).abs() < 1e-6);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes, `a` that is not square, or shapes that do not fit. Evaluation fails
/// with [`crate::Error::Runtime`] if a matrix has no inverse.
pub fn solve(a: &Array, b: &Array) -> Result<Array> {
    solve_system("linalg::solve", a, b, solve_matrices)
}

/// `x` of `a x = b` for matrices of one dtype.
fn solve_matrices(a: &Array, b: &Array) -> Result<Array> {
    let _home = follow(&[a]);
    let (n, k) = sizes(b);
    let batch = |x: &Array| Shape::from_slice(&x.shape()[..x.ndim() - 2]);
    let mut shape = shape::broadcast("linalg::solve", &batch(a), &batch(b))?;
    shape.extend([n, k]);
    shape::check("linalg::solve", &shape)?;
    let [lu, _, rows] = Lu.of(a)?;
    let order = with_axis(&rows, rows.ndim())?.broadcast_to(&shape)?;
    let b = b.broadcast_to(&shape)?.take_along_axis(&order, Some(-2))?;
    let l = lu.tril(-1)?.add(&Array::identity(n, a.dtype())?)?;
    SolveTriangular { upper: true }.of(&lu, &SolveTriangular { upper: false }.of(&l, &b)?)
}

/// Returns the inverses of square matrices `(..., n, n)` of float32, float64 or complex64.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[2.0f32, 0.0, 0.0, 4.0], &[2, 2])?;
/// assert_eq!(linalg::inv(&a)?.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.25]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes, fewer than two dimensions, or matrices that are not square. Evaluation
/// fails with [`crate::Error::Runtime`] if a matrix has no inverse.
pub fn inv(a: &Array) -> Result<Array> {
    check_square("linalg::inv", a)?;
    solve_matrices(a, &identities(a, sizes(a).0)?)
}

/// Returns the inverses of triangular matrices `(..., n, n)`. Only the lower triangle, or with `upper` the upper one,
/// is read.
///
/// # Errors
/// As [`inv`].
pub fn tri_inv(a: &Array, upper: bool) -> Result<Array> {
    check_square("linalg::inv", a)?;
    SolveTriangular { upper }.of(a, &identities(a, sizes(a).0)?)
}

/// Returns the inverses of symmetric (Hermitian) positive definite matrices, given their Cholesky
/// factors `(..., n, n)`: lower ones, or with `upper` upper ones.
///
/// # Errors
/// As [`inv`].
pub fn cholesky_inv(a: &Array, upper: bool) -> Result<Array> {
    check_square("linalg::cholesky_inv", a)?;
    let half = SolveTriangular { upper }.of(a, &identities(a, sizes(a).0)?)?;
    if upper { half.matmul(&adjoint(&half)?) } else { adjoint(&half)?.matmul(&half) }
}
