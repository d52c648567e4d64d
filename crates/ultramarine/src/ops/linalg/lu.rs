//! LU factors with partial pivoting.

use crate::ops::linalg::derivatives::{below, columns, divided, minus, one, rows, solved};
use crate::ops::linalg::matrices::{self, sizes};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::{
    Cotangents, attributes, matmul::adjoint, rules::builders::with_axis,
    shape::concatenate::concatenate,
};
use crate::{array::Array, dtype::Dtype, error::Result, placement::follow, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op};

/// Returns LU factors with partial pivoting, packed, and the pivots.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64. The first result, of the same shape and
/// dtype, has U on and above the diagonal, and L below it; L's diagonal of ones is not stored. The
/// pivots are uint32, `(..., min(m, n))`: step `i` swapped row `i` with row `pivots[i]`. A matrix
/// without an inverse is no error: U has a 0 on its diagonal.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 4.0, 4.0], &[2, 2])?;
/// let (lu, pivots) = linalg::lu_factor(&a)?;
/// assert_eq!(lu.to_vec::<f32>()?, [4.0, 4.0, 0.25, 1.0]);
/// assert_eq!(pivots.to_vec::<u32>()?, [1, 1]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes or fewer than two dimensions.
pub fn lu_factor(a: &Array) -> Result<(Array, Array)> {
    matrices::check("linalg::lu_factor", a)?;
    let [lu, pivots, _] = Lu.of(a)?;
    Ok((lu, pivots))
}

/// Returns LU factors `(p, l, u)` with partial pivoting: `a = l[p, :] u`.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64, and `k = min(m, n)`. The rows p, `(...,
/// m)`, are uint32; l, `(..., m, k)`, has ones on its diagonal; u is `(..., k, n)`.
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
    matrices::check("linalg::lu", a)?;
    let _home = follow(&[a]);
    let (m, n) = sizes(a);
    let k = m.min(n);
    let [packed, _, rows] = Lu.of(a)?;
    let last = a.ndim() - 1;
    let l = packed.tril(-1)?.along(last, 0, k, 1)?.add(&Array::eye(m, k, 0, a.dtype())?)?;
    let u = packed.triu(0)?.along(last - 1, 0, k, 1)?;
    Ok((rows.argsort(Some(-1))?.astype(Dtype::Uint32), l, u))
}

attributes! {
    /// Packed factors, pivots, and the rows: row `i` of `L U` is row `rows[i]` of the matrix.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Lu;
}

impl Lu {
    /// The three results for matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 3]> {
        let (m, n) = matrices::sizes(a);
        let k = m.min(n);
        let rows = matrices::with_last(a, &[m]);
        if k == 0 {
            let _home = follow(&[a]);
            let order = Array::arange(0.0, m as f64, 1.0, Dtype::Uint32)?;
            let pivots = matrices::nothing(a, &[0], Dtype::Uint32)?;
            let lu = matrices::nothing(a, &[m, n], a.dtype())?;
            return Ok([lu, pivots, order.broadcast_to(&rows)?]);
        }
        let results = smallvec![
            (Shape::from_slice(a.shape()), a.dtype()),
            (matrices::with_last(a, &[k]), Dtype::Uint32),
            (rows, Dtype::Uint32),
        ];
        matrices::exactly("lu", Array::multi_output(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl MultiOutputRules for Lu = "lu": LU, |_| NoAttrs::new(), |_, node| {
        let (batch, [m, n], dtype) = matrices::operand(node)?;
        let k = m.min(n);
        let of = |last: &[usize]| matrices::stacked(batch, last);
        let results =
            [(of(&[m, n]), dtype), (of(&[k]), Dtype::Uint32), (of(&[m]), Dtype::Uint32)];
        Some(k > 0 && node.gives_all(&results))
    }, lu_vjp, lu_jvp
}

/// The leading square parts of packed factors: L with its diagonal of ones, and U.
fn square_factors(lu: &Array, k: usize) -> Result<(Array, Array)> {
    let head = columns(&rows(lu, 0, k)?, 0, k)?;
    let l = below(&head)?.add(&Array::identity(k, lu.dtype())?)?;
    Ok((l, head.triu(0)?))
}

/// The rows in the given order.
fn ordered(a: &Array, order: &Array) -> Result<Array> {
    let index = with_axis(order, order.ndim())?.broadcast_to(a.shape())?;
    a.take_along_axis(&index, Some(-2))
}

/// For square factors `P a = L U`: `(P a)' = L^-H (below(L^H L') + above(U' U^H)) U^-H`. Elements beyond the leading
/// square depend on L or U alone.
fn lu_vjp(v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
    let Some(ct) = &v.cotangents[0] else { return Ok(smallvec![None]) };
    let lu = &v.outputs[0];
    let ((m, n), order) = (sizes(lu), v.outputs[2].argsort(Some(-1))?);
    let k = m.min(n);
    let (l, u) = square_factors(lu, k)?;
    let head = columns(&rows(ct, 0, k)?, 0, k)?;
    let (mut dl, mut du) = (below(&head)?, head.triu(0)?);
    let mut rest = None;
    if m > n {
        // L2 = A2 U^-1.
        let tail = divided(&rows(ct, k, m)?, &adjoint(&u)?, false)?;
        du = minus(&du, &adjoint(&rows(lu, k, m)?)?.matmul(&tail)?)?;
        rest = Some((tail, -2));
    } else if n > m {
        // U2 = L^-1 A2.
        let tail = solved(&adjoint(&l)?, &columns(ct, k, n)?, true)?;
        dl = minus(&dl, &tail.matmul(&adjoint(&columns(lu, k, n)?)?)?)?;
        rest = Some((tail, -1));
    }
    let left = below(&adjoint(&l)?.matmul(&dl)?)?;
    let middle = left.add(&du.matmul(&adjoint(&u)?)?.triu(0)?)?;
    let right = divided(&solved(&adjoint(&l)?, &middle, true)?, &adjoint(&u)?, false)?;
    let all = match rest {
        Some((tail, axis)) => concatenate(&[right, tail], axis)?,
        None => right,
    };
    one(ordered(&all, &order)?)
}

/// `dL = L below(F)`, `dU = above(F) U` with `F = L^-1 P da U^-1`, packed.
fn lu_jvp(j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 3]) };
    let lu = &j.outputs[0];
    let (m, n) = sizes(lu);
    let k = m.min(n);
    let (l, u) = square_factors(lu, k)?;
    let t = ordered(t, &j.outputs[2])?;
    let head = columns(&rows(&t, 0, k)?, 0, k)?;
    let f = divided(&solved(&l, &head, false)?, &u, true)?;
    let (dl, du) = (l.matmul(&below(&f)?)?, f.triu(0)?.matmul(&u)?);
    let mut out = dl.add(&du)?;
    if m > n {
        let gone = rows(lu, k, m)?.matmul(&du)?;
        let tail = divided(&minus(&rows(&t, k, m)?, &gone)?, &u, true)?;
        out = concatenate(&[out, tail], -2)?;
    } else if n > m {
        let gone = dl.matmul(&columns(lu, k, n)?)?;
        let tail = solved(&l, &minus(&columns(&t, k, n)?, &gone)?, false)?;
        out = concatenate(&[out, tail], -1)?;
    }
    Ok(vec![Some(out), None, None])
}
