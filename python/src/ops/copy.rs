//! Casts, views of the same bytes, and row-major copies.

use super::elementwise::unary::apply;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

/// The array converted to a dtype.
#[pyfunction]
#[pyo3(signature = (a, dtype, /, *, stream=None))]
fn astype(a: ArrayArg, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.try_astype(*dtype))?))
}

/// The same bytes as elements of another dtype; the last axis shrinks or grows where
/// the sizes differ.
#[pyfunction]
#[pyo3(signature = (a, dtype, stream=None))]
fn view(a: &Bound<'_, PyAny>, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
    apply(a, stream, |a| a.view(*dtype))
}

/// The array with its elements in row-major order in memory. (`allow_col_major` is
/// accepted and has no effect.)
#[pyfunction]
#[pyo3(signature = (a, /, allow_col_major=false, *, stream=None))]
fn contiguous(a: ArrayArg, allow_col_major: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    let _ = allow_col_major;
    Ok(PyArray::new(on(stream, || a.0.contiguous())))
}

#[pymethods]
impl PyArray {
    /// The array converted to a dtype.
    #[pyo3(signature = (dtype, stream=None))]
    fn astype(slf: &Bound<'_, Self>, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
        apply(slf, stream, |a| a.try_astype(*dtype))
    }

    /// The same bytes as elements of another dtype.
    #[pyo3(signature = (dtype, *, stream=None))]
    fn view(slf: &Bound<'_, Self>, dtype: DtypeArg, stream: Option<StreamArg>) -> Res<PyArray> {
        view(slf, dtype, stream)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: astype view contiguous);
    Ok(())
}
