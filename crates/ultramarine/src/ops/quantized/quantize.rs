//! Quantization, with the same words as MLX gives.

use super::mode::{BITS, GROUPS, Quantization, QuantizationMode};
use super::pack::pack;
use super::{Quantized, fp8};
use crate::error::{Result, ensure};
use crate::ops::rules::builders::{bin, compute_dtype, like, times, un, with_axis, without_axis};
use crate::ops::rules::shapeless::{SymbolicSize, reshaped};
use crate::ops::select::where_;
use crate::ops::shape::axes::KeepDims;
use crate::placement::follow;
use crate::shape::{Shape, Show};
use crate::{array::Array, dtype::Dtype};
use smallvec::smallvec;
use ultramarine_abi::schema::{binary, unary};

const OP: &str = "quantize";
/// The smallest scale of the affine mode.
const EPSILON: f64 = 1e-7;
/// The largest E2M1 and E4M3 numbers.
const E2M1_LARGEST: f64 = 6.0;
const E4M3_LARGEST: f64 = 448.0;

/// Quantises an array `(..., columns)` along its last axis.
///
/// Each group of a row's elements gets a scale. Affine: the end of the group's range that is larger in magnitude is
/// exact, and so is zero if the range contains it. mxfp4 and mxfp8: scales are powers of two, rounded up so that the
/// group's largest element does not saturate. nvfp4: scales are E4M3 numbers; a global scale, float32 of one element,
/// is the largest magnitude among all elements.
///
/// ```
/// use ultramarine::{Array, Quantization, quantize};
/// let w = Array::arange(0.0, 64.0, 1.0, ultramarine::Dtype::Float32)?.reshape(&[1, 64])?;
/// let q = quantize(&w, Quantization::affine(8, 64), None)?;
/// assert_eq!((q.words.shape(), q.scales.shape()), (&[1, 16][..], &[1, 1][..]));
/// let back = q.dequantize(None)?.to_vec::<f32>()?;
/// assert!(back.iter().enumerate().all(|(i, x)| (x - i as f32).abs() < 0.2));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for an array that is not of real floats or has fewer than 2 dimensions, a last axis that is
/// not a multiple of the group size, sizes that the mode does not have, and an invalid global scale.
pub fn quantize(w: &Array, how: Quantization, global_scale: Option<&Array>) -> Result<Quantized> {
    w.computable(OP)?;
    let dtype = w.dtype();
    ensure!(
        dtype.is_floating(),
        OP,
        "Only real floating types can be quantized but w has type {dtype}. Convert it with astype(float32)."
    );
    ensure!(
        w.ndim() >= 2,
        OP,
        "The matrix to be quantized must have at least 2 dimensions but it has only {}. Reshape it.",
        w.ndim()
    );
    how.check(OP)?;
    let (columns, group) = (w.shape()[w.ndim() - 1], how.group_size);
    ensure!(
        columns.is_multiple_of(group),
        OP,
        "The last dimension of the matrix needs to be divisible by the quantization group size {group}. However the provided matrix has shape {}. Pad it, or choose a smaller group_size.",
        Show(w.shape())
    );
    if how.mode == QuantizationMode::Affine {
        ensure!(
            GROUPS.contains(&group),
            OP,
            "The requested group size {group} is not supported. Use 32, 64 or 128."
        );
        ensure!(
            BITS.contains(&how.bits),
            OP,
            "The requested number of bits {} is not supported. Use 1, 2, 3, 4, 5, 6 or 8.",
            how.bits
        );
    }
    check_global_scale(OP, how, global_scale)?;
    let _placement = follow(&[w]);
    let with_last = |last: &[usize]| -> Shape {
        w.shape()[..w.ndim() - 1].iter().chain(last).copied().collect()
    };
    let scales_shape = with_last(&[columns / group]);
    let affine = how.mode == QuantizationMode::Affine;
    if w.size() == 0 {
        let scales = if affine { dtype } else { Dtype::Uint8 };
        return Ok(Quantized {
            words: Array::zeros(&with_last(&[columns * how.bits / 32]), Dtype::Uint32)?,
            scales: Array::zeros(&scales_shape, scales)?,
            biases: affine.then(|| Array::zeros(&scales_shape, dtype)).transpose()?,
            global_scale: global_scale.cloned(),
            how,
        });
    }
    let last = w.ndim() - 1;
    let sizes = smallvec![SymbolicSize::Product(0, last as u8), SymbolicSize::own(last)];
    let rows = reshaped(w, sizes, &[])?;
    let count = rows.shape()[0];
    let groups = rows.reshape(&[count, columns / group, group])?;
    let (codes, scales, biases) = match how.mode {
        QuantizationMode::Affine => {
            let (codes, scales, biases) = affine_codes(&groups, how.bits)?;
            (codes, scales, Some(biases))
        }
        mode => {
            let (codes, scales) = float_codes(&groups, mode, global_scale)?;
            (codes, scales, None)
        }
    };
    let words = pack(&codes.reshape(&[count, columns])?, how.bits)?;
    let whole = |a: &Array| {
        let sizes = (0..last).map(SymbolicSize::partner).chain([SymbolicSize::own(1)]).collect();
        reshaped(a, sizes, &[w])
    };
    // Scales have an additional axis of size 1 for their group's elements.
    let each = |a: &Array| whole(&without_axis(a, 2)?);
    Ok(Quantized {
        words: whole(&words)?,
        scales: each(&scales)?,
        biases: biases.map(|b| each(&b)).transpose()?,
        global_scale: global_scale.cloned(),
        how,
    })
}

