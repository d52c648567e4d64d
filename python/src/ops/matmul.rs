//! Matrix products and their relatives.

use crate::array::PyArray;
use crate::convert::{ArrayArg, integer, integers, operand};
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::Array;

macro_rules! products {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (a, b, /, *, stream=None))]
        fn $name(a: ArrayArg, b: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || a.0.$name(&b.0))?))
        }
        )*

        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)* kron addmm tensordot vecdot einsum einsum_path);
            Ok(())
        }
    };
}

products! {
    /// The matrix product of the last two axes, broadcast over the others. Vectors are
    /// rows on the left and columns on the right.
    matmul;
    /// The products of the last axes' vectors, each with each.
    inner;
    /// The products of all elements of one with all elements of the other.
    outer;
}

/// The Kronecker product.
#[pyfunction]
#[pyo3(signature = (a, b, *, stream=None))]
fn kron(a: ArrayArg, b: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.kron(&b.0))?))
}

/// alpha * (a @ b) + beta * c.
#[pyfunction]
#[pyo3(signature = (c, a, b, /, alpha=1.0, beta=1.0, *, stream=None))]
fn addmm(
    c: ArrayArg,
    a: ArrayArg,
    b: ArrayArg,
    alpha: f64,
    beta: f64,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || ultramarine::addmm(&c.0, &a.0, &b.0, alpha, beta))?))
}

/// Sums of products over axes: over the last `axes` of a and the first of b, or over the
/// axes in two lists.
#[pyfunction]
#[pyo3(signature = (a, b, /, axes=None, *, stream=None),
       text_signature = "(a, b, /, axes=2, *, stream=None)")]
fn tensordot(
    a: ArrayArg,
    b: ArrayArg,
    axes: Option<&Bound<'_, PyAny>>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let Some(axes) = axes else {
        return Ok(PyArray::new(on(stream, || a.0.tensordot(&b.0, 2))?));
    };
    if let Some(n) = integer(axes)? {
        return Ok(PyArray::new(on(stream, || a.0.tensordot(&b.0, n))?));
    }
    let lists = axes.try_iter()?.map(|list| integers(&list?)).collect::<PyResult<Vec<_>>>()?;
    let [left, right] = &lists[..] else {
        return Err(value("[tensordot] axes must be a list of two lists."));
    };
    Ok(PyArray::new(on(stream, || a.0.tensordot_axes(&b.0, left, right))?))
}

/// The sum of products along an axis, which is broadcast over the others; the left
/// operand is conjugated.
#[pyfunction]
#[pyo3(signature = (a, b, /, *, axis=-1, stream=None))]
fn vecdot(a: ArrayArg, b: ArrayArg, axis: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.vecdot(&b.0, axis))?))
}

fn operands_of(operands: &Bound<'_, PyTuple>) -> Res<Vec<Array>> {
    operands.iter().map(|o| operand(&o, None)).collect()
}

/// The sum of products that the subscripts name: "ij,jk->ik" is the matrix product. Letters
/// that are not in the result are summed over, one that an operand has twice takes its diagonal, "..." are
/// axes without a letter. Without "->" the result has what is named once, in alphabetical order.
#[pyfunction]
#[pyo3(signature = (subscripts, *operands, stream=None))]
fn einsum(
    subscripts: &str,
    operands: &Bound<'_, PyTuple>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let operands = operands_of(operands)?;
    Ok(PyArray::new(on(stream, || ultramarine::einsum(subscripts, &operands))?))
}

/// The order in which einsum contracts these operands, as positions in the list of those that are left, and a
/// text about what that costs.
#[pyfunction]
#[pyo3(signature = (subscripts, *operands))]
fn einsum_path<'py>(
    subscripts: &str,
    operands: &Bound<'py, PyTuple>,
) -> Res<(Vec<Bound<'py, PyTuple>>, String)> {
    let (path, text) = ultramarine::einsum_path(subscripts, &operands_of(operands)?)?;
    let steps = path.iter().map(|step| PyTuple::new(operands.py(), step));
    Ok((steps.collect::<PyResult<_>>()?, text))
}
