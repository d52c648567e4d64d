//! Taking and putting by indices.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Sequence, integer};
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Array;

/// Takes elements at indices along an axis, or of the flattened array.
///
/// Negative indices count from the end. A Python integer is checked. An index in an array that is
/// out of bounds gives the first or the last element, whichever is nearer; in a process that
/// started with `ULTRAMARINE_VALIDATE=1` it is an IndexError when the result is evaluated.
///
/// Args:
///     a (array): Array of any shape.
///     indices (int | array): Integer, or array of integers of any shape.
///     axis (int | None): Axis to index; by default the array is flattened.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Elements, the axis replaced by the shape of `indices`.
///
/// Raises:
///     IndexError: If the axis, or an index that is a Python integer, is out of range.
///
/// Example:
///     >>> mx.take(mx.array([10, 20, 30]), mx.array([2, 0]))
///     array([30, 10], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, /, indices, axis=None, *, stream=None))]
fn take(
    a: ArrayArg,
    indices: &Bound<'_, PyAny>,
    axis: Option<isize>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let indices = match crate::convert::as_array(indices) {
        Some(i) => i.get().get(indices.py()),
        None => match integer(indices)? {
            Some(i) => {
                let n = match axis {
                    None => a.0.size(),
                    Some(axis) => {
                        a.0.shape()[ultramarine::shape::normalize_axis("take", axis, a.0.ndim())?]
                    }
                };
                if i >= n as isize || i < -(n as isize) {
                    return Err(ultramarine::Error::index(
                        "take",
                        format!(
                            "Index {i} is out of bounds for {n} elements. {}",
                            ultramarine::shape::IndexRange(n as usize)
                        ),
                    )
                    .into());
                }
                Array::scalar(i as i64)
            }
            None => indices.extract::<ArrayArg>()?.0,
        },
    };
    Ok(PyArray::new(on(stream, || a.0.take(&indices, axis))?))
}

/// Takes elements at indices that differ for each line along an axis, as `argsort` returns
/// them.
///
/// Indices out of bounds give the nearest element, as those of `take`.
///
/// Args:
///     a (array): Array of any shape.
///     indices (array): Integers of as many dimensions as `a`; other axes are broadcast.
///     axis (int | None): Axis to index; None for the flattened array.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Elements in the shape of the indices, broadcast.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If the numbers of dimensions differ.
///
/// Example:
///     >>> mx.take_along_axis(mx.array([[3, 1, 2]]), mx.array([[1, 2, 0]]), axis=1)
///     array([[1, 2, 3]], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, /, indices, axis=-1, *, stream=None),
    text_signature = "(a, /, indices, axis=-1, *, stream=None)")]
fn take_along_axis(
    a: ArrayArg,
    indices: ArrayArg,
    axis: Option<isize>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.take_along_axis(&indices.0, axis))?))
}

/// Takes a part of fixed sizes that begins at computed positions.
///
/// A part that would leave the array is moved inside.
///
/// Args:
///     a (array): Array of any shape.
///     start_indices (array): Integers: where the part begins along each of `axes`.
///     axes (Sequence[int]): Axes that `start_indices` is about; along others the part begins
///         at 0.
///     slice_size (Sequence[int]): Size of the part along every axis of `a`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Part of the array, of the shape `slice_size`.
///
/// Raises:
///     ValueError: If the numbers of starts and axes differ, or the part is larger than `a`.
///
/// Example:
///     >>> mx.slice(mx.arange(6), mx.array([2]), (0,), (3,))
///     array([2, 3, 4], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, start_indices, axes, slice_size, *, stream=None))]
fn slice(
    a: ArrayArg,
    start_indices: ArrayArg,
    axes: Sequence,
    slice_size: Sequence,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let size = Ints(slice_size.0).shape("slice")?;
    Ok(PyArray::new(on(stream, || a.0.slice_at(&start_indices.0, &axes.0, &size))?))
}

/// Replaces the part of an array that begins at computed positions.
///
/// A part that would leave the array is moved inside. Where nothing else needs `a` once the result is
/// evaluated, as in `cache = mx.slice_update(cache, ...)`, only the part is written.
///
/// Args:
///     a (array): Array of any shape.
///     update (array): New elements, converted to the dtype of `a`.
///     start_indices (array): Integers: where the part begins along each of `axes`.
///     axes (Sequence[int]): Axes that `start_indices` is about; along others the part begins
///         at 0.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Copy of `a` with the part replaced.
///
/// Raises:
///     ValueError: If the numbers of starts and axes differ, or the part is larger than `a`.
///
/// Example:
///     >>> mx.slice_update(mx.arange(6), mx.array([0, 0]), mx.array([2]), (0,))
///     array([0, 1, 0, 0, 4, 5], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, update, start_indices, axes, *, stream=None))]
fn slice_update(
    a: ArrayArg,
    update: ArrayArg,
    start_indices: ArrayArg,
    axes: Sequence,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let made = on(stream, || a.0.slice_update_at(&update.0, &start_indices.0, &axes.0));
    Ok(PyArray::new(made?))
}

/// Replaces elements at indices that differ for each line along an axis.
///
/// Values for indices out of bounds are dropped; in a process that started with
/// `ULTRAMARINE_VALIDATE=1` they are an IndexError when the result is evaluated.
///
/// Args:
///     a (array): Array of any shape.
///     indices (array): Integers of as many dimensions as `a`; other axes are broadcast.
///     values (array): New elements, broadcast to the shape of the indices.
///     axis (int | None): Axis to index; None for the flattened array.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Copy of `a` with the elements replaced.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If the numbers of dimensions differ.
///
/// Example:
///     >>> mx.put_along_axis(mx.zeros((2, 2)), mx.array([[1], [0]]), mx.array(5.0), axis=1)
///     array([[0, 5],
///            [5, 0]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, /, indices, values, axis=None, *, stream=None))]
fn put_along_axis(
    a: ArrayArg,
    indices: ArrayArg,
    values: ArrayArg,
    axis: Option<isize>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.put_along_axis(&indices.0, &values.0, axis))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: take take_along_axis put_along_axis slice slice_update);
    Ok(())
}
