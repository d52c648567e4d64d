//! Initialisers: functions that draw the first values of a parameter, in the shape and the dtype of an array.
//!
//! ```
//! use ultramarine_nn::{Linear, init};
//! let mut layer = Linear::new(3, 2)?;
//! layer.weight.set(init::he_uniform(init::Fan::In, 1.0)(&layer.weight)?);
//! assert_eq!(layer.weight.shape(), [2, 3]);
//! # Ok::<(), ultramarine::Error>(())
//! ```

use ultramarine::shape::Show;
use ultramarine::{Array, Dtype, Error, Result, index, linalg, random};

/// Normal numbers of float32 around 0.
pub(crate) fn drawn_normal(shape: &[usize], std: f64) -> Result<Array> {
    normal_numbers(shape, Dtype::Float32, 0.0, std)
}

/// Uniform numbers of float32 in `[-bound, bound)`.
pub(crate) fn drawn_uniform(shape: &[usize], bound: f64) -> Result<Array> {
    uniform_numbers(shape, Dtype::Float32, -bound, bound)
}

fn normal_numbers(shape: &[usize], dtype: Dtype, mean: f64, std: f64) -> Result<Array> {
    let mean = (mean != 0.0).then(|| Array::scalar(mean as f32));
    random::normal(shape, mean.as_ref(), std, dtype, None)
}

fn uniform_numbers(shape: &[usize], dtype: Dtype, low: f64, high: f64) -> Result<Array> {
    random::uniform(shape, low, high, dtype, None)
}

/// An initialiser with one value for all elements.
pub fn constant(value: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| Ok(Array::full(a.shape(), value)?.astype(a.dtype()))
}

/// An initialiser with normal numbers.
pub fn normal(mean: f64, std: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| normal_numbers(a.shape(), a.dtype(), mean, std)
}

/// An initialiser with uniform numbers from `low` to below `high`.
pub fn uniform(low: f64, high: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| uniform_numbers(a.shape(), a.dtype(), low, high)
}

/// An initialiser with the identity matrix; an error for an array that is no square matrix.
pub fn identity() -> impl Fn(&Array) -> Result<Array> {
    |a| match *a.shape() {
        [rows, columns] if rows == columns => Array::eye(rows, columns, 0, a.dtype()),
        _ => Err(wrong("identity", a, "Pass a square matrix.")),
    }
}

fn wrong(op: &str, a: &Array, remedy: &str) -> Error {
    Error::value(op, format!("The array has shape {}. {remedy}", Show(a.shape())))
}

/// The sizes of a parameter that [`he_normal`] and [`he_uniform`] scale by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// The inputs of an output: elements of all axes but the first.
    #[default]
    In,
    /// The outputs of an input: elements of all axes but the last.
    Out,
}

/// The fans of a parameter `(outputs, kernel..., inputs)`: in and out.
fn fans(op: &str, a: &Array) -> Result<(f64, f64)> {
    let [outputs, kernel @ .., inputs] = a.shape() else {
        return Err(wrong(op, a, "Pass at least two axes."));
    };
    let positions = kernel.iter().product::<usize>() as f64;
    Ok((*inputs as f64 * positions, *outputs as f64 * positions))
}

fn fan_of(op: &str, a: &Array, fan: Fan) -> Result<f64> {
    let (fan_in, fan_out) = fans(op, a)?;
    Ok(match fan {
        Fan::In => fan_in,
        Fan::Out => fan_out,
    })
}

/// An initialiser with normal numbers of the standard deviation `gain sqrt(2 / (fan in + fan out))` (Glorot and Bengio, 2010).
pub fn glorot_normal(gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let (fan_in, fan_out) = fans("glorot_normal", a)?;
        normal_numbers(a.shape(), a.dtype(), 0.0, gain * (2.0 / (fan_in + fan_out)).sqrt())
    }
}

/// An initialiser with uniform numbers up to `gain sqrt(6 / (fan in + fan out))` (Glorot and Bengio, 2010).
pub fn glorot_uniform(gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let (fan_in, fan_out) = fans("glorot_uniform", a)?;
        let bound = gain * (6.0 / (fan_in + fan_out)).sqrt();
        uniform_numbers(a.shape(), a.dtype(), -bound, bound)
    }
}

/// An initialiser with normal numbers of the standard deviation `gain / sqrt(fan)` (He et al., 2015).
pub fn he_normal(fan: Fan, gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let std = gain / fan_of("he_normal", a, fan)?.sqrt();
        normal_numbers(a.shape(), a.dtype(), 0.0, std)
    }
}

/// An initialiser with uniform numbers up to `gain sqrt(3 / fan)` (He et al., 2015).
pub fn he_uniform(fan: Fan, gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let bound = gain * (3.0 / fan_of("he_uniform", a, fan)?).sqrt();
        uniform_numbers(a.shape(), a.dtype(), -bound, bound)
    }
}

/// An initialiser of matrices with normal numbers, of which the part `sparsity` of each row is zeros.
pub fn sparse(sparsity: f64, mean: f64, std: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let &[_, columns] = a.shape() else {
            return Err(wrong("sparse", a, "Pass a matrix."));
        };
        let zeros = (sparsity * columns as f64).ceil().max(0.0) as usize;
        let order = uniform_numbers(a.shape(), Dtype::Float32, 0.0, 1.0)?.argsort(Some(1))?;
        let values = normal_numbers(a.shape(), a.dtype(), mean, std)?;
        let zero = Array::scalar(0.0f32).astype(a.dtype());
        values.put_along_axis(&order.index(&index![.., ..zeros])?, &zero, Some(1))
    }
}

/// An initialiser of matrices with orthonormal rows or columns, whichever are the fewer, times `gain`.
pub fn orthogonal(gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let &[rows, columns] = a.shape() else {
            return Err(wrong("orthogonal", a, "Pass a matrix."));
        };
        let n = rows.max(columns);
        let (q, r) = linalg::qr(&drawn_normal(&[n, n], 1.0)?)?;
        let q = q.multiply(&r.diag(0)?.sign()?)?;
        Ok((&q.index(&index![..rows, ..columns])? * gain)?.astype(a.dtype()))
    }
}
