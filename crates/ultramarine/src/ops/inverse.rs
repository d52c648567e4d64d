//! Inverses, and solutions of linear equations, made of decompositions.

use super::{
    lean::{bin, like, un, with_axis, without_axis},
    lu::Lu,
    matmul::adjoint,
    matrices::{check, check_square, identities, nothing, sizes},
    select::where_,
    svd::Svd,
    triangular::{SolveTriangular, check_system},
};
use crate::{
    array::Array,
    dtype::Dtype,
    error::Result,
    placement::follow,
    shape::{self, Shape},
    transforms::CustomFunction,
};
use ultramarine_abi::schema::{binary, unary};

/// The solution x of `a x = b`, by LU factors with partial pivoting.
///
/// `a` is `(..., n, n)`; b is `(n)` or `(..., n, k)`, and x has its shape. Batches are broadcast. Operands are
/// promoted, to float32, float64 or complex64. Derivatives are those of the factors.
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
    const OP: &str = "linalg::solve";
    check_system(OP, a, b)?;
    let dtype = a.dtype().promote(b.dtype());
    let (a, b) = (a.promoted(dtype), b.promoted(dtype));
    if b.ndim() > 1 {
        return solve_matrices(&a, &b);
    }
    let x = solve_matrices(&a, &with_axis(&b, 1)?)?;
    without_axis(&x, x.ndim() - 1)
}

/// `x` of `a x = b` for matrices of one dtype.
fn solve_matrices(a: &Array, b: &Array) -> Result<Array> {
    let _home = follow(&[a]);
    let (n, k) = sizes(b);
    let batch = |x: &Array| Shape::from_slice(&x.shape()[..x.ndim() - 2]);
    let mut shape = shape::broadcast_shapes(&batch(a), &batch(b))?;
    shape.extend([n, k]);
    shape::check("linalg::solve", &shape)?;
    let [lu, _, rows] = Lu.of(a)?;
    let order = with_axis(&rows, rows.ndim())?.broadcast_to(&shape)?;
    let b = b.broadcast_to(&shape)?.take_along_axis(&order, Some(-2))?;
    let l = lu.tril(-1)?.add(&Array::identity(n, a.dtype())?)?;
    SolveTriangular { upper: true }.of(&lu, &SolveTriangular { upper: false }.of(&l, &b)?)
}

/// The inverses of square matrices `(..., n, n)` of float32, float64 or complex64.
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

/// The inverses of triangular matrices, of which the lower, or with `upper` the upper, triangle is read.
///
/// # Errors
/// As [`inv`].
pub fn tri_inv(a: &Array, upper: bool) -> Result<Array> {
    check_square("linalg::inv", a)?;
    SolveTriangular { upper }.of(a, &identities(a, sizes(a).0)?)
}

/// The inverses of symmetric (Hermitian) positive definite matrices, of their Cholesky factors: lower, or with
/// `upper` upper ones.
///
/// # Errors
/// As [`inv`].
pub fn cholesky_inv(a: &Array, upper: bool) -> Result<Array> {
    check_square("linalg::cholesky_inv", a)?;
    let half = SolveTriangular { upper }.of(a, &identities(a, sizes(a).0)?)?;
    if upper { half.matmul(&adjoint(&half)?) } else { adjoint(&half)?.matmul(&half) }
}

/// The Moore-Penrose pseudo-inverses `(..., n, m)` of matrices `(..., m, n)` of float32, float64 or complex64, by
/// singular values. Those below `10 max(m, n) eps` times the largest count as zero. Derivatives hold where the rank does
/// not change (G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
/// whose variables separate", 1973).
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[2.0f32, 0.0, 0.0, 0.0], &[2, 2])?;
/// assert_eq!(linalg::pinv(&a)?.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes or fewer than two dimensions. Evaluation fails with
/// [`crate::Error::Runtime`] if an element is infinite or NaN.
pub fn pinv(a: &Array) -> Result<Array> {
    check("linalg::pinv", a)?;
    let (m, n) = sizes(a);
    if m == 0 || n == 0 {
        return nothing(a, &[n, m], a.dtype());
    }
    let function = CustomFunction::new(|x| Ok(vec![by_singular_values(&x[0])?]))
        .with_jvp(|x, tangents| {
            let forward = |t: &Array| pinv_jvp(&x[0], &pinv(&x[0])?, t);
            Ok(vec![tangents[0].as_ref().map(forward).transpose()?])
        })
        .with_vjp(|x, cotangents, _| {
            Ok(vec![Some(pinv_vjp(&x[0], &pinv(&x[0])?, &cotangents[0])?)])
        });
    Ok(function.call(std::slice::from_ref(a))?.swap_remove(0))
}

