//! Functions over arrays, by subject. Each file has tables; a row is a function of the
//! module, often a method too.

mod binary;
mod conv;
mod create;
mod linear;
mod pick;
mod reduce;
pub mod shape;
mod signal;
mod sort;
mod unary;

use crate::array::PyArray;
use pyo3::prelude::*;
use ultramarine::Array;

/// A list of arrays as Python objects.
pub fn list(arrays: Vec<Array>) -> Vec<PyArray> {
    arrays.into_iter().map(PyArray::new).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    unary::register(m)?;
    binary::register(m)?;
    create::register(m)?;
    reduce::register(m)?;
    sort::register(m)?;
    shape::register(m)?;
    pick::register(m)?;
    linear::register(m)?;
    conv::register(m)?;
    signal::register(m)
}
