//! The pseudo-inverse, computed from singular values, with derivative rules of its own.

use crate::backend::Exec;
use crate::graph::tracing::Tracing;
use crate::ops::linalg::matrices::{check, nothing, sizes, solved};
use crate::ops::rules::batching::batched;
use crate::ops::rules::builders::{bin, like, un, with_axis};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputRules, MultiOutputVjp};
use crate::ops::shape::axes::KeepDims;
use crate::ops::{
    Call, Cotangents, Draft, Vmap, attributes, linalg::svd::Svd, matmul::adjoint, select::where_,
};
use crate::{
    array::Array, dtype::Dtype, error::Result, node::Value, placement::follow, shape::Shape,
};
use smallvec::smallvec;
use ultramarine_abi::schema::{binary, unary};

/// Returns the Moore-Penrose pseudo-inverses `(..., n, m)` of matrices `(..., m, n)` of float32,
/// float64 or complex64, by singular values. Values below `10 max(m, n) eps` times the largest
/// count as 0. Derivatives hold where the rank does not change (G. Golub and V. Pereyra, "The
/// differentiation of pseudo-inverses and nonlinear least squares problems whose variables
/// separate", 1973).
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
    let inverse = by_singular_values(a)?;
    if !Tracing::active() {
        return Ok(inverse);
    }
    // The derivatives do not go through the singular values.
    Ok(Array::forwarded(PseudoInverse, &[a], &[inverse.stop_gradient()]).swap_remove(0))
}

attributes! {
    /// Returns the second operand, which is the pseudo-inverse of the first, and has the
    /// derivatives of a pseudo-inverse.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct PseudoInverse;
}

impl MultiOutputRules for PseudoInverse {
    fn name(&self) -> &'static str {
        "pinv"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let [(a, dtype), inverse] = *node.inputs else { return false };
        let ([batch @ .., m, n], [other @ .., k, l]) = (a, inverse.0) else { return false };
        solved(dtype)
            && inverse.1 == dtype
            && (batch, m, n) == (other, l, k)
            && node.outputs == [inverse]
    }

    fn forwards_operands(&self) -> bool {
        true
    }

    fn has_own_derivatives(&self) -> bool {
        true
    }

    fn eval(&self, _: &Exec, call: &Call<'_>, _: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        Ok(call.inputs[1..].to_vec())
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let (a, cotangents) = (&v.primals[0], v.all_cotangents());
        Ok(smallvec![Some(pinv_vjp(a, &pinv(a)?, &cotangents[0])?), None])
    }

    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        let a = &j.primals[0];
        let forward = |t: &Array| pinv_jvp(a, &pinv(a)?, t);
        Ok(vec![j.tangents[0].as_ref().map(forward).transpose()?])
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        Ok(vec![(pinv(&batched(&v.inputs[0], v.axes[0], v.size)?)?, Some(0))])
    }
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
