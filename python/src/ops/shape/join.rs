//! Joining and splitting along an axis.

use super::made;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Arrays, integer, integers};
use crate::error::Res;
use crate::ops::list;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Splits an array along an axis.
///
/// Args:
///     a (array): Array of one dimension at least.
///     indices_or_sections (int | Sequence[int] | array): Number of equal parts, or the indices
///         before which to cut.
///     axis (int): Axis to cut.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     list[array]: The parts.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If the parts would not be equal.
///
/// Example:
///     >>> mx.split(mx.arange(5), [1, 3])
///     [array([0], dtype=int32), array([1, 2], dtype=int32), array([3, 4], dtype=int32)]
#[pyfunction]
#[pyo3(signature = (a, /, indices_or_sections, axis=0, *, stream=None))]
fn split(
    a: ArrayArg,
    indices_or_sections: &Bound<'_, PyAny>,
    axis: isize,
    stream: Option<StreamArg>,
) -> Res<Vec<PyArray>> {
    let sequence = indices_or_sections.is_instance_of::<PyTuple>()
        || indices_or_sections.is_instance_of::<pyo3::types::PyList>();
    let sections = if sequence { None } else { integer(indices_or_sections)? };
    // Arrays of one index are sequences, those without dimensions integers.
    let sections = sections.filter(|_| {
        crate::convert::as_array(indices_or_sections)
            .is_none_or(|a| a.get().get(indices_or_sections.py()).ndim() == 0)
    });
    let parts = match sections {
        Some(n) => {
            // None, and fewer, is what the function itself refuses.
            let n = usize::try_from(n).unwrap_or(0);
            on(stream, || a.0.split(n, axis))?
        }
        None => {
            let at = integers(indices_or_sections)?;
            on(stream, || a.0.split_at(&at, axis))?
        }
    };
    Ok(list(parts))
}

#[pymethods]
impl PyArray {
    /// Splits the array along an axis; see the function `split`.
    ///
    /// Args:
    ///     indices_or_sections (int | Sequence[int] | array): Number of equal parts, or the indices
    ///         before which to cut.
    ///     axis (int): Axis to cut.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     list[array]: The parts.
    ///
    /// Raises:
    ///     IndexError: If the axis is out of range.
    ///     ValueError: If the parts would not be equal.
    ///
    /// Example:
    ///     >>> mx.arange(6).split(3)
    ///     [array([0, 1], dtype=int32), array([2, 3], dtype=int32), array([4, 5], dtype=int32)]
    #[pyo3(signature = (indices_or_sections, axis=0, *, stream=None))]
    fn split(
        &self,
        py: Python<'_>,
        indices_or_sections: &Bound<'_, PyAny>,
        axis: isize,
        stream: Option<StreamArg>,
    ) -> Res<Vec<PyArray>> {
        split(ArrayArg(self.get(py)), indices_or_sections, axis, stream)
    }
}

/// Splits an array into the slices along an axis, without that axis.
///
/// Args:
///     x (array): Array of one dimension at least.
///     axis (int): Axis to split.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     tuple[array, ...]: The slices.
///
/// Raises:
///     IndexError: If the axis is out of range.
///
/// Example:
///     >>> mx.unstack(mx.array([[1, 2], [3, 4]]))
///     (array([1, 2], dtype=int32), array([3, 4], dtype=int32))
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=0, stream=None))]
fn unstack<'py>(
    py: Python<'py>,
    x: ArrayArg,
    axis: isize,
    stream: Option<StreamArg>,
) -> Res<Bound<'py, PyTuple>> {
    Ok(PyTuple::new(py, list(on(stream, || x.0.unstack(axis))?))?)
}

/// Joins arrays along an axis that they have. Dtypes are promoted.
///
/// Args:
///     arrays (Sequence[array]): Arrays of the same shape but for the axis.
///     axis (int | None): Axis to join along; None for the flattened arrays.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Joined array.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If there are no arrays, or their shapes do not fit.
///
/// Example:
///     >>> mx.concatenate([mx.array([1, 2]), mx.array([3])])
///     array([1, 2, 3], dtype=int32)
#[pyfunction]
#[pyo3(signature = (arrays, axis=0, *, stream=None))]
fn concatenate(arrays: Arrays, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || ultramarine::concatenate(&arrays.0, axis))
}

/// Joins arrays of one shape along a new axis. Dtypes are promoted.
///
/// Args:
///     arrays (Sequence[array]): Arrays of the same shape.
///     axis (int): Position of the new axis in the result.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Joined array, with one dimension more.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If there are no arrays, or their shapes differ.
///
/// Example:
///     >>> mx.stack([mx.array([1, 2]), mx.array([3, 4])], axis=1)
///     array([[1, 3],
///            [2, 4]], dtype=int32)
#[pyfunction]
#[pyo3(signature = (arrays, axis=0, *, stream=None))]
fn stack(arrays: Arrays, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || ultramarine::stack(&arrays.0, axis.unwrap_or(0)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: split unstack concatenate stack);
    Ok(())
}
