//! Cholesky's decomposition.

use crate::ops::linalg::derivatives::{below, divided, hermitian, one, solved};
use crate::ops::{
    Cotangents, Jvp, Rules, Vjp, attributes, linalg::matrices, matmul::adjoint,
    rules::builders::like,
};
use crate::{array::Array, error::Result, shape::Shape};
use ultramarine_abi::schema::{TriangleAttrs, op};

/// Returns the triangular factor of symmetric (Hermitian) positive definite matrices: the lower L
/// with `a = L L^H`, or with `upper` the upper U with `a = U^H U`.
///
/// `a` is `(..., n, n)` of float32, float64 or complex64, and so is the result. Only the named
/// triangle of `a` is read. A matrix that is not positive definite gives a triangle of NaN.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[4.0f32, 2.0, 2.0, 10.0], &[2, 2])?;
/// let l = linalg::cholesky(&a, false)?;
/// assert_eq!(l.to_vec::<f32>()?, [2.0, 0.0, 1.0, 3.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for other dtypes, fewer than two dimensions, or matrices that are not square.
pub fn cholesky(a: &Array, upper: bool) -> Result<Array> {
    matrices::check_square("linalg::cholesky", a)?;
    Cholesky { upper }.of(a)
}

attributes! {
    /// One triangular factor of Hermitian matrices.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Cholesky {
        pub upper: bool,
    }
}

impl Cholesky {
    /// The factor of square matrices.
    pub fn of(self, a: &Array) -> Result<Array> {
        Array::try_of(self, &[a], Shape::from_slice(a.shape()), a.dtype())
    }
}

impl Rules for Cholesky {
    matrices::kernel!("cholesky": CHOLESKY, |by| TriangleAttrs::new(by.upper as u32), |_, node| {
        let (_, [m, n], _) = matrices::operand(node)?;
        Some(m == n && node.is_same())
    });

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        // `a' = L^-H half_lower(L^H L') L^-1`, made Hermitian.
        let lower = |x: &Array| if self.upper { adjoint(x) } else { Ok(x.clone()) };
        let (l, ct) = (lower(v.output)?, lower(v.cotangent)?);
        let middle = half_lower(&adjoint(&l)?.matmul(&ct)?)?;
        let left = solved(&adjoint(&l)?, &middle, true)?;
        one(hermitian(&divided(&left, &l, false)?)?)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        // `dL = L half_lower(L^-1 da L^-H)`.
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        let l = if self.upper { adjoint(j.output)? } else { j.output.clone() };
        let inner = divided(&solved(&l, &hermitian(t)?, false)?, &adjoint(&l)?, true)?;
        let d = l.matmul(&half_lower(&inner)?)?;
        Ok(Some(if self.upper { adjoint(&d)? } else { d }))
    }
}

/// The lower triangle with half of the diagonal.
fn half_lower(a: &Array) -> Result<Array> {
    let half = like(a, 0.5);
    a.tril(0)?.add(&below(a)?)?.multiply(&half)
}
