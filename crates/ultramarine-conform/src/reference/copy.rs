//! Conversions between dtypes.

use super::elementwise::flag;
use crate::dtype::{DType, Num};

/// Converts a number; `None` if the contract does not define the result.
pub fn cast(from: DType, to: DType, x: Num) -> Option<Num> {
    if to == DType::BOOL {
        return Some(flag(x.truth()));
    }
    let value = x.real();
    if to.is_int() && !matches!(x, Num::Int(_)) {
        let (low, high) = to.range();
        let whole = value.trunc();
        // At the upper end of the range, float64 is too coarse to represent the limit.
        if value.is_nan() || whole < low as f64 || whole > high as f64 - to_margin(to) {
            return None;
        }
        return Some(Num::Int(whole as i128));
    }
    if to.is_int() {
        return Some(Num::Int(to.wrap(x.int())));
    }
    Some(match x {
        Num::Complex(re, im) if to.is_complex() => Num::Complex(re, im),
        _ if to.is_complex() => Num::Complex(value, 0.0),
        // 16-bit floats are converted through float32.
        _ if to.is_half() && !from.is_half() => Num::Real(DType::F32.round(value)),
        _ => Num::Real(value),
    })
}

fn to_margin(to: DType) -> f64 {
    if to.bits() == 64 { 4096.0 } else { 0.0 }
}
