//! Gradients of a bounded norm.

use crate::Gradients;
use ultramarine::{Array, Dtype, Error, Result};

/// Scales gradients so that the norm of all of them together is at most `max_norm`. Returns them, and the norm before.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{Gradients, optimizers::clip_grad_norm};
/// let gradients = Gradients::from([("w".to_owned(), Array::from_slice(&[3.0f32, 4.0], &[2])?)]);
/// let (clipped, norm) = clip_grad_norm(&gradients, 1.0)?;
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert!((clipped["w"].to_vec::<f32>()?[0] - 0.6).abs() < 1e-6);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] for a negative bound.
pub fn clip_grad_norm(gradients: &Gradients, max_norm: f64) -> Result<(Gradients, Array)> {
    if max_norm.is_nan() || max_norm < 0.0 {
        let text = format!("max_norm is {max_norm}. Pass a number that is not negative.");
        return Err(Error::value("clip_grad_norm", text));
    }
    let mut total = Array::scalar(0.0f32);
    for gradient in gradients.values() {
        total = total.add(&sum_of_squares(gradient)?)?;
    }
    let norm = total.sqrt()?;
    let factor = (max_norm / &(&norm + 1e-6)?)?;
    let factor = factor.minimum(1.0)?;
    let scaled = gradients.iter().map(|(name, gradient)| {
        let scaled = gradient.multiply(&factor)?;
        let dtype = gradient.dtype();
        let scaled = if dtype.is_floating() { scaled.astype(dtype) } else { scaled };
        Ok((name.clone(), scaled))
    });
    Ok((scaled.collect::<Result<_>>()?, norm))
}

/// float16 is summed in float32, because its squares overflow.
fn sum_of_squares(gradient: &Array) -> Result<Array> {
    let gradient = match gradient.dtype() {
        Dtype::Float16 => gradient.astype(Dtype::Float32),
        Dtype::Complex64 => gradient.abs()?,
        _ => gradient.clone(),
    };
    gradient.square()?.sum(None)
}
