//! Products of gathered matrices, of masked blocks and of segments; the Hadamard transform.

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::BlockMasks;

/// Multiplies matrices that indices choose: `a[lhs_indices] @ b[rhs_indices]`.
///
/// Indices are flat ones along all but the last two dimensions, and are broadcast with each other.
/// Those of a mixture of experts choose the experts' matrices.
///
/// Args:
///     a (array): Array of the shape (..., m, k), of real floats.
///     b (array): Array of the shape (..., k, n), of real floats.
///     lhs_indices (array | None): Indices of the matrices of `a`, integers; by default all in order.
///     rhs_indices (array | None): Indices of the matrices of `b`, integers; by default all in order.
///     sorted_indices (bool): The indices ascend, which may be faster.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the indices' shape and (m, n), in the promoted dtype.
///
/// Raises:
///     ValueError: If an operand is no array of real floats, inner sizes differ, indices are no
///         integers, or shapes cannot be broadcast.
///
/// Example:
///     >>> experts = mx.array([[[1.0]], [[10.0]]])
///     >>> mx.gather_mm(mx.array([[[2.0]], [[3.0]]]), experts, rhs_indices=mx.array([1, 0])).tolist()
///     [[[20.0]], [[3.0]]]
#[pyfunction]
#[pyo3(signature = (a, b, /, lhs_indices=None, rhs_indices=None, *, sorted_indices=false, stream=None))]
fn gather_mm(
    a: ArrayArg,
    b: ArrayArg,
    lhs_indices: Option<ArrayArg>,
    rhs_indices: Option<ArrayArg>,
    sorted_indices: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let _ = sorted_indices; // Order changes no result.
    let (lhs, rhs) = (lhs_indices.map(|i| i.0), rhs_indices.map(|i| i.0));
    let product = || ultramarine::gather_mm(&a.0, &b.0, lhs.as_ref(), rhs.as_ref());
    Ok(PyArray::new(on(stream, product)?))
}

/// Multiplies matrices of which blocks are masked.
///
/// A mask has an element for each block of `block_size` rows and columns, also for the smaller ones
/// at the ends: bools say which blocks are kept, numbers are factors.
///
/// Args:
///     a (array): Array of the shape (..., m, k), of floats or complex numbers.
///     b (array): Array of the shape (..., k, n).
///     block_size (int): Rows and columns of a block, 32 or 64.
///     mask_out (array | None): Mask of the result's blocks.
///     mask_lhs (array | None): Mask of the blocks of `a`.
///     mask_rhs (array | None): Mask of the blocks of `b`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape (..., m, n), in the promoted dtype.
///
/// Raises:
///     ValueError: As `matmul`, for another `block_size`, and if a mask cannot be broadcast to the
///         blocks.
///
/// Example:
///     >>> a = mx.ones((64, 64))
///     >>> mx.block_masked_mm(a, a, 32, mx.array([[True, False], [False, True]]))[0, ::32].tolist()
///     [64.0, 0.0]
#[pyfunction]
#[pyo3(signature = (a, b, /, block_size=64, mask_out=None, mask_lhs=None, mask_rhs=None, *, stream=None))]
fn block_masked_mm(
    a: ArrayArg,
    b: ArrayArg,
    block_size: isize,
    mask_out: Option<ArrayArg>,
    mask_lhs: Option<ArrayArg>,
    mask_rhs: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let [out, lhs, rhs] = [&mask_out, &mask_lhs, &mask_rhs].map(|m| m.as_ref().map(|m| &m.0));
    let size = usize::try_from(block_size).unwrap_or(0);
    let product = || ultramarine::block_masked_mm(&a.0, &b.0, size, BlockMasks { out, lhs, rhs });
    Ok(PyArray::new(on(stream, product)?))
}

/// Multiplies matrices over segments of the inner dimension, each for itself.
///
/// Args:
///     a (array): Array of the shape (m, k), of real floats.
///     b (array): Array of the shape (k, n), of real floats.
///     segments (array): Integers of the shape (..., 2): the start of each segment and its end, which
///         is not part of it.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape (..., m, n), in the promoted dtype.
///
/// Raises:
///     ValueError: If an operand is no matrix of real floats, inner sizes differ, or segments are no
///         pairs of integers.
///
/// Example:
///     >>> a = mx.array([[1.0, 2.0, 3.0]])
///     >>> mx.segmented_mm(a, mx.ones((3, 1)), mx.array([[0, 2], [2, 3]])).tolist()
///     [[[3.0]], [[3.0]]]
#[pyfunction]
#[pyo3(signature = (a, b, /, segments, *, stream=None))]
fn segmented_mm(
    a: ArrayArg,
    b: ArrayArg,
    segments: ArrayArg,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || ultramarine::segmented_mm(&a.0, &b.0, &segments.0))?))
}

/// Computes the Walsh-Hadamard transform along the last axis.
///
/// Args:
///     a (array): Array whose last size is 2^k, or 12, 20 or 28 times that.
///     scale (float | None): Factor of the result; by default 1 / sqrt(size), which makes it orthonormal.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the same shape; float32 for integers, bool and complex numbers.
///
/// Raises:
///     ValueError: If the last axis has another size, or there are no elements.
///
/// Example:
///     >>> mx.hadamard_transform(mx.array([1.0, 2.0, 3.0, 4.0]), scale=1.0)
///     array([10, -2, -4, 0], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, scale=None, stream=None))]
fn hadamard_transform(a: ArrayArg, scale: Option<f64>, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.hadamard_transform(scale))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: gather_mm block_masked_mm segmented_mm hadamard_transform);
    Ok(())
}
