//! Parts of neural networks: softmax, norms, rotary positions, attention and cross entropy.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Operand, axes};
use crate::error::{Res, type_, type_name, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyString;
use ultramarine::fast::{self, AttentionMask, Rope};

/// Computes the exponentials of elements over their sum along axes, without overflow.
///
/// Args:
///     a (array): Array of any shape.
///     axis (int | Sequence[int] | None): Axes to sum over; by default all of them.
///     precise (bool): Computes float16 and bfloat16 in float32.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Numbers between 0 and 1 in the shape of `a`; float32 for integers and bools.
///
/// Raises:
///     IndexError: If an axis is out of range.
///
/// Example:
///     >>> mx.softmax(mx.array([0.0, 0.0]), axis=-1)
///     array([0.5, 0.5], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, /, axis=None, *, precise=false, stream=None))]
fn softmax(
    a: ArrayArg,
    axis: Option<Ints>,
    precise: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || a.0.softmax(axes(&axis), precise))?))
}

/// Divides vectors along the last axis by the root of the mean of their squares.
///
/// `x / sqrt(mean(x ** 2) + eps) * weight`; float16 and bfloat16 are computed in float32.
///
/// Args:
///     x (array): Array of one dimension at least, of floats.
///     weight (array | None): Factor for each element of the last axis; None for none.
///     eps (float): Number that is added to the mean of squares.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape of `x`, in the dtype that `x` and the weight promote to.
///
/// Raises:
///     ValueError: If `x` has no axis, is not of floats, or the weight does not fit the last
///         axis.
///
/// Example:
///     >>> mx.fast.rms_norm(mx.array([3.0, 4.0]), mx.ones(2), 0.0)
///     array([0.848528, 1.13137], dtype=float32)
#[pyfunction]
#[pyo3(signature = (x, weight, eps, *, stream=None))]
fn rms_norm(
    x: ArrayArg,
    weight: Option<ArrayArg>,
    eps: f64,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let weight = weight.as_ref().map(|w| &w.0);
    Ok(PyArray::new(on(stream, || ultramarine::fast::rms_norm(&x.0, weight, eps))?))
}

/// Normalises vectors along the last axis to mean 0 and variance 1.
///
/// `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`; float16 and bfloat16 are computed in
/// float32.
///
/// Args:
///     x (array): Array of one dimension at least, of floats.
///     weight (array | None): Factor for each element of the last axis; None for none.
///     bias (array | None): Summand for each element of the last axis; None for none.
///     eps (float): Number that is added to the variance.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array of the shape of `x`, in the dtype that `x`, weight and bias promote to;
///         without a weight in that of `x`.
///
/// Raises:
///     ValueError: If `x` has no axis, is not of floats, or weight or bias do not fit the last
///         axis.
///
/// Example:
///     >>> mx.fast.layer_norm(mx.array([1.0, 3.0]), None, None, 0.0)
///     array([-1, 1], dtype=float32)
#[pyfunction]
#[pyo3(signature = (x, weight, bias, eps, *, stream=None))]
fn layer_norm(
    x: ArrayArg,
    weight: Option<ArrayArg>,
    bias: Option<ArrayArg>,
    eps: f64,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (weight, bias) = (weight.as_ref().map(|w| &w.0), bias.as_ref().map(|b| &b.0));
    let run = || ultramarine::fast::layer_norm(&x.0, weight, bias, eps);
    Ok(PyArray::new(on(stream, run)?))
}

/// Rotates pairs of elements of the last axis by angles that grow with the position.
///
/// Positions are the indices along the axis before the last, times `scale`. float16 and
/// bfloat16 are computed in float32.
///
/// Args:
///     a (array): Array of three dimensions at least, of floats: (batch, ..., positions,
///         elements).
///     dims (int): Number of leading elements of the last axis to rotate; the others stay.
///     traditional (bool): Pairs neighbours; else element i is paired with element i + dims /
///         2.
///     base (float | None): Pair i of n rotates by the angle base ** (-i / n) for each
///         position. None where `freqs` is given.
///     scale (float): Factor of the positions.
///     offset (int | array): First position; or an array with one for each element of the first
///         axis.
///     freqs (array | None): Instead of a base: positions for the angle 1, for each of the dims
///         / 2 pairs.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Rotated array, in shape and dtype of `a`.
///
/// Raises:
///     ValueError: If the shapes do not fit, or not exactly one of `base` and `freqs` is given.
///
/// Example:
///     >>> mx.fast.rope(mx.ones((1, 2, 4)), 4, traditional=False, base=10000.0, scale=1.0, offset=0).shape
///     (1, 2, 4)
#[pyfunction]
#[pyo3(signature = (a, dims, *, traditional, base, scale, offset, freqs=None, stream=None))]
#[allow(clippy::too_many_arguments)]
fn rope(
    a: ArrayArg,
    dims: isize,
    traditional: bool,
    base: Option<f64>,
    scale: f64,
    offset: Operand,
    freqs: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let how = Rope { dims, traditional, base, scale };
    let freqs = freqs.as_ref().map(|f| &f.0);
    Ok(PyArray::new(on(stream, || ultramarine::fast::rope(&a.0, how, &offset.0, freqs))?))
}

