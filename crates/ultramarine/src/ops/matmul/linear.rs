//! The affine map of a linear layer.

use super::addmm;
use crate::array::Array;
use crate::error::Result;
use crate::ops::shape::view::View;
use crate::shape::Shape;

/// Returns `x weight^T + bias`, along the last axis of x: x is `(..., inputs)`, the weight
/// `(outputs, inputs)`, the bias `(outputs)`, the result `(..., outputs)`.
///
/// The result equals that of a transpose, a product and a sum, but needs fewer nodes, because an
/// evaluated weight is transposed at once.
///
/// # Errors
/// As [`Array::matmul`] and [`addmm`], for the transposed weight.
pub fn linear(x: &Array, weight: &Array, bias: Option<&Array>) -> Result<Array> {
    let shape: Shape = weight.shape().iter().rev().copied().collect();
    let order = (0..weight.ndim() as u8).rev().collect();
    let transposed = View::Transpose(order).of_value(weight, &shape);
    let transposed = transposed.map_or_else(|| weight.transpose(), Ok)?;
    match bias {
        Some(bias) => addmm(bias, x, &transposed, 1.0, 1.0),
        None => x.matmul(&transposed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transforms;

    /// Evaluated, lazy and traced weights give the same result.
    #[test]
    fn weights_are_transposed() -> Result<()> {
        let x = Array::from_slice(&[1f32, 2., 3., 4.], &[1, 2, 2])?;
        let w = Array::from_slice(&[1f32, 10., 100., 0., 1., -1.], &[3, 2])?;
        let bias = Array::from_slice(&[0.5f32, 0., 0.], &[3])?;
        let expected = [21.5f32, 100., -1., 43.5, 300., -1.];
        let lazy = w.multiply(&Array::from_slice(&[1f32], &[1])?)?;
        for w in [&w, &lazy] {
            assert_eq!(linear(&x, w, Some(&bias))?.to_vec::<f32>()?, expected);
        }
        let loss = |v: &[Array]| Ok(vec![linear(&x, &v[0], None)?.sum(None)?]);
        let one = Array::from_slice(&[1f32], &[])?;
        let (_, slopes) = transforms::vjp(loss, &[w], &[one])?;
        assert_eq!(slopes[0].to_vec::<f32>()?, [4f32, 6., 4., 6., 4., 6.]);
        Ok(())
    }
}
