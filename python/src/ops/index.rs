//! Taking and putting by indices.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Sequence, integer};
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Array;

/// The elements at `indices` along an axis, or of the flattened array.
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
                        format!("Index {i} is out of bounds for {n} elements."),
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

/// The elements at `indices` along an axis, whose other axes match the array's.
#[pyfunction]
#[pyo3(signature = (a, /, indices, axis=-1, *, stream=None))]
fn take_along_axis(
    a: ArrayArg,
    indices: ArrayArg,
    axis: Option<isize>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.take_along_axis(&indices.0, axis))?))
}

/// The part of the given sizes that begins at computed places: `start_indices` has one for
/// each of `axes`.
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

/// The array with `update` put where `slice` would read.
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

/// The array with `values` put at `indices` along an axis, whose other axes match.
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