fn by_singular_values(a: &Array) -> Result<Array> {
    let _home = follow(&[a]);
    let (m, n) = sizes(a);
    let [u, s, vt] = Svd { full: false }.of(a)?;
    let share = 10.0 * m.max(n) as f64 * crate::finfo(s.dtype()).map_or(0.0, |i| i.eps);
    let largest = s.max(Some(&[-1]), true)?;
    let kept = bin(binary::GREATER, &s, &largest.multiply(&like(&s, share))?)?;
    let inverse = un(unary::RECIPROCAL, &where_(&kept, &s, &like(&s, 1.0))?);
    let inverse = where_(&kept, &inverse, &like(&s, 0.0))?.astype(u.dtype());
    adjoint(&vt)?.multiply(&with_axis(&inverse, inverse.ndim() - 1)?)?.matmul(&adjoint(&u)?)
}

/// `1 - x`, for square matrices.
fn rest(x: &Array) -> Result<Array> {
    bin(binary::SUBTRACT, &Array::identity(sizes(x).0, x.dtype())?, x)
}

/// `dp = -p da p + p p^H da^H (1 - a p) + (1 - p a) da^H p^H p`.
fn pinv_jvp(a: &Array, p: &Array, t: &Array) -> Result<Array> {
    let (pt, tt) = (adjoint(p)?, adjoint(t)?);
    let inside = p.matmul(t)?.matmul(p)?;
    let left = p.matmul(&pt)?.matmul(&tt)?.matmul(&rest(&a.matmul(p)?)?)?;
    let right = rest(&p.matmul(a)?)?.matmul(&tt)?.matmul(&pt)?.matmul(p)?;
    bin(binary::SUBTRACT, &left.add(&right)?, &inside)
}

/// The adjoint of [`pinv_jvp`].
fn pinv_vjp(a: &Array, p: &Array, ct: &Array) -> Result<Array> {
    let (pt, ctt) = (adjoint(p)?, adjoint(ct)?);
    let inside = pt.matmul(ct)?.matmul(&pt)?;
    let left = rest(&a.matmul(p)?)?.matmul(&ctt)?.matmul(p)?.matmul(&pt)?;
    let right = pt.matmul(p)?.matmul(&ctt)?.matmul(&rest(&p.matmul(a)?)?)?;
    bin(binary::SUBTRACT, &left.add(&right)?, &inside)
}

/// LU factors `(p, l, u)` with partial pivoting: `a = l[p, :] u`.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64, `k = min(m, n)`. The rows p `(..., m)` are uint32; l
/// `(..., m, k)` has ones on its diagonal, u is `(..., k, n)`.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 4.0, 4.0], &[2, 2])?;
/// let (p, l, u) = linalg::lu(&a)?;
/// assert_eq!(p.to_vec::<u32>()?, [1, 0]);
/// assert_eq!(l.to_vec::<f32>()?, [1.0, 0.0, 0.25, 1.0]);
/// assert_eq!(u.to_vec::<f32>()?, [4.0, 4.0, 0.0, 1.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes or fewer than two dimensions.
pub fn lu(a: &Array) -> Result<(Array, Array, Array)> {
    check("linalg::lu", a)?;
    let _home = follow(&[a]);
    let (m, n) = sizes(a);
    let k = m.min(n);
    let [packed, _, rows] = Lu.of(a)?;
    let last = a.ndim() - 1;
    let l = packed.tril(-1)?.along(last, 0, k, 1)?.add(&Array::eye(m, k, 0, a.dtype())?)?;
    let u = packed.triu(0)?.along(last - 1, 0, k, 1)?;
    Ok((rows.argsort(Some(-1))?.astype(Dtype::Uint32), l, u))
}
