//! Evenly spaced numbers, and grids of them.

use super::or_float;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Number, integer};
use crate::dtype::DtypeArg;
use crate::error::{Res, type_, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, Dtype};

/// Numbers from `start` (0 unless a stop is given, too) in steps of `step` to before
/// `stop`. Integers give int32 (int64 where that is too small), floats float32.
#[pyfunction]
#[pyo3(signature = (start=None, stop=None, step=None, dtype=None, *, stream=None))]
fn arange(
    start: Option<&Bound<'_, PyAny>>,
    stop: Option<&Bound<'_, PyAny>>,
    step: Option<&Bound<'_, PyAny>>,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (start, stop) = match (start, stop) {
        (Some(start), Some(stop)) => (Some(start), stop),
        (Some(stop), None) | (None, Some(stop)) => (None, stop),
        (None, None) => return Err(type_("arange: a stop is needed")),
    };
    let mut own = Dtype::Int32;
    let mut number = |argument: Option<&Bound<'_, PyAny>>, default: f64| -> Res<f64> {
        let Some(object) = argument else { return Ok(default) };
        let (v, dtype) = match Number::of(object)? {
            Some(Number::Bool(_)) => return Err(value("bool not supported for arange.")),
            Some(Number::Int(v)) => (v as f64, Number::Int(v).dtype()),
            Some(Number::Float(v)) => (v, Dtype::Float32),
            Some(_) => return Err(type_("arange: expected real numbers")),
            None => match integer(object)? {
                Some(v) => (v as f64, Number::Int(v as i64).dtype()),
                None => (object.extract::<f64>()?, Dtype::Float32),
            },
        };
        own = own.promote(dtype);
        Ok(v)
    };
    let (start, stop, step) = (number(start, 0.0)?, number(Some(stop), 0.0)?, number(step, 1.0)?);
    let dtype = dtype.map_or(own, |d| *d);
    Ok(PyArray::new(on(stream, || Array::arange(start, stop, step, dtype))?))
}

/// `num` numbers evenly spaced from `start` to `stop`, the latter included if `endpoint`.
#[pyfunction]
#[pyo3(signature = (start, stop, num=50, endpoint=true, dtype=None, stream=None),
       text_signature = "(start, stop, num=50, endpoint=True, dtype=None, stream=None)")]
fn linspace(
    start: f64,
    stop: f64,
    num: Option<isize>,
    endpoint: bool,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let num = num.unwrap_or(50);
    let count = usize::try_from(num).map_err(|_| {
        value(format!("[linspace] number of samples, {num}, must be non-negative."))
    })?;
    let dtype = or_float(dtype);
    Ok(PyArray::new(on(stream, || Array::linspace(start, stop, count, endpoint, dtype))?))
}

/// Coordinate arrays of the grid that vectors span.
#[pyfunction]
#[pyo3(signature = (*arrays, sparse=false, indexing="xy", stream=None))]
fn meshgrid<'py>(
    arrays: Vec<ArrayArg>,
    sparse: Option<bool>,
    indexing: Option<&str>,
    stream: Option<StreamArg>,
    py: Python<'py>,
) -> Res<Bound<'py, PyTuple>> {
    let arrays: Vec<Array> = arrays.into_iter().map(|a| a.0).collect();
    let made = on(stream, || {
        ultramarine::meshgrid(&arrays, sparse.unwrap_or(false), indexing.unwrap_or("xy"))
    })?;
    Ok(PyTuple::new(py, crate::ops::list(made))?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: arange linspace meshgrid);
    Ok(())
}
