//! Identity matrices and triangles.

use super::or_float;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::dtype::DtypeArg;
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::Array;

/// Rows and columns of a matrix.
fn sides(op: &str, n: isize, m: Option<isize>) -> Res<(usize, usize)> {
    match (usize::try_from(n), usize::try_from(m.unwrap_or(n))) {
        (Ok(n), Ok(m)) => Ok((n, m)),
        _ => Err(value(format!("[{op}] N and M must be positive integers."))),
    }
}

/// A matrix with ones on the `k`-th diagonal and zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, k=0, dtype=None, *, stream=None),
       text_signature = "(n, m=None, k=0, dtype=None, *, stream=None)")]
fn eye(
    n: isize,
    m: Option<isize>,
    k: isize,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (n, m) = sides("eye", n, m)?;
    Ok(PyArray::new(on(stream, || Array::eye(n, m, k, or_float(dtype)))?))
}

/// The identity matrix of size `n`.
#[pyfunction]
#[pyo3(signature = (n, dtype=None, *, stream=None),
       text_signature = "(n, dtype=None, *, stream=None)")]
fn identity(n: isize, dtype: Option<DtypeArg>, stream: Option<StreamArg>) -> Res<PyArray> {
    eye(n, None, 0, dtype, stream)
}

/// A matrix with ones on and below the `k`-th diagonal and zeros above.
#[pyfunction]
#[pyo3(signature = (n, m=None, k=0, dtype=None, *, stream=None))]
fn tri(
    n: isize,
    m: Option<isize>,
    k: isize,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    // Fewer than none are none, as in mlx; `eye` refuses them.
    let (n, m) = (n.max(0) as usize, m.unwrap_or(n).max(0) as usize);
    Ok(PyArray::new(on(stream, || Array::tri(n, m, k, or_float(dtype)))?))
}

/// The array with zeros above the `k`-th diagonal of its last two axes.
#[pyfunction]
#[pyo3(signature = (x, k=0, *, stream=None))]
fn tril(x: ArrayArg, k: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || x.0.tril(k))?))
}

/// The array with zeros below the `k`-th diagonal of its last two axes.
#[pyfunction]
#[pyo3(signature = (x, k=0, *, stream=None))]
fn triu(x: ArrayArg, k: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || x.0.triu(k))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: eye identity tri tril triu);
    Ok(())
}
