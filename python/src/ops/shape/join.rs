//! Joining and splitting along an axis.

use super::made;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Arrays, integer, integers};
use crate::error::Res;
use crate::ops::list;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, Result};

/// The array cut along an axis: into equal parts, or before the given indices. A list.
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
    /// The array cut along an axis: into equal parts, or before the given indices.
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

/// The slices along an axis, without that axis. A tuple.
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

/// Arrays joined along an axis that they have (`None`: flattened).
#[pyfunction]
#[pyo3(signature = (arrays, axis=0, *, stream=None))]
fn concatenate(arrays: Arrays, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || match axis {
        Some(axis) => ultramarine::concatenate(&arrays.0, axis),
        None => {
            let flat: Result<Vec<Array>> = arrays.0.iter().map(|a| a.flatten(0, -1)).collect();
            ultramarine::concatenate(&flat?, 0)
        }
    })
}

/// Arrays of one shape joined along a new axis.
#[pyfunction]
#[pyo3(signature = (arrays, axis=0, *, stream=None))]
fn stack(arrays: Arrays, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || ultramarine::stack(&arrays.0, axis.unwrap_or(0)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: split unstack concatenate stack);
    Ok(())
}