/// Checks a global scale; errors name `op`.
pub(super) fn check_global_scale(
    op: &str,
    how: Quantization,
    global_scale: Option<&Array>,
) -> Result<()> {
    let Some(scale) = global_scale else { return Ok(()) };
    ensure!(
        how.mode == QuantizationMode::Nvfp4,
        op,
        "Global scale is only supported for 'nvfp4' quantization mode. Leave it out, or pass mode='nvfp4'."
    );
    ensure!(
        scale.dtype() == Dtype::Float32,
        op,
        "Global scale must have dtype float32 but got {}. Convert it with astype(float32).",
        scale.dtype()
    );
    ensure!(
        scale.size() == 1,
        op,
        "Global scale must be a scalar but got shape {}. Pass one number.",
        Show(scale.shape())
    );
    Ok(())
}

/// Codes of groups `(..., groups, size)`, and scales and biases `(..., groups, 1)`. The computation is in float32
/// (float64 for float64), and the codes are computed from unrounded scales and biases.
fn affine_codes(groups: &Array, bits: usize) -> Result<(Array, Array, Array)> {
    let dtype = groups.dtype();
    let groups = &groups.astype(compute_dtype(dtype));
    let is_nan = un_bool(unary::ISNAN, groups);
    // Consider only elements that are numbers.
    let end = |infinity: f64, largest: bool| -> Result<Array> {
        let numbers = where_(&is_nan, like(groups, infinity), groups)?;
        match (bits, largest) {
            // With zeros of both signs, the first one is the bias.
            (1, false) => numbers.take_along_axis(&numbers.argmin(KeepDims(Some(-1)))?, Some(-1)),
            (_, true) => numbers.max(KeepDims(-1)),
            (_, false) => numbers.min(KeepDims(-1)),
        }
    };
    let (high, low) = (end(f64::NEG_INFINITY, true)?, end(f64::INFINITY, false)?);
    let steps = ((1u32 << bits) - 1) as f64;
    let width = bin(binary::DIVIDE, &bin(binary::SUBTRACT, &high, &low)?, &like(groups, steps))?;
    let least = like(groups, EPSILON);
    let scale = where_(&bin(binary::LESS, &width, &least)?, &least, &width)?;
    let (scale, bias) = if bits == 1 {
        (scale, low)
    } else {
        // Begin at the end of larger magnitude, so that it is exact. Move it to an integer number of steps from zero,
        // so that zero is exact.
        let below = bin(binary::GREATER, &un(unary::ABS, &low), &un(unary::ABS, &high))?;
        let scale = where_(&below, &scale, un(unary::NEGATIVE, &scale))?;
        let edge = where_(&below, &low, &high)?;
        let from_zero = un(unary::ROUND, &bin(binary::DIVIDE, &edge, &scale)?);
        let is_zero = bin(binary::EQUAL, &from_zero, &like(groups, 0.0))?;
        let fitted = bin(binary::DIVIDE, &edge, &from_zero)?;
        (where_(&is_zero, &scale, &fitted)?, where_(&is_zero, like(groups, 0.0), &edge)?)
    };
    let codes = bin(binary::DIVIDE, &bin(binary::SUBTRACT, groups, &bias)?, &scale)?;
    let codes = un(unary::ROUND, &codes);
    // NaN has code 0.
    let codes = where_(&un_bool(unary::ISNAN, &codes), like(groups, 0.0), &codes)?;
    let codes = codes.clip(Some(&like(groups, 0.0)), Some(&like(groups, steps)))?;
    Ok((codes.astype(Dtype::Uint32), scale.astype(dtype), bias.astype(dtype)))
}

/// A predicate.
fn un_bool(code: u32, a: &Array) -> Array {
    use crate::ops::elementwise::unary::Unary;
    Array::of(Unary { code }, &[a], Shape::from_slice(a.shape()), Dtype::Bool)
}

