//! Selection: `where`, `clip`, and taking and putting by index arrays.

use super::shape::Sequence;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Operand, integer, operand, operands};
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Array;

/// Elements of `x` where the condition holds, of `y` elsewhere.
#[pyfunction(name = "where")]
#[pyo3(signature = (condition, x, y, /, *, stream=None))]
fn where_(
    condition: Operand,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (x, y) = operands(x, y)?;
    Ok(PyArray::new(on(stream, || ultramarine::where_(&condition.0, &x, &y))?))
}

/// The elements held between two limits, of which one may be `None`.
#[pyfunction]
#[pyo3(signature = (a, /, a_min, a_max, *, stream=None))]
fn clip(
    a: ArrayArg,
    a_min: Option<&Bound<'_, PyAny>>,
    a_max: Option<&Bound<'_, PyAny>>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    if a_min.is_none() && a_max.is_none() {
        return Err(value("At most one of a_min and a_max may be None"));
    }
    let limit = |v: Option<&Bound<'_, PyAny>>| -> Res<Option<Array>> {
        v.map(|v| operand(v, Some(a.0.dtype()))).transpose()
    };
    let (low, high) = (limit(a_min)?, limit(a_max)?);
    Ok(PyArray::new(on(stream, || a.0.clip(low.as_ref(), high.as_ref()))?))
}

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
    crate::functions!(m: where_ clip take take_along_axis put_along_axis slice slice_update);
    Ok(())
}
