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
    /// Multiplies matrices in the last two axes; other axes are broadcast.
    ///
    /// A vector on the left is a row and one on the right a column, whose axis the result lacks.
    ///
    /// Args:
    ///     a (array): Array of the shape (..., m, k) or (k,), of floats or complex numbers.
    ///     b (array): Array of the shape (..., k, n) or (k,).
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array of the shape (..., m, n), in the promoted dtype.
    ///
    /// Raises:
    ///     ValueError: If an array has no dimensions, inner sizes differ, batches cannot be
    ///         broadcast, or both are integers.
    ///
    /// Example:
    ///     >>> mx.matmul(mx.array([[1.0, 2.0]]), mx.array([[3.0], [4.0]]))
    ///     array([[11]], dtype=float32)
    matmul;
    /// Computes the inner products of the vectors along the last axes, each of `a` with each of
    /// `b`.
    ///
    /// Args:
    ///     a (array): Array of the shape (..., k), or without dimensions: then it is a factor.
    ///     b (array): Array of the shape (..., k), or without dimensions.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Array with the other axes of `a`, then those of `b`.
    ///
    /// Raises:
    ///     ValueError: If the last sizes differ, or both are integers.
    ///
    /// Example:
    ///     >>> mx.inner(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))
    ///     array(11, dtype=float32)
    inner;
    /// Multiplies all elements of one array with all elements of another.
    ///
    /// Args:
    ///     a (array): Array that is flattened: the rows.
    ///     b (array): Array that is flattened: the columns.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Matrix of the shape (a.size, b.size).
    ///
    /// Example:
    ///     >>> mx.outer(mx.array([1, 2]), mx.array([3, 4]))
    ///     array([[3, 4],
    ///            [6, 8]], dtype=int32)
    outer;
}

/// Computes the Kronecker product: blocks of `b`, scaled by each element of `a`.
///
/// Args:
///     a (array): Array of any shape.
///     b (array): Array of any shape; the one of fewer dimensions gets axes of size 1 in front.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array whose sizes are products of those of `a` and `b`.
///
/// Example:
///     >>> mx.kron(mx.array([1, 2]), mx.array([1, 1]))
///     array([1, 1, 2, 2], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, b, *, stream=None))]
fn kron(a: ArrayArg, b: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.kron(&b.0))?))
}

/// Computes `alpha * (a @ b) + beta * c` as one operation.
///
/// Args:
///     c (array): Array that is broadcast to the shape of the product.
///     a (array): Left operand, as in `matmul`.
///     b (array): Right operand, as in `matmul`.
///     alpha (float): Factor of the product.
///     beta (float): Factor of `c`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Sum, in the promoted dtype.
///
/// Raises:
///     ValueError: If the shapes do not fit, or all are integers.
///
/// Example:
///     >>> mx.addmm(mx.array([1.0]), mx.array([[1.0, 2.0]]), mx.array([[3.0], [4.0]]))
///     array([[12]], dtype=float32)
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

/// Multiplies two arrays and sums over axes of both.
///
/// Args:
///     a (array): Left operand.
///     b (array): Right operand.
///     axes (int | Sequence[Sequence[int]]): Number of axes, the last of `a` and the first of
///         `b`; or two lists of axes, for `a` and for `b`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array with the other axes of `a`, then those of `b`.
///
/// Raises:
///     ValueError: If the sizes of summed axes differ, or the lists have different lengths.
///
/// Example:
///     >>> mx.tensordot(mx.ones((2, 3)), mx.ones((3, 4)), axes=1).shape
///     (2, 4)
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
        return Err(value(
            "[tensordot] axes must be a list of two lists. Pass the axes of a, then those of b.",
        ));
    };
    Ok(PyArray::new(on(stream, || a.0.tensordot_axes(&b.0, left, right))?))
}

/// Computes the inner products of vectors along an axis. The left operand is conjugated.
///
/// Args:
///     a (array): Left operand.
///     b (array): Right operand; other axes are broadcast.
///     axis (int): Axis of the vectors.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Products, without the axis; integers are summed as `sum` does.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If the sizes of the axis differ, or the others cannot be broadcast.
///
/// Example:
///     >>> mx.vecdot(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))
///     array(11, dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, b, /, *, axis=-1, stream=None),
    text_signature = "(a, b, /, *, axis=-1, stream=None)")]
fn vecdot(a: ArrayArg, b: ArrayArg, axis: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.vecdot(&b.0, axis))?))
}

fn operands_of(operands: &Bound<'_, PyTuple>) -> Res<Vec<Array>> {
    operands.iter().map(|o| operand(&o, None)).collect()
}

/// Computes the sum of products that subscripts describe: "ij,jk->ik" is the matrix product.
///
/// Letters that the result lacks are summed over. A letter twice in one operand takes its
/// diagonal. "..." stands for axes without a letter, which are broadcast. Without "->" the
/// result has the letters that are named once, in alphabetical order.
///
/// Args:
///     subscripts (str): Letters for the axes of each operand, separated by commas, and of the
///         result behind "->".
///     *operands (array): Arrays, one for each part of the subscripts.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Sum of products, in the promoted dtype.
///
/// Raises:
///     ValueError: If the subscripts are malformed or do not fit the operands, or integers
///         would be contracted.
///
/// Example:
///     >>> mx.einsum("ij->j", mx.array([[1.0, 2.0], [3.0, 4.0]]))
///     array([4, 6], dtype=float32)
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

/// Finds the order in which `einsum` contracts operands.
///
/// Args:
///     subscripts (str): Subscripts as of `einsum`.
///     *operands (array): Arrays, of which only the shapes matter.
///
/// Returns:
///     tuple[list[tuple[int, ...]], str]: Positions in the list of operands that are taken out
///         at each step, whose result is put at the end; and a text about the cost.
///
/// Raises:
///     ValueError: If the subscripts are malformed or do not fit the operands.
///
/// Example:
///     >>> mx.einsum_path("ij,jk,kl", mx.ones((2, 3)), mx.ones((3, 4)), mx.ones((4, 2)))[0]
///     [(1, 2), (0, 1)]
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