/// Codes of groups `(..., groups, size)`, and scales `(..., groups, 1)` of uint8, in modes of floats. Each step is
/// rounded to the array's dtype.
fn float_codes(
    groups: &Array,
    mode: QuantizationMode,
    global_scale: Option<&Array>,
) -> Result<(Array, Array)> {
    // float64 adds no precision here, because 8-bit floats are made from float32.
    let groups = if groups.dtype() == Dtype::Float64 {
        groups.astype(Dtype::Float32)
    } else {
        groups.clone()
    };
    let largest = un(unary::ABS, &groups).max(KeepDims(-1))?;
    let of_element = if mode == QuantizationMode::Mxfp8 { E4M3_LARGEST } else { E2M1_LARGEST };
    let scale = bin(binary::DIVIDE, &largest, &like(&groups, of_element))?;
    let (code, elements) = if mode == QuantizationMode::Nvfp4 {
        let inverse = global_scale.map(inverse).transpose()?;
        let scale = match &inverse {
            Some(inverse) => times(&scale.astype(Dtype::Float32), inverse)?,
            None => scale,
        };
        let code = fp8::to_fp8(&scale)?;
        let value = fp8::from_fp8(&code, groups.dtype())?;
        let elements = bin(binary::DIVIDE, &groups, &value)?;
        let elements = match &inverse {
            Some(inverse) => times(&elements.astype(Dtype::Float32), inverse)?,
            None => elements,
        };
        (code, elements)
    } else {
        let (code, value) = power_of_two_above(&scale)?;
        (code, bin(binary::DIVIDE, &groups, &value)?)
    };
    let codes = match mode {
        QuantizationMode::Mxfp8 => fp8::to_fp8(&elements)?.astype(Dtype::Uint32),
        _ => nearest_e2m1(&elements)?,
    };
    Ok((codes, code))
}

/// 2688, the largest E2M1 times the largest E4M3 number, divided by the global scale; of shape `()`.
fn inverse(global_scale: &Array) -> Result<Array> {
    let scale = global_scale.reshape(&[0usize; 0])?;
    bin(binary::DIVIDE, &like(&scale, E2M1_LARGEST * E4M3_LARGEST), &scale)
}

/// The smallest power of two that is not below a scale: its exponent plus 127 as uint8, and the power itself. Scales of
/// 0 count as 1.
fn power_of_two_above(scale: &Array) -> Result<(Array, Array)> {
    let word = |a: &Array, v: i64| Array::scalar(crate::Scalar::from_i64(a.dtype(), v));
    let wide = scale.astype(Dtype::Float32);
    let bits = wide.view(Dtype::Uint32)?;
    // A nonzero mantissa rounds up.
    let up = bin(binary::ADD, &bits, &word(&bits, (1 << 23) - 1))?;
    let code = bin(binary::RIGHT_SHIFT, &up, &word(&up, 23))?;
    // The smallest scale, 2^-127, is subnormal, so no exponent encodes it.
    let is_least = bin(binary::LESS_EQUAL, &bits, &word(&bits, 1 << 22))?;
    let code = where_(&is_least, word(&code, 0), &code)?;
    let is_zero = bin(binary::EQUAL, &wide, &like(&wide, 0.0))?;
    let code = where_(&is_zero, word(&code, 127), &code)?;
    // Infinities and NaN have no valid scale; encode them as MLX does.
    let infinite = word(&code, if scale.dtype() == Dtype::Float32 { 128 } else { 0 });
    let is_finite = un_bool(unary::ISFINITE, &wide);
    let value = fp8::power_of_two(&code)?;
    let value = where_(&is_finite, &value, like(&value, 0.0))?;
    let code = where_(&is_finite, &code, &infinite)?;
    Ok((code.astype(Dtype::Uint8), value.astype(scale.dtype())))
}

/// The codes of the nearest E2M1 numbers. Numbers halfway between two get the one nearer to zero. Magnitudes beyond 6
/// give 6, infinities and NaN give 0.
fn nearest_e2m1(elements: &Array) -> Result<Array> {
    let size = un(unary::ABS, &elements.astype(Dtype::Float32));
    // Above each of these midpoints the next number is nearer.
    let middles = Array::from_slice(&[0.25f32, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], &[7])?;
    let n = size.ndim();
    let above = bin(binary::GREATER, &with_axis(&size, n)?, &middles)?;
    let code = above.astype(Dtype::Uint32).sum(-1)?;
    let negative = bin(binary::LESS, elements, &like(elements, 0.0))?;
    let sign = times(
        &negative.astype(Dtype::Uint32),
        &Array::scalar(crate::Scalar::from_i64(Dtype::Uint32, 8)),
    )?;
    // There is no negative zero. Infinities arise only from a scale of 0.
    let none = Array::scalar(crate::Scalar::from_i64(Dtype::Uint32, 0));
    let is_zero = bin(binary::EQUAL, &code, &none)?;
    let is_zero = is_zero.logical_or(un_bool(unary::ISINF, &size))?;
    where_(&is_zero, &none, &bin(binary::ADD, &code, &sign)?)
}
