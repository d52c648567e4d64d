//! Parts of neural networks: softmax, norms and rotary positions.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Operand, axes};
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::fast::Rope;

/// Computes the exponentials of elements over their sum along axes, without overflow.
///
/// Args:
///     a (array): Array of any shape.
///     axis (int | Sequence[int] | None): Axes to sum over; by default all of them.
///     precise (bool): Computes float16 and bfloat16 in float32.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Numbers between 0 and 1 in the shape of `a`; float32 for integers and bools.
///
/// Raises:
///     IndexError: If an axis is out of range.
///
/// Example:
///     >>> mx.softmax(mx.array([0.0, 0.0]), axis=-1)
///     array([0.5, 0.5], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, /, axis=None, *, precise=false, stream=None))]
fn softmax(
    a: ArrayArg,
    axis: Option<Ints>,
    precise: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.softmax(axes(&axis), precise))?))
}

/// Divides vectors along the last axis by the root of the mean of their squares.
///
/// `x / sqrt(mean(x ** 2) + eps) * weight`; float16 and bfloat16 are computed in float32.
///
/// Args:
///     x (array): Array of one dimension at least, of floats.
///     weight (array | None): Factor for each element of the last axis; None for none.
///     eps (float): Number that is added to the mean of squares.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape of `x`, in the dtype that `x` and the weight promote to.
///
/// Raises:
///     ValueError: If `x` has no axis, is not of floats, or the weight does not fit the last
///         axis.
#[pyfunction]
#[pyo3(signature = (x, weight, eps, *, stream=None))]
fn rms_norm(
    x: ArrayArg,
    weight: Option<ArrayArg>,
    eps: f64,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let weight = weight.as_ref().map(|w| &w.0);
    Ok(PyArray::new(on(stream, || ultramarine::fast::rms_norm(&x.0, weight, eps))?))
}

/// Normalises vectors along the last axis to mean 0 and variance 1.
///
/// `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`; float16 and bfloat16 are computed in
/// float32.
///
/// Args:
///     x (array): Array of one dimension at least, of floats.
///     weight (array | None): Factor for each element of the last axis; None for none.
///     bias (array | None): Summand for each element of the last axis; None for none.
///     eps (float): Number that is added to the variance.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape of `x`, in the dtype that `x`, weight and bias promote to;
///         without a weight in that of `x`.
///
/// Raises:
///     ValueError: If `x` has no axis, is not of floats, or weight or bias do not fit the last
///         axis.
#[pyfunction]
#[pyo3(signature = (x, weight, bias, eps, *, stream=None))]
fn layer_norm(
    x: ArrayArg,
    weight: Option<ArrayArg>,
    bias: Option<ArrayArg>,
    eps: f64,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (weight, bias) = (weight.as_ref().map(|w| &w.0), bias.as_ref().map(|b| &b.0));
    let run = || ultramarine::fast::layer_norm(&x.0, weight, bias, eps);
    Ok(PyArray::new(on(stream, run)?))
}

/// Rotates pairs of elements of the last axis by angles that grow with the position.
///
/// Positions are the indices along the axis before the last, times `scale`. float16 and
/// bfloat16 are computed in float32.
///
/// Args:
///     a (array): Array of three dimensions at least, of floats: (batch, ..., positions,
///         elements).
///     dims (int): Number of leading elements of the last axis to rotate; the others stay.
///     traditional (bool): Pairs neighbours; else element i is paired with element i + dims /
///         2.
///     base (float | None): Pair i of n rotates by the angle base ** (-i / n) for each
///         position. None where `freqs` is given.
///     scale (float): Factor of the positions.
///     offset (int | array): First position; or an array with one for each element of the first
///         axis.
///     freqs (array | None): Instead of a base: positions for the angle 1, for each of the dims
///         / 2 pairs.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Rotated array, in shape and dtype of `a`.
///
/// Raises:
///     ValueError: If the shapes do not fit, or not exactly one of `base` and `freqs` is given.
#[pyfunction]
#[pyo3(signature = (a, dims, *, traditional, base, scale, offset, freqs=None, stream=None))]
#[allow(clippy::too_many_arguments)]
fn rope(
    a: ArrayArg,
    dims: isize,
    traditional: bool,
    base: Option<f64>,
    scale: f64,
    offset: Operand,
    freqs: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let how = Rope { dims, traditional, base, scale };
    let freqs = freqs.as_ref().map(|f| &f.0);
    Ok(PyArray::new(on(stream, || ultramarine::fast::rope(&a.0, how, &offset.0, freqs))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: softmax);
    Ok(())
}

/// The functions of the module `ultramarine.fast`.
pub fn register_fast(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: rms_norm layer_norm rope);
    Ok(())
}
