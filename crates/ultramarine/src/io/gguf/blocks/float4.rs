//! Blocks of four-bit floats, e2m1.

use super::{nibbles, part};

/// Each number times two. llama.cpp has no negative zero.
const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Half of a power of two, `2^(exponent - 128)`.
fn half_power(exponent: u8) -> f32 {
    f32::from_bits(match exponent {
        0 => 0x0020_0000,
        1 => 0x0040_0000,
        _ => (exponent as u32 - 1) << 23,
    })
}

pub fn mxfp4(b: &[u8; 17], out: &mut [f32; 32]) {
    let (d, codes) = (half_power(b[0]), nibbles(part(b, 1)));
    for (out, code) in out.iter_mut().zip(codes) {
        *out = d * DOUBLED[code as usize] as f32;
    }
}

/// Half of a scale in e4m3. The sign bit is ignored; NaN counts as 0.
fn half_e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = ((byte >> 3 & 15) as i32, (byte & 7) as f32);
    let power = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
    match byte {
        0x7f => 0.0,
        _ if exponent == 0 => mantissa * power(-10),
        _ => (1.0 + mantissa / 8.0) * power(exponent - 8),
    }
}

/// Four-bit codes: for each eight bytes the low halves, then the high halves.
pub fn codes16(bytes: &[u8; 32]) -> [u8; 64] {
    std::array::from_fn(|i| bytes[i / 16 * 8 + i % 8] >> (i / 8 % 2 * 4) & 15)
}

pub fn nvfp4(b: &[u8; 36], out: &mut [f32; 64]) {
    let codes = codes16(part(b, 4));
    for (i, out) in out.iter_mut().enumerate() {
        *out = half_e4m3(b[i / 16]) * DOUBLED[codes[i] as usize] as f32;
    }
}
