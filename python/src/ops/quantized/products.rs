//! Products with matrices of few bits.

use super::{Parts, optional};
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::{Dtype, Quantization, SecondFactor};

/// Multiplies by a matrix of few bits: `x @ w.T`, or `x @ w` without `transpose`.
///
/// The matrix is not written out. Leading axes are broadcast with each other.
///
/// Args:
///     x (array): Array of the shape (..., m, k) or (k), of real floats (of affine any real numbers).
///     w (array): Words, as of `quantize`, of a matrix (..., n, k), or (..., k, n) without `transpose`.
///     scales (array): Scales of the groups.
///     biases (array | None): Biases of the groups, of affine alone.
///     transpose (bool): Multiplies by the transposed matrix.
///     group_size (int | None): Elements that share a scale; by default the mode's.
///     bits (int | None): Bits of an element; by default the mode's.
///     mode (str): What the bits mean; see `quantize`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape (..., m, n), or (..., n) for a vector, in the dtype that `x`, scales and
///         biases promote to.
///
/// Raises:
///     ValueError: If operands have other dtypes, words, scales and biases do not fit each other or the
///         mode, inner sizes differ, or shapes cannot be broadcast.
///
/// Example:
///     >>> w_q, scales, biases = mx.quantize(mx.ones((2, 64)))
///     >>> mx.quantized_matmul(mx.ones((1, 64)), w_q, scales, biases)
///     array([[64, 64]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (x, w, /, scales, biases=None, transpose=true, group_size=None, bits=None, mode="affine", *, stream=None))]
#[allow(clippy::too_many_arguments, reason = "the parameters of MLX")]
fn quantized_matmul(
    x: ArrayArg,
    w: ArrayArg,
    scales: ArrayArg,
    biases: Option<ArrayArg>,
    transpose: bool,
    group_size: Option<isize>,
    bits: Option<isize>,
    mode: &str,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let how = Quantization::from_options("quantized_matmul", mode, group_size, bits)?;
    let w = Parts { words: w, scales, biases, global_scale: None }.with(how);
    Ok(PyArray::new(on(stream, || ultramarine::quantized_matmul(&x.0, &w, transpose))?))
}

/// Multiplies matrices that indices choose by matrices of few bits that indices choose.
///
/// Indices are flat ones along all but the last two axes, and are broadcast with each other. Those of a
/// mixture of experts choose the experts' matrices.
///
/// Args:
///     x (array): Array of the shape (..., m, k), of real floats (of affine any real numbers).
///     w (array): Words, as of `quantize`, of matrices (..., n, k), or (..., k, n) without `transpose`.
///     scales (array): Scales of the groups.
///     biases (array | None): Biases of the groups, of affine alone.
///     lhs_indices (array | None): Indices of the matrices of `x`, integers; by default all in order.
///     rhs_indices (array | None): Indices of the matrices of `w`, integers; by default all in order.
///     transpose (bool): Multiplies by the transposed matrices.
///     group_size (int | None): Elements that share a scale; by default the mode's.
///     bits (int | None): Bits of an element; by default the mode's.
///     mode (str): What the bits mean; see `quantize`.
///     global_scale (array | None): Scale of all elements of `w`, or one of each matrix, of nvfp4 alone:
///         float32.
///     sorted_indices (bool): The indices ascend, which may be faster.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the indices' shape and (m, n), in the dtype that `x`, scales and biases promote
///         to.
///
/// Raises:
///     ValueError: As `quantized_matmul`; if `x` is a vector, or indices are no integers.
///
/// Example:
///     >>> experts = mx.quantize(mx.full((3, 2, 64), mx.arange(3.0).reshape(3, 1, 1)))
///     >>> x = mx.ones((2, 1, 64))
///     >>> mx.gather_qmm(x, *experts, rhs_indices=mx.array([2, 0])).tolist()
///     [[[128.0, 128.0]], [[0.0, 0.0]]]
#[pyfunction]
#[pyo3(signature = (x, w, /, scales, biases=None, lhs_indices=None, rhs_indices=None, transpose=true, group_size=None, bits=None, mode="affine", global_scale=None, *, sorted_indices=false, stream=None))]
#[allow(clippy::too_many_arguments, reason = "the parameters of MLX")]
fn gather_qmm(
    x: ArrayArg,
    w: ArrayArg,
    scales: ArrayArg,
    biases: Option<ArrayArg>,
    lhs_indices: Option<ArrayArg>,
    rhs_indices: Option<ArrayArg>,
    transpose: bool,
    group_size: Option<isize>,
    bits: Option<isize>,
    mode: &str,
    global_scale: Option<ArrayArg>,
    sorted_indices: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let _ = sorted_indices; // Order changes no result.
    let how = Quantization::from_options("gather_qmm", mode, group_size, bits)?;
    let w = Parts { words: w, scales, biases, global_scale }.with(how);
    let (lhs, rhs) = (optional(&lhs_indices), optional(&rhs_indices));
    let product = || ultramarine::gather_qmm(&x.0, &w, lhs, rhs, transpose);
    Ok(PyArray::new(on(stream, product)?))
}

/// The second factor of products whose factors both are of few bits: words if there are scales, else floats.
struct Second {
    w: ArrayArg,
    scales: Option<ArrayArg>,
    global_scale: Option<ArrayArg>,
}

