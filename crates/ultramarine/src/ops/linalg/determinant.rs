//! Determinants, by LU factors.

use crate::ops::linalg::derivatives::{diagonal, safe_inverse};
use crate::ops::linalg::matrices::{check_rank, check_sides, sizes};
use crate::ops::rules::builders::{bin, like, un};
use crate::{array::Array, dtype::Dtype, error::Result, ops::linalg::lu::Lu, placement::follow};
use ultramarine_abi::schema::{binary, unary};

/// The diagonal of U, and the sign of the permutation, in the dtype of the computation.
fn factors(op: &str, a: &Array) -> Result<(Array, Array)> {
    check_rank(op, a)?;
    check_sides(op, a)?;
    a.computable(op)?;
    let _home = follow(&[a]);
    let dtype = match a.dtype() {
        d @ (Dtype::Float64 | Dtype::Complex64) => d,
        _ => Dtype::Float32,
    };
    let [lu, pivots, _] = Lu.of(&a.astype(dtype))?;
    let here = Array::arange(0.0, sizes(a).1 as f64, 1.0, Dtype::Uint32)?;
    let swaps = bin(binary::NOT_EQUAL, &pivots, &here)?.astype(Dtype::Int32);
    let odd = swaps.sum(-1)?.remainder(Array::scalar(2i32))?;
    let odd = odd.astype(dtype);
    let sign = bin(binary::SUBTRACT, &like(&odd, 1.0), &odd.multiply(like(&odd, 2.0))?)?;
    Ok((diagonal(&lu)?, sign))
}

/// Returns the determinants of square matrices `(..., n, n)`, with shape `(...)`. The determinant
/// of an empty matrix is 1. Integers give float32; float16 and bfloat16 are computed in float32.
/// The derivative exists only for invertible matrices.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert!((linalg::det(&a)?.item::<f32>()? + 2.0).abs() < 1e-6);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for fewer than two dimensions, or matrices that are not square.
pub fn det(a: &Array) -> Result<Array> {
    let (diagonal, sign) = factors("linalg::det", a)?;
    Ok(diagonal.prod(-1)?.multiply(&sign)?.astype(a.dtype().to_inexact()))
}

/// Returns the signs and logarithms of the magnitudes of determinants, `det = sign *
/// exp(logabsdet)`, each of shape `(...)`. If a matrix has no inverse, the sign is 0 and the
/// logarithm -infinity. For complex matrices the sign is a complex number of modulus 1.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let a = Array::from_slice(&[1.0f32, 0.0, 0.0, -1.0], &[2, 2])?;
/// let (sign, log) = linalg::slogdet(&a)?;
/// assert_eq!((sign.item::<f32>()?, log.item::<f32>()?), (-1.0, 0.0));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// As [`det`].
pub fn slogdet(a: &Array) -> Result<(Array, Array)> {
    let (diagonal, sign) = factors("linalg::slogdet", a)?;
    let size = diagonal.abs()?;
    // A sign on the unit circle has a derivative; a real sign has none.
    let each = if diagonal.dtype().is_complex() {
        diagonal.multiply(safe_inverse(&size)?.astype(diagonal.dtype()))?
    } else {
        un(unary::SIGN, &diagonal)
    };
    let sign = each.prod(-1)?.multiply(&sign)?;
    let log = un(unary::LOG, &size).sum(-1)?;
    let dtype = a.dtype().to_inexact();
    let real = crate::ops::linalg::matrices::real_of(dtype);
    Ok((sign.astype(dtype), log.astype(real)))
}
