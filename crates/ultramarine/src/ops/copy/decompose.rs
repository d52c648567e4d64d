//! Decompositions of conversions between dtypes.

use crate::ops::rules::builders::{bin, like};
use crate::ops::rules::decomposition::{
    Candidates, Decompose, bitcast, complex, int, parts, signed, wider,
};
use crate::{array::Array, dtype::Dtype, error::Result, ops::select::where_, scalar::Scalar};
use ultramarine_abi::schema::binary;

/// Candidates for a conversion to the result's dtype.
pub(crate) fn candidates(d: &Decompose<'_>, candidates: &mut Candidates) {
    let (x, to) = (&d.inputs[0], d.dtype);
    let from = x.dtype();
    if from.is_integer() && to.is_integer() && from.size() == to.size() {
        candidates.add(Ok(bitcast(x, to)));
    }
    if from == Dtype::Bool {
        let (one, zero) = (Scalar::from_i64(to, 1), Scalar::from_i64(to, 0));
        candidates.add(where_(x, Array::scalar(one), Array::scalar(zero)));
        candidates.add(Ok(bitcast(x, Dtype::Uint8).astype(to)));
    } else if to == Dtype::Bool {
        let zero = if from.is_inexact() { like(x, 0.0) } else { int(x, 0) };
        candidates.add(bin(binary::NOT_EQUAL, x, &zero));
    }
    if from.is_complex() {
        if to != Dtype::Bool {
            candidates.add(parts(x).map(|(re, _)| re.astype(to)));
        }
    } else if to.is_complex() {
        let re = x.astype(Dtype::Float32);
        candidates.add(complex(&re, &re.zeros_like()));
    }
    // float16 and bfloat16 convert from and to every dtype through float32. Narrow integers convert
    // through int32: they are truncated to their low bits, or sign-extended.
    for between in [wider(from), wider(to)].into_iter().flatten() {
        if between != from && between != to && !(from.is_complex() || to.is_complex()) {
            candidates.add(Ok(x.astype(between).astype(to)));
        }
    }
    if let Some(s) = signed(to)
        && from.is_floating()
    {
        candidates.add(unsigned(x, s, to));
    }
}

/// Converts floats to unsigned integers through the signed ones. Values beyond the signed range are
/// reduced by 2^(w-1) before the conversion, and get the highest bit flipped after it.
fn unsigned(x: &Array, signed: Dtype, to: Dtype) -> Result<Array> {
    let width = 8 * signed.size();
    let limit = like(x, 2f64.powi(width as i32 - 1));
    let above = x.greater_equal(&limit)?;
    let high = Array::scalar(Scalar::from_bits(signed, 1 << (width - 1)));
    let large = bin(binary::ADD, &x.subtract(&limit)?.astype(signed), &high)?;
    Ok(bitcast(&where_(&above, &large, x.astype(signed))?, to))
}
