//! The pseudo-inverse: a function with derivatives of its own, by way of singular values.

use crate::ops::linalg::matrices::{check, nothing, sizes};
use crate::ops::rules::builders::{bin, like, un, with_axis};
use crate::ops::shape::axes::KeepDims;
use crate::ops::{linalg::svd::Svd, matmul::adjoint, select::where_};
use crate::{array::Array, error::Result, placement::follow, transforms::CustomFunction};
use ultramarine_abi::schema::{binary, unary};

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
    let largest = s.max(KeepDims(-1))?;
    let kept = bin(binary::GREATER, &s, &largest.multiply(like(&s, share))?)?;
    let inverse = un(unary::RECIPROCAL, &where_(&kept, &s, like(&s, 1.0))?);
    let inverse = where_(&kept, &inverse, like(&s, 0.0))?.astype(u.dtype());
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
