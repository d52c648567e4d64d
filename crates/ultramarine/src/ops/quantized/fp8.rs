//! 8-bit floats (E4M3, without infinities: Micikevicius and others, FP8 formats for deep learning, 2022), stored as
//! uint8.

use crate::error::{Result, ensure};
use crate::ops::rules::builders::{bin, like, un};
use crate::ops::select::where_;
use crate::placement::follow;
use crate::{array::Array, dtype::Dtype, scalar::Scalar};
use ultramarine_abi::schema::{binary, unary};

/// The largest number, the smallest number with a full mantissa, and the step below that number.
const LARGEST: f64 = 448.0;
const SMALLEST_NORMAL: f64 = 0.015625;
const STEP: f64 = 0.001953125;
/// Number of float32 mantissa bits that E4M3 drops, and the difference of the exponents' biases.
const DROPPED: i64 = 20;
const BIAS: i64 = 120;

/// An integer constant of the dtype of `a`.
fn word(a: &Array, value: i64) -> Array {
    Array::scalar(Scalar::from_i64(a.dtype(), value))
}

fn is_real_float(dtype: Dtype) -> bool {
    dtype.is_inexact() && !dtype.is_complex()
}

/// Returns the array as 8-bit floats (E4M3) stored as uint8, rounded to the nearest, ties to even. Numbers that are too
/// large, infinities and NaN give the largest number, 448, with their sign.
///
/// # Errors
/// [`crate::Error::Value`] for an array that is not of real floats.
pub fn to_fp8(x: &Array) -> Result<Array> {
    const OP: &str = "to_fp8";
    x.computable(OP)?;
    let dtype = x.dtype();
    ensure!(
        is_real_float(dtype),
        OP,
        "Only real floating types are supported but x.dtype() == {dtype}. Convert it with astype(float32)."
    );
    let _placement = follow(&[x]);
    let bits = x.astype(Dtype::Float32).view(Dtype::Uint32)?;
    let sign = bin(binary::RIGHT_SHIFT, &bits, &word(&bits, 24))?;
    let sign = bin(binary::BITWISE_AND, &sign, &word(&sign, 0x80))?;
    let size = bin(binary::BITWISE_AND, &bits, &word(&bits, 0x7fff_ffff))?;
    // The bits of floats have the order of their magnitudes; the bits of NaN come after infinity.
    let most = word(&bits, i64::from((LARGEST as f32).to_bits()));
    let size = bin(binary::MINIMUM, &size, &most)?;
    // Round to the nearest: add half a step minus one, and one more if the last remaining bit is odd.
    let odd = bin(binary::RIGHT_SHIFT, &size, &word(&bits, DROPPED))?;
    let odd = bin(binary::BITWISE_AND, &odd, &word(&bits, 1))?;
    let half = word(&bits, (1 << (DROPPED - 1)) - 1);
    let normal = bin(binary::ADD, &bin(binary::ADD, &size, &odd)?, &half)?;
    let normal = bin(binary::RIGHT_SHIFT, &normal, &word(&bits, DROPPED))?;
    let normal = bin(binary::SUBTRACT, &normal, &word(&bits, BIAS << (23 - DROPPED)))?;
    let number = size.view(Dtype::Float32)?;
    let steps = bin(binary::MULTIPLY, &number, &like(&number, 1.0 / STEP))?;
    let steps = un(unary::ROUND, &steps).astype(Dtype::Uint32);
    let small = bin(binary::LESS, &number, &like(&number, SMALLEST_NORMAL))?;
    let code = where_(&small, &steps, &normal)?;
    Ok(bin(binary::BITWISE_OR, &code, &sign)?.astype(Dtype::Uint8))
}

/// Converts 8-bit floats (E4M3), stored as uint8, to another dtype.
///
/// # Errors
/// [`crate::Error::Value`] for an array of another dtype, and for a target dtype that is not a real float.
pub fn from_fp8(x: &Array, dtype: Dtype) -> Result<Array> {
    const OP: &str = "from_fp8";
    let given = x.dtype();
    ensure!(
        given == Dtype::Uint8,
        OP,
        "Input must have type uint8 but x.dtype() == {given}. Pass what `to_fp8` returned."
    );
    ensure!(
        is_real_float(dtype),
        OP,
        "Only real floating types are supported but dtype == {dtype}. Pass float16, bfloat16 or float32."
    );
    let _placement = follow(&[x]);
    let code = x.astype(Dtype::Uint32);
    let size = bin(binary::BITWISE_AND, &code, &word(&code, 0x7f))?;
    let bits = bin(binary::LEFT_SHIFT, &size, &word(&code, DROPPED))?;
    let normal = bin(binary::ADD, &bits, &word(&code, BIAS << 23))?.view(Dtype::Float32)?;
    let steps = size.astype(Dtype::Float32);
    let steps = bin(binary::MULTIPLY, &steps, &like(&steps, STEP))?;
    let small = bin(binary::LESS, &size, &word(&code, 8))?;
    let number = where_(&small, &steps, &normal)?;
    let is_nan = bin(binary::EQUAL, &size, &word(&code, 0x7f))?;
    let number = where_(&is_nan, like(&number, f64::NAN), &number)?;
    let negative = bin(binary::GREATER, &code, &word(&code, 0x7f))?;
    Ok(where_(&negative, un(unary::NEGATIVE, &number), &number)?.astype(dtype))
}

/// 2^(code - 127) for uint32 codes up to 255, in float32. Code 255 gives infinity.
pub(super) fn power_of_two(code: &Array) -> Result<Array> {
    let bits = bin(binary::LEFT_SHIFT, code, &word(code, 23))?;
    // 2^-127 is subnormal, so no exponent encodes it.
    let is_zero = bin(binary::EQUAL, code, &word(code, 0))?;
    where_(&is_zero, word(code, 1 << 22), &bits)?.view(Dtype::Float32)
}
