//! QR decomposition.

use crate::ops::linalg::derivatives::{
    below, columns, diagonal, divided, imaginary, minus, one, or_zeros, real, with_diagonal,
};
use crate::ops::linalg::matrices::{self, sizes};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputVjp};
use crate::ops::{Cotangents, attributes, matmul::adjoint, shape::concatenate::concatenate};
use crate::{array::Array, error::Result, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, op};

/// Returns the reduced QR decomposition `(q, r)` of matrices: `a = q r`, with orthonormal columns
/// in q and an upper triangular r.
///
/// `a` is `(..., m, n)` of float32, float64 or complex64; q, `(..., m, k)`, and r, `(..., k, n)`,
/// have the same dtype, `k = min(m, n)`. Signs of r's diagonal are those of Householder's
/// reflections.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
/// let (q, r) = linalg::qr(&a)?;
/// assert_eq!((q.shape(), r.shape()), (&[3, 2][..], &[2, 2][..]));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes or fewer than two dimensions.
pub fn qr(a: &Array) -> Result<(Array, Array)> {
    matrices::check("linalg::qr", a)?;
    let [q, r] = Qr.of(a)?;
    Ok((q, r))
}

attributes! {
    /// Both factors.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Qr;
}

impl Qr {
    /// Both factors of matrices.
    pub fn of(self, a: &Array) -> Result<[Array; 2]> {
        let (m, n) = matrices::sizes(a);
        let k = m.min(n);
        let results = smallvec![
            (matrices::with_last(a, &[m, k]), a.dtype()),
            (matrices::with_last(a, &[k, n]), a.dtype()),
        ];
        matrices::exactly("qr", Array::multi_output(self, &[a], results)?)
    }
}

matrices::decomposition! {
    impl MultiOutputRules for Qr = "qr": QR, |_| NoAttrs::new(), |_, node| {
        let (batch, [m, n], dtype) = matrices::operand(node)?;
        let of = |last: &[usize]| (matrices::stacked(batch, last), dtype);
        Some(node.gives_all(&[of(&[m, m.min(n)]), of(&[m.min(n), n])]))
    }, qr_vjp, qr_jvp
}

/// `a' = (Q' + Q T) R^-H`, where T is Hermitian with the upper triangle of `R' R^H - Q^H Q'`. For wide matrices this is
/// the leading square; the other columns of R are `Q^H a`.
fn qr_vjp(v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
    let (q, r, a) = (&v.outputs[0], &v.outputs[1], &v.primals[0]);
    let (mut dq, dr) = (or_zeros(&v.cotangents[0], q), or_zeros(&v.cotangents[1], r));
    let (m, n) = sizes(a);
    let k = m.min(n);
    let (mut head, mut d_head, mut tail) = (r.clone(), dr.clone(), None);
    if n > m {
        let beyond = columns(&dr, k, n)?;
        dq = dq.add(&columns(a, k, n)?.matmul(&adjoint(&beyond)?)?)?;
        tail = Some(q.matmul(&beyond)?);
        (head, d_head) = (columns(r, 0, k)?, columns(&dr, 0, k)?);
    }
    let inner = minus(&d_head.triu(0)?.matmul(&adjoint(&head)?)?, &adjoint(q)?.matmul(&dq)?)?;
    let upper = inner.triu(1)?;
    let middle = upper.add(&adjoint(&upper)?)?.add(&with_diagonal(&real(&diagonal(&inner)?)?)?)?;
    let left = divided(&dq.add(&q.matmul(&middle)?)?, &adjoint(&head)?, false)?;
    one(match tail {
        Some(tail) => concatenate(&[left, tail], -1)?,
        None => left,
    })
}

/// `dQ = Q (W - M) + C`, `dR = (M - W) R` with `C = da R^-1`, `M = Q^H C`, and W skew-Hermitian, equal to M below its
/// diagonal.
fn qr_jvp(j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
    let Some(t) = &j.tangents[0] else { return Ok(vec![None; 2]) };
    let (q, r, a) = (&j.outputs[0], &j.outputs[1], &j.primals[0]);
    let (m, n) = sizes(a);
    let k = m.min(n);
    let head = columns(r, 0, k)?;
    let c = divided(&columns(t, 0, k)?, &head, true)?;
    let inner = adjoint(q)?.matmul(&c)?;
    let lower = below(&inner)?;
    let mut skew = minus(&lower, &adjoint(&lower)?)?;
    if let Some(i) = imaginary(&diagonal(&inner)?)? {
        skew = skew.add(&with_diagonal(&i)?)?;
    }
    let rotation = minus(&inner, &skew)?;
    let dq = minus(&c, &q.matmul(&rotation)?)?;
    let mut dr = rotation.matmul(&head)?.triu(0)?;
    if n > m {
        let beyond = adjoint(&dq)?
            .matmul(&columns(a, k, n)?)?
            .add(&adjoint(q)?.matmul(&columns(t, k, n)?)?)?;
        dr = concatenate(&[dr, beyond], -1)?;
    }
    Ok(vec![Some(dq), Some(dr)])
}
