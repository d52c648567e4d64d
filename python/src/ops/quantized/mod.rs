//! Numbers of few bits.

mod products;

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, Dtype, Quantization, Quantized};

/// The array of an optional argument.
fn optional(argument: &Option<ArrayArg>) -> Option<&Array> {
    argument.as_ref().map(|a| &a.0)
}

/// The arguments that make numbers of few bits.
struct Parts {
    words: ArrayArg,
    scales: ArrayArg,
    biases: Option<ArrayArg>,
    global_scale: Option<ArrayArg>,
}

impl Parts {
    fn with(self, how: Quantization) -> Quantized {
        Quantized {
            words: self.words.0,
            scales: self.scales.0,
            biases: self.biases.map(|a| a.0),
            global_scale: self.global_scale.map(|a| a.0),
            how,
        }
    }
}

/// Converts to 8-bit floats (E4M3), as uint8.
///
/// Numbers are rounded to the nearest, ties to even. What is too large, infinities and NaN give the
/// largest number, 448, with their sign.
///
/// Args:
///     x (array): Array of real floats.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of uint8, of the same shape.
///
/// Raises:
///     ValueError: If the array has no real floats.
///
/// Example:
///     >>> mx.to_fp8(mx.array([1.0, -448.0, 0.0]))
///     array([56, 254, 0], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (x, *, stream=None))]
fn to_fp8(x: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || ultramarine::to_fp8(&x.0))?))
}

/// Converts from 8-bit floats (E4M3), which are uint8.
///
/// Args:
///     x (array): Array of uint8.
///     dtype (Dtype | None): Dtype of the result, a real float; by default bfloat16.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the same shape.
///
/// Raises:
///     ValueError: If the array is not of uint8, or the dtype is no real float.
///
/// Example:
///     >>> mx.from_fp8(mx.array([56, 254], dtype=mx.uint8), mx.float32)
///     array([1, -448], dtype=float32)
#[pyfunction]
#[pyo3(signature = (x, dtype=None, *, stream=None))]
fn from_fp8(x: ArrayArg, dtype: Option<DtypeArg>, stream: Option<StreamArg>) -> Res<PyArray> {
    let dtype = dtype.unwrap_or(DtypeArg(Dtype::Bfloat16));
    Ok(PyArray::new(on(stream, || ultramarine::from_fp8(&x.0, dtype.0))?))
}

/// Rounds the rows of matrices to numbers of few bits.
///
/// A group of `group_size` elements of a row shares a scale. Words hold the elements of a row one
/// after the other, from the lowest bits on. The modes are:
///
/// * `affine`: integers q of 1, 2, 3, 4, 5, 6 or 8 bits (by default 4) in groups of 32, 64 or 128 (by
///   default 64), which stand for scale * q + bias; scales and biases have the dtype of `w`.
/// * `mxfp4`: floats of 4 bits (E2M1) in groups of 32, whose scale is a power of 2: its exponent plus
///   127, as uint8.
/// * `mxfp8`: floats of 8 bits (E4M3), the rest as of mxfp4.
/// * `nvfp4`: floats of 4 bits (E2M1) in groups of 16, whose scale is a float of 8 bits (E4M3), as
///   uint8, and maybe a global scale: the largest magnitude of all elements.
///
/// Args:
///     w (array): Array of the shape (..., n, k), of real floats.
///     group_size (int | None): Elements that share a scale, of which k is a multiple; by default the mode's.
///     bits (int | None): Bits of an element; by default the mode's.
///     mode (str): What the bits mean: `"affine"`, `"mxfp4"`, `"mxfp8"` or `"nvfp4"`.
///     global_scale (array | None): Scale of all elements, of nvfp4 alone: float32, of one element.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     tuple[array, array, array]: Words, uint32, of the shape (..., n, k * bits / 32); scales of the
///         shape (..., n, k / group_size); and biases of the same shape, of affine alone: of other modes
///         it is a tuple of two.
///
/// Raises:
///     ValueError: If the array is none of real floats with two axes or more, k is not a multiple of the
///         group size, the mode has no such sizes, or the global scale is none.
///
/// Example:
///     >>> w_q, scales, biases = mx.quantize(mx.arange(64.0)[None], bits=8)
///     >>> w_q.shape, scales.shape
///     ((1, 16), (1, 1))
#[pyfunction]
#[pyo3(signature = (w, /, group_size=None, bits=None, mode="affine", global_scale=None, *, stream=None))]
fn quantize<'py>(
    py: Python<'py>,
    w: ArrayArg,
    group_size: Option<isize>,
    bits: Option<isize>,
    mode: &str,
    global_scale: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<Bound<'py, PyTuple>> {
    let how = Quantization::from_options("quantize", mode, group_size, bits)?;
    let q = on(stream, || ultramarine::quantize(&w.0, how, optional(&global_scale)))?;
    let parts = [Some(q.words), Some(q.scales), q.biases].into_iter().flatten();
    Ok(PyTuple::new(py, parts.map(PyArray::new).collect::<Vec<_>>())?)
}

/// Converts numbers of few bits to floats.
///
/// Args:
///     w (array): Words, as of `quantize`.
///     scales (array): Scales of the groups.
///     biases (array | None): Biases of the groups, of affine alone.
///     group_size (int | None): Elements that share a scale; by default the mode's.
///     bits (int | None): Bits of an element; by default the mode's. Of affine any number up to 32.
///     mode (str): What the bits mean; see `quantize`.
///     global_scale (array | None): Scale of all elements, of nvfp4 alone: float32, of one element.
///     dtype (Dtype | None): Dtype of the result, a real float; by default that of scales and biases,
///         float32 with a global scale, and else bfloat16.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape (..., n, k).
///
/// Raises:
///     ValueError: If the words are not uint32 or have less than two axes, scales and biases do not fit
///         them or the mode, or the dtype is no real float.
///
/// Example:
///     >>> w = mx.array([[1.0, 2.0, 3.0, 6.0] * 8])
///     >>> mx.dequantize(*mx.quantize(w, mode="mxfp4"), mode="mxfp4")[0, :4]
///     array([1, 2, 3, 6], dtype=bfloat16)
#[pyfunction]
#[pyo3(signature = (w, /, scales, biases=None, group_size=None, bits=None, mode="affine", global_scale=None, dtype=None, *, stream=None))]
#[allow(clippy::too_many_arguments, reason = "the parameters of MLX")]
fn dequantize(
    w: ArrayArg,
    scales: ArrayArg,
    biases: Option<ArrayArg>,
    group_size: Option<isize>,
    bits: Option<isize>,
    mode: &str,
    global_scale: Option<ArrayArg>,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let how = Quantization::from_options("dequantize", mode, group_size, bits)?;
    let q = Parts { words: w, scales, biases, global_scale }.with(how);
    Ok(PyArray::new(on(stream, || q.dequantize(dtype.map(|d| d.0)))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: to_fp8 from_fp8 quantize dequantize);
    products::register(m)
}