/// A mask of attention: `"causal"` or an array.
enum Mask {
    Causal,
    Array(ArrayArg),
}

fn mask_of(mask: &Bound<'_, PyAny>) -> Res<Mask> {
    const OF: &str = "[scaled_dot_product_attention]";
    if let Ok(name) = mask.cast::<PyString>() {
        let name = name.to_string_lossy();
        return match &*name {
            "causal" => Ok(Mask::Causal),
            _ => Err(value(format!(
                "{OF} invalid mask option '{name}'. Must be 'causal', or an array."
            ))),
        };
    }
    mask.extract::<ArrayArg>().map(Mask::Array).map_err(|_| {
        type_(format!("{OF} mask must be None, 'causal' or an array, not {}.", type_name(mask)))
    })
}

/// Computes scaled dot-product attention, `softmax(scale * q @ k.T + mask) @ v`.
///
/// Each key head serves `heads / key heads` neighbouring query heads. Scores and softmax are
/// computed in float32 for float16 and bfloat16. A query whose keys are all masked gets the mean
/// of all values (zeros, with a finite sink).
///
/// Args:
///     q (array): Queries, (batch, heads, queries, size), of floats.
///     k (array): Keys, (batch, key heads, keys, size).
///     v (array): Values, (batch, key heads, keys, value size).
///     scale (float): Factor of the scores, usually size ** -0.5.
///     mask (str | array | None): `"causal"`: a query sees the keys up to its own position,
///         and the last query is at the last key's. Or an array that broadcasts to
///         (batch, heads, queries, keys): of bools, true for the keys that are seen, or
///         of numbers that are added to the scores. By default every key is seen.
///     sinks (array | None): Score for each query head, (heads,), that joins the sum of the softmax and
///         has no value.
///     force_fused (bool): Raises an error where no fused kernel is available.
///     lengths (array | None): Number of keys that count, of each batch, (batch,): those behind it
///         are as masked, and a causal mask is aligned at it. What is there has to be finite.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: (batch, heads, queries, value size), in the dtype that q, k and v promote to.
///
/// Raises:
///     ValueError: If operands are not of 4 axes or not floating, if their sizes do not fit, if the
///         mask's or the sinks' dtype does not promote to the result's, or if `force_fused` is
///         True and no fused kernel is available.
///     TypeError: If the mask is neither a string nor an array.
///
/// Example:
///     >>> x = mx.array([[[[0.0], [0.0]]]])
///     >>> v = mx.array([[[[1.0], [3.0]]]])
///     >>> mx.fast.scaled_dot_product_attention(x, x, v, scale=1.0, mask="causal").tolist()
///     [[[[1.0], [2.0]]]]
#[pyfunction]
#[pyo3(signature = (q, k, v, *, scale, mask=None, sinks=None, force_fused=false, lengths=None, stream=None))]
#[allow(clippy::too_many_arguments)]
fn scaled_dot_product_attention(
    q: ArrayArg,
    k: ArrayArg,
    v: ArrayArg,
    scale: f64,
    mask: Option<&Bound<'_, PyAny>>,
    sinks: Option<ArrayArg>,
    force_fused: bool,
    lengths: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let mask = mask.map(mask_of).transpose()?;
    let mask = match &mask {
        None => AttentionMask::None,
        Some(Mask::Causal) => AttentionMask::Causal,
        Some(Mask::Array(mask)) => AttentionMask::Array(&mask.0),
    };
    let (sinks, lengths) = (sinks.as_ref().map(|s| &s.0), lengths.as_ref().map(|l| &l.0));
    let [q, k, v] = [&q.0, &k.0, &v.0];
    let attend = || {
        if force_fused && !fast::has_attention_kernel(q, k, v, mask, sinks, lengths)? {
            let text = "force_fused=True but no fused kernel is available on this device. Leave force_fused out.";
            return Err(ultramarine::Error::value("scaled_dot_product_attention", text));
        }
        fast::scaled_dot_product_attention(q, k, v, scale, mask, sinks, lengths)
    };
    Ok(PyArray::new(on(stream, attend)?))
}

