//! Parts of neural networks: softmax, norms and rotary positions.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Operand, axes};
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::fast::Rope;

/// exp(a) over its sum along the axes, without overflow. `precise` sums float16 and
/// bfloat16 in float32.
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

/// x over the root of the mean of its squares and eps, along the last axis, times the weight. float16 and bfloat16 are
/// computed in float32.
///
/// Args:
///     x (array): The array.
///     weight (array, optional): A weight for each element of the last axis.
///     eps (float): What is added to the mean.
///
/// Returns:
///     array: Of the dtype that x and the weight promote to.
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

/// x less its mean, over the root of its variance and eps, along the last axis, times the weight, plus the bias. float16
/// and bfloat16 are computed in float32.
///
/// Args:
///     x (array): The array.
///     weight (array, optional): A weight for each element of the last axis.
///     bias (array, optional): A bias for each element of the last axis.
///     eps (float): What is added to the variance.
///
/// Returns:
///     array: Of the dtype that x, the weight and the bias promote to; of x's without a weight.
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

/// Turns pairs of elements of the last axis by angles that grow with the position, which is the index along the axis
/// before it. float16 and bfloat16 are computed in float32.
///
/// Args:
///     a (array): The array, of at least three axes.
///     dims (int): How many elements of the last axis are turned; the rest stays.
///     traditional (bool): Whether pairs are neighbours; else the first half is paired with the second.
///     base (float, optional): Pair i of n turns by base^(-i/n) for each position.
///     scale (float): What positions are multiplied by.
///     offset (int or array): The first position, or one for each element of the first axis.
///     freqs (array, optional): Instead of a base: positions for an angle of 1, for each pair.
///
/// Returns:
///     array: Like a.
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
