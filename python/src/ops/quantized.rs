//! Numbers of few bits.

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Dtype;

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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: to_fp8 from_fp8);
    Ok(())
}
