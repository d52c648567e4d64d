//! Elementwise functions of one array and of two.

mod binary;
pub(super) mod unary;

use pyo3::prelude::*;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    unary::register(m)?;
    binary::register(m)
}
