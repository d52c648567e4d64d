//! Shared parts of the derivatives of decompositions. Each decomposition's file has its own rules.
//!
//! Sources: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
//! differentiation" (2008); I. Murray, "Differentiation of the Cholesky decomposition" (2016); J. Townsend,
//! "Differentiating the singular value decomposition" (2016); S. Walter and L. Lehmann, "Algorithmic differentiation
//! of linear algebra functions" (2010), for QR and LU; C. Boeddeker et al., "On the computation of complex-valued
//! gradients" (2017), for eigenvectors. Reverse rules are the adjoints of the forward rules in the
//! inner product `Re tr(x^H y)`.
//!
//! Choices that a matrix does not determine have no derivative. The signs and phases of vectors are held fixed, and so
//! is the choice among vectors of equal singular values or eigenvalues. Functions that do not depend on these choices
//! get correct derivatives. Tangents and cotangents of symmetric matrices are made symmetric.

use crate::ops::rules::builders::{bin, like, un, with_axis};
use crate::ops::{
    Cotangents, linalg::triangular::SolveTriangular, matmul::adjoint, select::where_,
};
use crate::{array::Array, error::Result};
use smallvec::smallvec;
use ultramarine_abi::schema::{binary, unary};

/// One triangle, without the diagonal.
pub(crate) fn below(a: &Array) -> Result<Array> {
    a.tril(-1)
}

pub(crate) fn minus(a: &Array, b: &Array) -> Result<Array> {
    bin(binary::SUBTRACT, a, b)
}

pub(crate) fn negated(a: &Array) -> Array {
    un(unary::NEGATIVE, a)
}

/// The Hermitian part: half of the sum of `a` and its adjoint.
pub(crate) fn hermitian(a: &Array) -> Result<Array> {
    let sum = a.add(&adjoint(a)?)?;
    sum.multiply(like(&sum, 0.5))
}

/// The main diagonals, `(..., k)`.
pub(crate) fn diagonal(a: &Array) -> Result<Array> {
    a.diagonal(0, -2, -1)
}

/// Square matrices with these diagonals, and zeros elsewhere.
pub(crate) fn with_diagonal(d: &Array) -> Result<Array> {
    let n = d.shape()[d.ndim() - 1];
    with_axis(d, d.ndim())?.multiply(&Array::identity(n, d.dtype())?)
}

/// The real part, in the dtype of `a`.
pub(crate) fn real(a: &Array) -> Result<Array> {
    if a.dtype().is_complex() { Ok(a.real()?.astype(a.dtype())) } else { Ok(a.clone()) }
}

/// `i` times the imaginary part; zero for real matrices.
pub(crate) fn imaginary(a: &Array) -> Result<Option<Array>> {
    if a.dtype().is_complex() { minus(a, &real(a)?).map(Some) } else { Ok(None) }
}

/// Columns from `start` on.
pub(crate) fn columns(a: &Array, start: usize, stop: usize) -> Result<Array> {
    a.along(a.ndim() - 1, start, stop, 1)
}

pub(crate) fn rows(a: &Array, start: usize, stop: usize) -> Result<Array> {
    a.along(a.ndim() - 2, start, stop, 1)
}

/// The vectors as factors of a matrix's columns.
pub(crate) fn of_columns(d: &Array) -> Result<Array> {
    with_axis(d, d.ndim() - 1)
}

/// `1 / x`, and 0 for zero.
pub(crate) fn safe_inverse(x: &Array) -> Result<Array> {
    let zero = bin(binary::EQUAL, x, &like(x, 0.0))?;
    let inverse = un(unary::RECIPROCAL, &where_(&zero, like(x, 1.0), x)?);
    where_(&zero, like(x, 0.0), &inverse)
}

/// `1 / (w_j - w_i)` in row i, column j; 0 where they are equal.
pub(crate) fn gaps(w: &Array) -> Result<Array> {
    safe_inverse(&minus(&of_columns(w)?, &with_axis(w, w.ndim())?)?)
}

/// The cotangent, or zeros if there is none.
pub(crate) fn or_zeros(a: &Option<Array>, output: &Array) -> Array {
    a.clone().unwrap_or_else(|| output.zeros_like())
}

/// `x t^-1` for triangular `t`.
pub(crate) fn divided(x: &Array, t: &Array, upper: bool) -> Result<Array> {
    adjoint(&SolveTriangular { upper: !upper }.of(&adjoint(t)?, &adjoint(x)?)?)
}

/// `t^-1 x`.
pub(crate) fn solved(t: &Array, x: &Array, upper: bool) -> Result<Array> {
    SolveTriangular { upper }.of(t, x)
}

pub(crate) fn one(a: Array) -> Result<Cotangents> {
    Ok(smallvec![Some(a)])
}

/// The real parts of the diagonal, in a real dtype.
pub(crate) fn real_diagonal(a: &Array) -> Result<Array> {
    let d = diagonal(a)?;
    if a.dtype().is_complex() { d.real() } else { Ok(d) }
}
