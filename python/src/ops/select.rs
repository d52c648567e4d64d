//! Selection by conditions and limits.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Operand, operand, operands};
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: where_ clip);
    Ok(())
}