impl Second {
    /// Calls `f` with it; errors name `op`.
    fn with<R>(
        self,
        op: &str,
        how: Quantization,
        f: impl FnOnce(SecondFactor<'_>) -> ultramarine::Result<R>,
    ) -> Res<R> {
        let Second { w, scales, global_scale } = self;
        if let Some(scales) = scales {
            let w = Parts { words: w, scales, biases: None, global_scale }.with(how);
            return Ok(f(SecondFactor::Quantized(&w))?);
        }
        if w.0.dtype() == Dtype::Uint32 {
            let text = "Scales must be provided if second argument is quantized. Pass what `quantize` returned.";
            return Err(value(format!("[{op}] {text}")));
        }
        let global_scale = optional(&global_scale);
        Ok(f(SecondFactor::Floats { w: &w.0, how, global_scale })?)
    }
}

/// Multiplies with both factors rounded to floats of few bits: `x @ w.T`.
///
/// `w` is what `quantize` gives of the same mode, or floats, which are rounded, too. The gradients by
/// factors that are rounded here are those of the product of the rounded ones.
///
/// Args:
///     x (array): Array of the shape (..., m, k) or (k): float32, float16 or bfloat16.
///     w (array): Words of a matrix (n, k), or floats of that shape.
///     scales (array | None): Scales of the groups, if `w` is words.
///     group_size (int | None): Elements that share a scale; by default the mode's.
///     bits (int | None): Bits of an element; by default the mode's.
///     mode (str): What the bits mean: `"nvfp4"`, `"mxfp8"` or `"mxfp4"`; see `quantize`.
///     global_scale_x (array | None): Scale of all elements of `x`, of nvfp4 alone: float32, of one element.
///     global_scale_w (array | None): That of `w`; either both have one or neither has.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape (..., m, n), or (n) for a vector, in the dtype of `x`.
///
/// Raises:
///     ValueError: If operands have other dtypes, `w` is no matrix, words and scales do not fit each
///         other or the mode, inner sizes differ or are no multiple of the group size, or there is one
///         global scale.
///
/// Example:
///     >>> mx.qqmm(mx.ones((1, 32)), mx.ones((2, 32)), mode="mxfp8")
///     array([[32, 32]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (x, w, scales=None, group_size=None, bits=None, mode="nvfp4", global_scale_x=None, global_scale_w=None, *, stream=None))]
#[allow(clippy::too_many_arguments, reason = "the parameters of MLX")]
fn qqmm(
    x: ArrayArg,
    w: ArrayArg,
    scales: Option<ArrayArg>,
    group_size: Option<isize>,
    bits: Option<isize>,
    mode: &str,
    global_scale_x: Option<ArrayArg>,
    global_scale_w: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let how = Quantization::from_options("qqmm", mode, group_size, bits)?;
    let second = Second { w, scales, global_scale: global_scale_w };
    let product =
        |w: SecondFactor<'_>| on(stream, || ultramarine::qqmm(&x.0, w, optional(&global_scale_x)));
    Ok(PyArray::new(second.with("qqmm", how, product)?))
}

/// Multiplies matrices that indices choose, with both factors rounded to floats of few bits.
///
/// Indices as of `gather_qmm`, factors as of `qqmm`.
///
/// Args:
///     x (array): Array of the shape (..., m, k): float32, float16 or bfloat16.
///     w (array): Words of matrices (..., n, k), or floats of that shape.
///     scales (array | None): Scales of the groups, if `w` is words.
///     lhs_indices (array | None): Indices of the matrices of `x`, integers; by default all in order.
///     rhs_indices (array | None): Indices of the matrices of `w`, integers; by default all in order.
///     group_size (int | None): Elements that share a scale; by default the mode's.
///     bits (int | None): Bits of an element; by default the mode's.
///     mode (str): What the bits mean: `"nvfp4"`, `"mxfp8"` or `"mxfp4"`; see `quantize`.
///     global_scale_x (array | None): Scale of all elements of `x`, of nvfp4 alone: float32, of one element.
///     global_scale_w (array | None): That of `w`; words may have one for each matrix. Either both have
///         one or neither has.
///     sorted_indices (bool): The indices ascend, which may be faster.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the indices' shape and (m, n), in the dtype of `x`.
///
/// Raises:
///     ValueError: As `qqmm`; if `x` is a vector, or indices are no integers.
///
/// Example:
///     >>> experts = mx.array([[[1.0] * 32], [[2.0] * 32]])
///     >>> x, chosen = mx.ones((1, 32)), mx.array([1, 0])
///     >>> mx.gather_qqmm(x, experts, rhs_indices=chosen, mode="mxfp8").tolist()
///     [[[64.0]], [[32.0]]]
#[pyfunction]
#[pyo3(signature = (x, w, /, scales=None, lhs_indices=None, rhs_indices=None, group_size=None, bits=None, mode="nvfp4", global_scale_x=None, global_scale_w=None, *, sorted_indices=false, stream=None))]
#[allow(clippy::too_many_arguments, reason = "the parameters of MLX")]
fn gather_qqmm(
    x: ArrayArg,
    w: ArrayArg,
    scales: Option<ArrayArg>,
    lhs_indices: Option<ArrayArg>,
    rhs_indices: Option<ArrayArg>,
    group_size: Option<isize>,
    bits: Option<isize>,
    mode: &str,
    global_scale_x: Option<ArrayArg>,
    global_scale_w: Option<ArrayArg>,
    sorted_indices: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let _ = sorted_indices; // Order changes no result.
    let how = Quantization::from_options("gather_qqmm", mode, group_size, bits)?;
    let second = Second { w, scales, global_scale: global_scale_w };
    let (lhs, rhs) = (optional(&lhs_indices), optional(&rhs_indices));
    let product = |w: SecondFactor<'_>| {
        on(stream, || ultramarine::gather_qqmm(&x.0, w, lhs, rhs, optional(&global_scale_x)))
    };
    Ok(PyArray::new(second.with("gather_qqmm", how, product)?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: quantized_matmul gather_qmm qqmm gather_qqmm);
    Ok(())
}
