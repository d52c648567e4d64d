//! Evaluation of trees, and its order.

use crate::array::PyArray;
use crate::convert::{Arrays, as_array, exact};
use crate::error::{Res, type_, type_name, value};
use crate::tree;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use ultramarine::Array;

/// Computes the arrays of trees and waits for them.
///
/// Args:
///     *args (Any): Arrays, and lists, tuples and dictionaries of them; other leaves are left
///         alone.
///
/// Raises:
///     RuntimeError: If an operation fails.
///
/// Example:
///     >>> x = mx.ones(2) + 1
///     >>> mx.eval(x)
#[pyfunction]
#[pyo3(signature = (*args))]
fn eval(py: Python<'_>, args: &Bound<'_, PyTuple>) -> Res<()> {
    if args.len() == 1
        && let Some(array) = exact(&args.get_item(0)?)
    {
        return array.get().evaluate(py);
    }
    let mut all = Vec::new();
    tree::arrays_among(args, &mut all)?;
    Ok(py.detach(|| ultramarine::eval(&all))?)
}

/// Begins to compute the arrays of trees, without waiting for them.
///
/// Args:
///     *args (Any): Arrays, and lists, tuples and dictionaries of them; other leaves are left
///         alone.
///
/// Example:
///     >>> x = mx.ones(2) + 1
///     >>> mx.async_eval(x)
///     >>> x
///     array([2, 2], dtype=float32)
#[pyfunction]
#[pyo3(signature = (*args))]
fn async_eval(py: Python<'_>, args: &Bound<'_, PyTuple>) -> Res<()> {
    let mut all = Vec::new();
    tree::arrays_among(args, &mut all)?;
    Ok(py.detach(|| ultramarine::async_eval(&all))?)
}

/// Returns the same arrays, each of which is computed only after others.
///
/// Derivatives flow through to `inputs`.
///
/// Args:
///     inputs (array | Sequence[array]): Array, or list or tuple of arrays.
///     dependencies (array | Sequence[array]): Array, or list or tuple of arrays, that are
///         computed first.
///
/// Returns:
///     Any: Array, or list of arrays, with the values of `inputs`.
///
/// Example:
///     >>> x, log = mx.array(1.0), mx.array(2.0) + 1
///     >>> mx.depends(x, log)
///     array(1, dtype=float32)
#[pyfunction]
#[pyo3(signature = (inputs, dependencies))]
fn depends<'py>(
    inputs: &Bound<'py, PyAny>,
    dependencies: &Bound<'py, PyAny>,
) -> Res<Bound<'py, PyAny>> {
    let py = inputs.py();
    let several = |given: &Bound<'py, PyAny>| -> Res<Vec<Array>> {
        if let Some(a) = as_array(given) {
            return Ok(vec![a.get().get(py)]);
        }
        match given.extract::<Arrays>() {
            Ok(arrays) if !given.is_instance_of::<PyDict>() => Ok(arrays.0),
            _ => Err(type_(format!(
                "depends: expected an array or a sequence of arrays, got {}",
                type_name(given)
            ))),
        }
    };
    let made = ultramarine::depends(&several(inputs)?, &several(dependencies)?);
    if as_array(inputs).is_some() {
        let [one] = <[Array; 1]>::try_from(made).map_err(|_| value("[depends] One array."))?;
        return Ok(Bound::new(py, PyArray::new(one))?.into_any());
    }
    Ok(crate::ops::list(made).into_pyobject(py)?.into_any())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: eval async_eval depends);
    Ok(())
}
