//! Initialisers: functions that draw the initial values of a parameter, in an array's shape and dtype.
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

/// Normally distributed float32 numbers with mean 0.
pub(crate) fn drawn_normal(shape: &[usize], std: f64) -> Result<Array> {
    normal_numbers(shape, Dtype::Float32, 0.0, std)
}

/// Uniformly distributed float32 numbers in `[-bound, bound)`.
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

/// Returns an initialiser that gives all elements the same value.
pub fn constant(value: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| Ok(Array::full(a.shape(), value)?.astype(a.dtype()))
}

/// Returns an initialiser with normal numbers of mean `mean` and standard deviation `std`.
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array that is not of real floats.
pub fn normal(mean: f64, std: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| normal_numbers(a.shape(), a.dtype(), mean, std)
}

/// Returns an initialiser with uniform numbers from `low` to below `high`.
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array that is not of real floats.
pub fn uniform(low: f64, high: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| uniform_numbers(a.shape(), a.dtype(), low, high)
}

/// Returns an initialiser with the identity matrix.
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array that is not a square matrix.
pub fn identity() -> impl Fn(&Array) -> Result<Array> {
    |a| match *a.shape() {
        [rows, columns] if rows == columns => Array::eye(rows, columns, 0, a.dtype()),
        _ => Err(wrong("identity", a, "Pass a square matrix.")),
    }
}

fn wrong(op: &str, a: &Array, remedy: &str) -> Error {
    Error::value(op, format!("The array has shape {}. {remedy}", Show(a.shape())))
}

/// Selects the size of a parameter by which [`he_normal`] and [`he_uniform`] scale. A parameter has the shape
/// `(outputs, kernel..., inputs)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// The number of inputs of an output: elements of all axes but the first.
    #[default]
    In,
    /// The number of outputs of an input: elements of all axes but the last.
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

/// Returns an initialiser with normal numbers of the standard deviation `gain sqrt(2 / (fan in +
/// fan out))` (Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
/// networks", 2010). The fans are those of [`Fan`].
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array with fewer than two axes.
pub fn glorot_normal(gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let (fan_in, fan_out) = fans("glorot_normal", a)?;
        normal_numbers(a.shape(), a.dtype(), 0.0, gain * (2.0 / (fan_in + fan_out)).sqrt())
    }
}

/// Returns an initialiser with uniform numbers in `[-bound, bound)`, where `bound` is `gain sqrt(6
/// / (fan in + fan out))` (Glorot and Bengio, 2010). See [`glorot_normal`].
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array with fewer than two axes.
pub fn glorot_uniform(gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let (fan_in, fan_out) = fans("glorot_uniform", a)?;
        let bound = gain * (6.0 / (fan_in + fan_out)).sqrt();
        uniform_numbers(a.shape(), a.dtype(), -bound, bound)
    }
}

/// Returns an initialiser with normal numbers of the standard deviation `gain / sqrt(fan)` (He et
/// al., "Delving deep into rectifiers", 2015). A gain of sqrt(2) suits layers before a ReLU.
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array with fewer than two axes.
pub fn he_normal(fan: Fan, gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let std = gain / fan_of("he_normal", a, fan)?.sqrt();
        normal_numbers(a.shape(), a.dtype(), 0.0, std)
    }
}

/// Returns an initialiser with uniform numbers in `[-bound, bound)`, where `bound` is `gain sqrt(3
/// / fan)` (He et al., 2015). See [`he_normal`].
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array with fewer than two axes.
pub fn he_uniform(fan: Fan, gain: f64) -> impl Fn(&Array) -> Result<Array> {
    move |a| {
        let bound = gain * (3.0 / fan_of("he_uniform", a, fan)?).sqrt();
        uniform_numbers(a.shape(), a.dtype(), -bound, bound)
    }
}

/// Returns an initialiser for matrices with normal numbers of mean `mean` and standard deviation `std`. In each row, a
/// fraction `sparsity` of the elements (from 0 to 1; the count is rounded up) is zero, at random positions.
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array that is not a matrix.
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

/// Returns an initialiser for matrices that are `gain` times a matrix with orthonormal rows, if it has fewer rows than
/// columns, else orthonormal columns (Saxe et al., 2014).
///
/// # Errors
/// The initialiser fails with [`Error::Value`] for an array that is not a matrix.
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
