//! Blocks with one scale, and in some formats an offset.

use super::{half, nibbles, part};

/// Five-bit codes: nibbles, and their highest bits as a 32-bit number.
pub fn codes5(high: &[u8; 4], low: &[u8; 16]) -> [u8; 32] {
    let (high, low) = (u32::from_le_bytes(*high), nibbles(low));
    std::array::from_fn(|i| low[i] | ((high >> i & 1) as u8) << 4)
}

/// Two-bit codes: first the codes of 32 bytes in four runs, the lowest bits first, then those of the next 32 bytes.
pub fn codes2(bytes: &[u8; 64]) -> [u8; 256] {
    std::array::from_fn(|i| bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3)
}

/// `d * (code - middle)`
fn scaled<const N: usize>(d: f32, codes: [u8; N], middle: i32, out: &mut [f32; N]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = d * (code as i32 - middle) as f32;
    }
}

/// `d * code + m`
fn shifted<const N: usize>(d: f32, codes: [u8; N], m: f32, out: &mut [f32; N]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = d * code as f32 + m;
    }
}

pub fn q1_0(b: &[u8; 18], out: &mut [f32; 128]) {
    let (d, bits) = (half(b, 0), part::<16>(b, 2));
    for (i, out) in out.iter_mut().enumerate() {
        *out = if bits[i / 8] >> (i % 8) & 1 == 1 { d } else { -d };
    }
}

pub fn q4_0(b: &[u8; 18], out: &mut [f32; 32]) {
    scaled(half(b, 0), nibbles(part(b, 2)), 8, out);
}

pub fn q4_1(b: &[u8; 20], out: &mut [f32; 32]) {
    shifted(half(b, 0), nibbles(part(b, 4)), half(b, 2), out);
}

pub fn q5_0(b: &[u8; 22], out: &mut [f32; 32]) {
    scaled(half(b, 0), codes5(part(b, 2), part(b, 6)), 16, out);
}

pub fn q5_1(b: &[u8; 24], out: &mut [f32; 32]) {
    shifted(half(b, 0), codes5(part(b, 4), part(b, 8)), half(b, 2), out);
}

pub fn q8_0(b: &[u8; 34], out: &mut [f32; 32]) {
    let (d, codes) = (half(b, 0), part::<32>(b, 2));
    for (out, code) in out.iter_mut().zip(codes) {
        *out = d * (*code as i8) as f32;
    }
}

/// Ternary digits, five to a byte. The byte is a fraction of 256, so multiplying by three gives the first digit.
pub fn tq1_0(b: &[u8; 54], out: &mut [f32; 256]) {
    let (d, mut codes) = (half(b, 52), [0u8; 256]);
    let digits = |codes: &mut [u8], bytes: &[u8]| {
        let mut power = 1u8;
        for run in codes.chunks_exact_mut(bytes.len()) {
            for (code, byte) in run.iter_mut().zip(bytes) {
                *code = ((byte.wrapping_mul(power) as u16 * 3) >> 8) as u8;
            }
            power = power.wrapping_mul(3);
        }
    };
    digits(&mut codes[..160], &b[..32]);
    digits(&mut codes[160..240], &b[32..48]);
    digits(&mut codes[240..], &b[48..52]);
    scaled(d, codes, 1, out);
}

pub fn tq2_0(b: &[u8; 66], out: &mut [f32; 256]) {
    scaled(half(b, 64), codes2(part(b, 0)), 1, out);
}
