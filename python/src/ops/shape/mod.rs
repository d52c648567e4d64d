//! Functions that rearrange elements: axes, joining, splitting, repetition.

mod axes;
mod expand;
mod join;

use crate::array::PyArray;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::{Array, Result};

/// The result of an operation on a stream, as a Python object.
pub fn made(stream: Option<StreamArg>, f: impl FnOnce() -> Result<Array>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, f)?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    axes::register(m)?;
    join::register(m)?;
    expand::register(m)
}
