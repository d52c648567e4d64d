//! Identity matrices and triangles.

use super::or_float;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::{Res, value};
use crate::stream::{DeviceArg, StreamArg, on, placed_on};
use pyo3::prelude::*;
use ultramarine::Array;

/// Rows and columns of a matrix.
fn sides(op: &str, n: isize, m: Option<isize>) -> Res<(usize, usize)> {
    match (usize::try_from(n), usize::try_from(m.unwrap_or(n))) {
        (Ok(n), Ok(m)) => Ok((n, m)),
        _ => Err(value(format!("[{op}] N and M must be positive integers. Pass 1 or more."))),
    }
}

/// Creates a matrix with ones on a diagonal and zeros elsewhere.
///
/// Args:
///     n (int): Number of rows.
///     m (int | None): Number of columns; by default `n`.
///     k (int): Diagonal: 0 for the main one, above it positive, below it negative.
///     dtype (Dtype | None): Dtype of the result; float32 by default.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Matrix of the shape (n, m).
///
/// Raises:
///     ValueError: If a size is negative.
///
/// Example:
///     >>> mx.eye(2, 3)
///     array([[1, 0, 0],
///            [0, 1, 0]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (n, m=None, k=0, dtype=None, *, stream=None, device=None),
       text_signature = "(n, m=None, k=0, dtype=None, *, stream=None, device=None)")]
fn eye(
    n: isize,
    m: Option<isize>,
    k: isize,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let (n, m) = sides("eye", n, m)?;
    Ok(PyArray::new(on(placed_on(stream, device)?, || Array::eye(n, m, k, or_float(dtype)))?))
}

/// Creates an identity matrix: `eye` of one size.
///
/// Args:
///     n (int): Number of rows and columns.
///     dtype (Dtype | None): Dtype of the result; float32 by default.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Matrix of the shape (n, n).
///
/// Raises:
///     ValueError: If the size is negative.
///
/// Example:
///     >>> mx.identity(2)
///     array([[1, 0],
///            [0, 1]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (n, dtype=None, *, stream=None, device=None),
       text_signature = "(n, dtype=None, *, stream=None, device=None)")]
fn identity(
    n: isize,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    eye(n, None, 0, dtype, stream, device)
}

/// Creates a matrix with ones on and below a diagonal and zeros above it.
///
/// Args:
///     n (int): Number of rows.
///     m (int | None): Number of columns; by default `n`.
///     k (int): Diagonal: 0 for the main one, above it positive, below it negative.
///     dtype (Dtype | None): Dtype of the result; float32 by default.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Matrix of the shape (n, m).
///
/// Example:
///     >>> mx.tri(2, 3)
///     array([[1, 0, 0],
///            [1, 1, 0]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (n, m=None, k=0, dtype=None, *, stream=None, device=None))]
fn tri(
    n: isize,
    m: Option<isize>,
    k: isize,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    // Fewer than none are none, as in mlx; `eye` refuses them.
    let (n, m) = (n.max(0) as usize, m.unwrap_or(n).max(0) as usize);
    Ok(PyArray::new(on(placed_on(stream, device)?, || Array::tri(n, m, k, or_float(dtype)))?))
}

/// Replaces the elements above a diagonal of matrices by zeros.
///
/// Args:
///     x (array): Matrices in the last two axes.
///     k (int): Diagonal: 0 for the main one, above it positive, below it negative.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Lower triangles, in shape and dtype of `x`.
///
/// Raises:
///     ValueError: If there are less than two dimensions.
///
/// Example:
///     >>> mx.tril(mx.ones((2, 3)))
///     array([[1, 0, 0],
///            [1, 1, 0]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (x, k=0, *, stream=None))]
fn tril(x: ArrayArg, k: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || x.0.tril(k))?))
}

/// Replaces the elements below a diagonal of matrices by zeros.
///
/// Args:
///     x (array): Matrices in the last two axes.
///     k (int): Diagonal: 0 for the main one, above it positive, below it negative.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Upper triangles, in shape and dtype of `x`.
///
/// Raises:
///     ValueError: If there are less than two dimensions.
///
/// Example:
///     >>> mx.triu(mx.ones((2, 3)))
///     array([[1, 1, 1],
///            [0, 1, 1]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (x, k=0, *, stream=None))]
fn triu(x: ArrayArg, k: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || x.0.triu(k))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: eye identity tri tril triu);
    Ok(())
}
