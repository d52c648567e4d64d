//! Blocks of 256 numbers ("K-quants"). Their groups have scales of few bits, which multiply one float16 number.

use super::flat::codes2;
use super::{half, part};

/// Calls `group` with the index of each group of `N` numbers.
fn groups<const N: usize>(out: &mut [f32; 256], mut group: impl FnMut(usize, &mut [f32; N])) {
    out.as_chunks_mut::<N>().0.iter_mut().enumerate().for_each(|(i, out)| group(i, out));
}

pub fn q2_k(b: &[u8; 84], out: &mut [f32; 256]) {
    let (d, dmin, codes) = (half(b, 80), half(b, 82), codes2(part(b, 16)));
    groups::<16>(out, |g, out| {
        let (dl, ml) = (d * (b[g] & 15) as f32, dmin * (b[g] >> 4) as f32);
        for (i, out) in out.iter_mut().enumerate() {
            *out = dl * codes[g * 16 + i] as f32 - ml;
        }
    });
}

pub fn q3_k(b: &[u8; 110], out: &mut [f32; 256]) {
    let (high, codes, scales) = (part::<32>(b, 0), codes2(part(b, 32)), part::<12>(b, 96));
    let d = half(b, 108);
    groups::<16>(out, |g, out| {
        // The four low bits are in the first eight bytes, the two high bits in the others.
        let low = scales[g % 8] >> (g / 8 * 4) & 15;
        let scale = (low | (scales[8 + g % 4] >> (g / 4 * 2) & 3) << 4) as i32 - 32;
        let dl = d * scale as f32;
        for (i, out) in out.iter_mut().enumerate() {
            let bit = high[g % 2 * 16 + i] >> (g / 2) & 1;
            // The high bit is stored inverted.
            *out = dl * (codes[g * 16 + i] as i32 - ((1 - bit as i32) << 2)) as f32;
        }
    });
}

/// The six-bit scale and offset of each of eight groups. For the last four groups, the high bits are stored above the
/// scales and offsets of the first four.
fn six_bits(s: &[u8; 12]) -> [(u8, u8); 8] {
    std::array::from_fn(|i| match i.checked_sub(4) {
        None => (s[i] & 63, s[4 + i] & 63),
        Some(j) => (s[8 + j] & 15 | s[j] >> 2 & 0x30, s[8 + j] >> 4 | s[4 + j] >> 2 & 0x30),
    })
}

/// Scales and offsets of the groups of a block that begins with two float16 numbers and 12 bytes. A number of group `g`
/// is `scales[g] * code - offsets[g]`. Both products are exact: 11 bits by 6.
pub fn scales_and_offsets(b: &[u8]) -> [(f32, f32); 8] {
    let (d, dmin) = (half(b, 0), half(b, 2));
    six_bits(part(b, 4)).map(|(scale, min)| (d * scale as f32, dmin * min as f32))
}

/// Four-bit codes of eight groups: for each 32 bytes the low halves, then the high halves.
pub fn codes4(bytes: &[u8; 128]) -> [u8; 256] {
    std::array::from_fn(|i| bytes[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15)
}

/// Five-bit codes: the four-bit codes, and for each group one bit of each of 32 bytes.
pub fn codes5(high: &[u8; 32], low: &[u8; 128]) -> [u8; 256] {
    let low = codes4(low);
    std::array::from_fn(|i| low[i] | (high[i % 32] >> (i / 32) & 1) << 4)
}

fn affine(b: &[u8], codes: [u8; 256], out: &mut [f32; 256]) {
    let scales = scales_and_offsets(b);
    groups::<32>(out, |g, out| {
        let (scale, offset) = scales[g];
        for (i, out) in out.iter_mut().enumerate() {
            *out = scale * codes[g * 32 + i] as f32 - offset;
        }
    });
}

pub fn q4_k(b: &[u8; 144], out: &mut [f32; 256]) {
    affine(b, codes4(part(b, 16)), out);
}

pub fn q5_k(b: &[u8; 176], out: &mut [f32; 256]) {
    affine(b, codes5(part(b, 16), part(b, 48)), out);
}

pub fn q6_k(b: &[u8; 210], out: &mut [f32; 256]) {
    let (low, high, scales) = (part::<128>(b, 0), part::<64>(b, 128), part::<16>(b, 192));
    let d = half(b, 208);
    groups::<16>(out, |g, out| {
        let dl = d * (scales[g] as i8) as f32;
        // Each half of the block has 64 bytes with low bits, and 32 with high bits.
        let (upper, at) = (g / 8, g % 8 * 16);
        for (i, out) in out.iter_mut().enumerate() {
            let low = low[upper * 64 + at % 64 + i] >> (at / 64 * 4) & 15;
            let high = high[upper * 32 + at % 32 + i] >> (at / 32 * 2) & 3;
            *out = dl * ((low | high << 4) as i32 - 32) as f32;
        }
    });
}

pub fn q8_k(b: &[u8; 292], out: &mut [f32; 256]) {
    let d = f32::from_le_bytes(*part(b, 0));
    for (out, code) in out.iter_mut().zip(part::<256>(b, 4)) {
        *out = d * (*code as i8) as f32;
    }
}
