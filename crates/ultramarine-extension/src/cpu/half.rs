//! Half precision: numbers that are calculated with in float32.

use crate::dtype::Number;
use half::{bf16, f16, slice::HalfFloatSliceExt};

/// float16 or bfloat16. A sum, product or quotient that is calculated in float32 and then rounded is the one that IEEE 754 asks
/// for, as float32 has more than twice their digits.
pub trait Half: Number {
    /// As float32. `to` has as many elements.
    fn widen(from: &[Self], to: &mut [f32]);
    /// Rounds to the nearest. `to` has as many elements.
    fn narrow(from: &[f32], to: &mut [Self]);
    /// Rounds float32 numbers to this type's, which stay float32.
    fn round(values: &mut [f32]);
    /// Rounds to the nearest.
    fn of(value: f32) -> Self;
    /// As float32.
    fn wide(self) -> f32;
}

impl Half for f16 {
    fn widen(from: &[Self], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    fn narrow(from: &[f32], to: &mut [Self]) {
        to.convert_from_f32_slice(from);
    }

    fn round(values: &mut [f32]) {
        let mut short = [f16::ZERO; 128];
        for part in values.chunks_mut(short.len()) {
            let short = &mut short[..part.len()];
            short.convert_from_f32_slice(part);
            short.convert_to_f32_slice(part);
        }
    }

    fn of(value: f32) -> Self {
        f16::from_f32(value)
    }

    fn wide(self) -> f32 {
        self.to_f32()
    }
}

/// The upper half of a float32, rounded to the nearest, ties to even; NaN stays NaN. Without a branch, so that loops are
/// vectorised.
#[inline]
fn upper(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    // The payload's upper bits, and the one that says quiet.
    let kept = bits | 0x0040_0000;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { kept } else { rounded }) >> 16
}

impl Half for bf16 {
    fn widen(from: &[Self], to: &mut [f32]) {
        for (from, to) in from.iter().zip(to) {
            *to = f32::from_bits(u32::from(from.to_bits()) << 16);
        }
    }

    fn narrow(from: &[f32], to: &mut [Self]) {
        for (from, to) in from.iter().zip(to) {
            *to = bf16::from_bits(upper(*from) as u16);
        }
    }

    fn round(values: &mut [f32]) {
        for value in values {
            *value = f32::from_bits(upper(*value) << 16);
        }
    }

    fn of(value: f32) -> Self {
        bf16::from_f32(value)
    }

    fn wide(self) -> f32 {
        self.to_f32()
    }
}