/// Computes the cross entropy of class indices, `logsumexp(logits) - logits[target]`, along the
/// last axis.
///
/// float16 and bfloat16 are summed in float32.
///
/// Args:
///     logits (array): Unnormalised logits, (..., classes), of floats.
///     targets (array): Class indices, (...), of integers in [0, classes); negative ones count
///         from the end.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Loss of each target, in float32, of the shape of `targets`.
///
/// Raises:
///     ValueError: If the logits have no axis, no class or no floating dtype, or if the targets
///         are no integers or of another shape.
///
/// Example:
///     >>> mx.fast.cross_entropy(mx.array([[0.0, 0.0]]), mx.array([1]))
///     array([0.693147], dtype=float32)
#[pyfunction]
#[pyo3(signature = (logits, targets, *, stream=None))]
fn cross_entropy(logits: ArrayArg, targets: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
    let loss = || ultramarine::fast::cross_entropy(&logits.0, &targets.0);
    Ok(PyArray::new(on(stream, loss)?))
}

/// Computes `x @ weight.T + bias`, as `nn.Linear` does.
///
/// Args:
///     x (array): Input, (..., inputs).
///     weight (array): Weight, (outputs, inputs).
///     bias (array, optional): Bias, (outputs,).
///
/// Returns:
///     array: Output, (..., outputs).
///
/// Raises:
///     ValueError: If the shapes do not fit, or all are integers.
#[pyfunction]
#[pyo3(signature = (x, weight, bias=None, /))]
fn _linear(x: ArrayArg, weight: ArrayArg, bias: Option<ArrayArg>) -> Res<PyArray> {
    let bias = bias.as_ref().map(|bias| &bias.0);
    Ok(PyArray::new(ultramarine::fast::linear(&x.0, &weight.0, bias)?))
}

/// Takes steps of a linear attention whose state forgets and corrects itself (gated delta rule).
///
/// A step is `S = gamma * S; S = S + beta * outer(v - S @ k, k); o = S @ q`. Steps are computed in
/// chunks, by matrix products, in float32 (float64 if `q` or `k` is).
///
/// Args:
///     q (array): Queries, (batch, steps, key heads, size).
///     k (array): Keys, of the shape of `q`.
///     v (array): Values, (batch, steps, heads, value size). Each key head serves `heads / key heads`
///         neighbouring heads.
///     gamma (array): Decay of the state, (batch, steps, heads).
///     beta (array): Rate of the update, (batch, steps, heads).
///     initial_state (array | None): The state at first, (batch, heads, value size, size); by default zeros.
///     mask (array | None): (batch, steps), false for steps that leave the state alone and output zeros.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     list[array]: The output, (batch, steps, heads, value size), in the floating dtype that `q` and
///     `k` promote to; and the state behind the last step, in float32 (or float64).
///
/// Raises:
///     ValueError: If operands have other ranks or sizes that do not fit, or are complex.
///
/// Example:
///     >>> x, one = mx.array([[[[3.0]]]]), mx.ones((1, 1, 1))
///     >>> [a.item() for a in mx.fast.gated_delta_update(x, x, x, one, one)]
///     [27.0, 9.0]
#[pyfunction]
#[pyo3(signature = (q, k, v, gamma, beta, initial_state=None, mask=None, stream=None))]
#[allow(clippy::too_many_arguments)]
fn gated_delta_update(
    q: ArrayArg,
    k: ArrayArg,
    v: ArrayArg,
    gamma: ArrayArg,
    beta: ArrayArg,
    initial_state: Option<ArrayArg>,
    mask: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<Vec<PyArray>> {
    let [q, k, v, gamma, beta] = [&q.0, &k.0, &v.0, &gamma.0, &beta.0];
    let (state, mask) = (initial_state.as_ref().map(|a| &a.0), mask.as_ref().map(|a| &a.0));
    let update = || fast::gated_delta_update(q, k, v, gamma, beta, state, mask);
    Ok(on(stream, update)?.map(PyArray::new).into())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: softmax);
    Ok(())
}

/// The functions of the module `ultramarine.fast`.
pub fn register_fast(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: _linear rms_norm layer_norm rope scaled_dot_product_attention cross_entropy
        gated_delta_update);
    Ok(())
}
