//! Functions over arrays, by family. Each file has tables; a row is a function of the module,
//! often a method too.

mod arg_reduce;
mod conv;
mod copy;
mod create;
mod elementwise;
pub mod fft;
mod grouped;
mod index;
pub mod linalg;
mod matmul;
pub mod nn;
mod quantized;
pub mod random;
mod reduce;
mod scan;
mod select;
mod shape;
mod sort;

use crate::array::PyArray;
use pyo3::prelude::*;
use ultramarine::Array;

/// A list of arrays as Python objects.
pub fn list(arrays: Vec<Array>) -> Vec<PyArray> {
    arrays.into_iter().map(PyArray::new).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    elementwise::register(m)?;
    copy::register(m)?;
    select::register(m)?;
    create::register(m)?;
    reduce::register(m)?;
    arg_reduce::register(m)?;
    scan::register(m)?;
    sort::register(m)?;
    shape::register(m)?;
    index::register(m)?;
    matmul::register(m)?;
    grouped::register(m)?;
    quantized::register(m)?;
    nn::register(m)?;
    conv::register(m)?;
    random::register(m)?;
    fft::register(m)?;
    linalg::register(m)
}
