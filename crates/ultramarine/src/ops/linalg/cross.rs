//! The cross product.

use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::builders::{bin, slice_axis};
use crate::ops::shape::axes::{Axis, one};
use crate::{array::Array, concatenate, shape};
use ultramarine_abi::schema::binary;

/// Returns the cross product along `axis`, where both operands have size 3, or 2 (the third element
/// counts as 0). Other axes are broadcast; the result has size 3 along `axis`.
///
/// ```
/// use ultramarine::{Array, linalg};
/// let x = Array::from_slice(&[1.0f32, 0.0, 0.0], &[3])?;
/// let y = Array::from_slice(&[0.0f32, 1.0], &[2])?;
/// assert_eq!(linalg::cross(&x, &y, -1)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Index`] for an axis out of range, [`Error::Value`] for other sizes or shapes that cannot be broadcast.
pub fn cross(a: &Array, b: &Array, axis: impl Into<Axis>) -> Result<Array> {
    const OP: &str = "linalg::cross";
    let axis = one(OP, axis)?;
    let dtype = a.dtype().promote(b.dtype());
    let parts = |x: &Array| -> Result<(usize, Vec<Array>)> {
        let n = x.ndim();
        let Some(at) = shape::from_start(axis, n) else {
            let text = format!("Axis {axis} is out of bounds for array with {n} dimensions.");
            return Err(Error::index(OP, format!("{text} {}", shape::AxisRange(n))));
        };
        let size = x.shape()[at];
        ensure!(
            size == 2 || size == 3,
            OP,
            "The specified axis must have size 2 or 3, but has {size}. Pass another axis."
        );
        x.computable(OP)?;
        let x = x.promoted(dtype);
        let parts = (0..size).map(|i| slice_axis(&x, at, i, 1)).collect::<Result<_>>()?;
        Ok((n - at, parts))
    };
    let ((from_end, a), (same, b)) = (parts(a)?, parts(b)?);
    if from_end != same {
        // An axis counted from the start can be a different axis in each operand.
        bail!(
            OP,
            "Axis {axis} is not the same axis of both operands. Count it from the end, by a negative number."
        );
    }
    // `a_i b_j - a_j b_i`, where missing elements count as zero.
    let minor = |i: usize, j: usize| -> Result<Option<Array>> {
        let product = |x: &[Array], y: &[Array], i: usize, j: usize| match (x.get(i), y.get(j)) {
            (Some(x), Some(y)) => x.multiply(y).map(Some),
            _ => Ok(None),
        };
        Ok(match (product(&a, &b, i, j)?, product(&a, &b, j, i)?) {
            (Some(x), Some(y)) => Some(bin(binary::SUBTRACT, &x, &y)?),
            (Some(x), None) => Some(x),
            (None, Some(y)) => Some(bin(binary::SUBTRACT, &y.zeros_like(), &y)?),
            (None, None) => None,
        })
    };
    let last = minor(0, 1)?;
    let zeros = last.as_ref().map(Array::zeros_like);
    let parts = [minor(1, 2)?, minor(2, 0)?, last];
    let parts: Vec<Array> = parts.into_iter().filter_map(|p| p.or_else(|| zeros.clone())).collect();
    concatenate(&parts, -(from_end as isize))
}
