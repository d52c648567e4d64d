//! Casts, views of the same bytes, and row-major copies.

use super::elementwise::unary::apply;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

/// Converts an array to another dtype.
///
/// Floats lose their fraction when they become integers. The array is not copied if it has that
/// dtype.
///
/// Args:
///     a (array): Array of any shape.
///     dtype (Dtype): Dtype of the result.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Elements in the new dtype.
///
/// Example:
///     >>> mx.astype(mx.array([1.5, -1.5]), mx.int32)
///     array([1, -1], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, dtype, /, *, stream=None))]
fn astype(a: ArrayArg, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.try_astype(*dtype))?))
}

/// Reads the bytes of an array as elements of another dtype.
///
/// The last axis shrinks or grows where the sizes of the dtypes differ.
///
/// Args:
///     a (ArrayLike): Array of any shape; without dimensions only if the sizes are the same.
///     dtype (Dtype): Dtype to read the bytes in.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: The same bytes in row-major order.
///
/// Raises:
///     ValueError: If the bytes of the last axis are no multiple of the new size.
///
/// Example:
///     >>> mx.view(mx.array([1.0]), mx.int32)
///     array([1065353216], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, dtype, stream=None))]
fn view(a: &Bound<'_, PyAny>, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
    apply(a, stream, |a| a.view(*dtype))
}

/// Lays the elements out in row-major order in memory, with a copy only where it is needed.
///
/// Args:
///     a (array): Array of any shape.
///     allow_col_major (bool): Accepted for compatibility with MLX, without effect.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: The same elements.
///
/// Example:
///     >>> mx.contiguous(mx.ones((2, 3)).T).shape
///     (3, 2)
#[pyfunction]
#[pyo3(signature = (a, /, allow_col_major=false, *, stream=None))]
fn contiguous(a: ArrayArg, allow_col_major: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    let _ = allow_col_major;
    Ok(PyArray::new(on(stream, || a.0.contiguous())))
}

#[pymethods]
impl PyArray {
    /// Converts the array to another dtype; see the function `astype`.
    ///
    /// Args:
    ///     dtype (Dtype): Dtype of the result.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Elements in the new dtype.
    ///
    /// Example:
    ///     >>> mx.array([1.7, -1.7]).astype(mx.int32)
    ///     array([1, -1], dtype=int32)
    #[pyo3(signature = (dtype, stream=None))]
    fn astype(slf: &Bound<'_, Self>, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
        apply(slf, stream, |a| a.try_astype(*dtype))
    }

    /// Reads the bytes of the array as elements of another dtype; see the function `view`.
    ///
    /// Args:
    ///     dtype (Dtype): Dtype to read the bytes in.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: The same bytes in row-major order.
    ///
    /// Raises:
    ///     ValueError: If the bytes of the last axis are no multiple of the new size.
    ///
    /// Example:
    ///     >>> mx.array([1.0]).view(mx.int32)
    ///     array([1065353216], dtype=int32)
    #[pyo3(signature = (dtype, *, stream=None))]
    fn view(slf: &Bound<'_, Self>, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
        view(slf, dtype, stream)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: astype view contiguous);
    Ok(())
}
