//! Blocks whose codes select rows of a codebook ("IQ").

use super::grids::{IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS, IQ4};
use super::{half, nibbles, part};

/// Calls `eight` with the index of each group of eight numbers.
fn eights(out: &mut [f32; 256], mut eight: impl FnMut(usize, &mut [f32; 8])) {
    out.as_chunks_mut().0.iter_mut().enumerate().for_each(|(i, out)| eight(i, out));
}

/// `scale * row`, negated where the bit of `signs` is set.
fn signed(out: &mut [f32; 8], scale: f32, row: impl Fn(usize) -> i8, signs: u8) {
    for (i, out) in out.iter_mut().enumerate() {
        let sign = if signs >> i & 1 == 1 { -1.0 } else { 1.0 };
        *out = scale * row(i) as f32 * sign;
    }
}

/// Eight signs from seven bits: the number of set signs is even.
fn even(bits: u32) -> u8 {
    let bits = (bits & 127) as u8;
    bits | ((bits.count_ones() as u8 & 1) << 7)
}

fn u16_at(b: &[u8], at: usize) -> usize {
    u16::from_le_bytes(*part(b, at)) as usize
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*part(b, at))
}

/// The `i`-th four-bit number.
fn nibble(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 2] >> (i % 2 * 4) & 15
}

pub fn iq2_xxs(b: &[u8; 66], out: &mut [f32; 256]) {
    let d = half(b, 0);
    eights(out, |i, out| {
        // Each group of 32 numbers has four codes, and a word with signs and the scale.
        let (group, j) = (2 + i / 4 * 8, i % 4);
        let word = u32_at(b, group + 4);
        let scale = d * (0.5 + (word >> 28) as f32) * 0.25;
        let row = &IQ2_XXS[b[group + j] as usize];
        signed(out, scale, |k| row[k], even(word >> (7 * j)));
    });
}

pub fn iq2_xs(b: &[u8; 74], out: &mut [f32; 256]) {
    let d = half(b, 0);
    eights(out, |i, out| {
        let word = u16_at(b, 2 + 2 * i);
        let scale = d * (0.5 + nibble(&b[66..], i / 2) as f32) * 0.25;
        let row = &IQ2_XS[word & 511];
        signed(out, scale, |k| row[k], even(word as u32 >> 9));
    });
}

pub fn iq2_s(b: &[u8; 82], out: &mut [f32; 256]) {
    let d = half(b, 0);
    eights(out, |i, out| {
        let high = b[66 + i / 4] >> (i % 4 * 2) & 3;
        let scale = d * (0.5 + nibble(&b[74..], i / 2) as f32) * 0.25;
        let row = &IQ2_S[b[2 + i] as usize | (high as usize) << 8];
        signed(out, scale, |k| row[k], b[34 + i]);
    });
}

pub fn iq3_xxs(b: &[u8; 98], out: &mut [f32; 256]) {
    let d = half(b, 0);
    eights(out, |i, out| {
        let word = u32_at(b, 66 + i / 4 * 4);
        let scale = d * (0.5 + (word >> 28) as f32) * 0.5;
        let rows = [2 * i, 2 * i + 1].map(|code| &IQ3_XXS[b[2 + code] as usize]);
        signed(out, scale, |k| rows[k / 4][k % 4], even(word >> (i % 4 * 7)));
    });
}

pub fn iq3_s(b: &[u8; 110], out: &mut [f32; 256]) {
    let d = half(b, 0);
    eights(out, |i, out| {
        let scale = d * (1 + 2 * nibble(&b[106..], i / 4)) as f32;
        let rows = [2 * i, 2 * i + 1].map(|code| {
            let high = b[66 + code / 8] >> (code % 8) & 1;
            &IQ3_S[b[2 + code] as usize | (high as usize) << 8]
        });
        signed(out, scale, |k| rows[k / 4][k % 4], b[74 + i]);
    });
}

/// `scale * (row + delta)`, where `delta` is plus or minus an eighth.
fn near(out: &mut [f32; 8], scale: f32, code: usize, negative: bool) {
    let delta = if negative { -0.125 } else { 0.125 };
    for (out, number) in out.iter_mut().zip(IQ1_S[code]) {
        *out = scale * (number as f32 + delta);
    }
}

pub fn iq1_s(b: &[u8; 50], out: &mut [f32; 256]) {
    let d = half(b, 0);
    eights(out, |i, out| {
        let high = u16_at(b, 34 + i / 4 * 2);
        let scale = d * (2 * (high >> 12 & 7) + 1) as f32;
        let code = b[2 + i] as usize | (high >> (i % 4 * 3) & 7) << 8;
        near(out, scale, code, high >> 15 == 1);
    });
}

pub fn iq1_m(b: &[u8; 56], out: &mut [f32; 256]) {
    // The block's scale is stored in the highest bits of the four words with the group scales.
    let d: u16 = (0..4).map(|i| (b[49 + 2 * i] as u16 >> 4) << (4 * i)).sum();
    let d = half(&d.to_le_bytes(), 0);
    eights(out, |i, out| {
        let scale = u16_at(b, 48 + i / 8 * 2) >> (i / 2 % 4 * 3) & 7;
        let high = nibble(&b[32..], i) as usize;
        let code = b[i] as usize | (high & 7) << 8;
        near(out, d * (2 * scale + 1) as f32, code, high & 8 != 0);
    });
}

fn chosen(out: &mut [f32; 32], scale: f32, codes: &[u8; 16]) {
    for (out, code) in out.iter_mut().zip(nibbles(codes)) {
        *out = scale * IQ4[code as usize] as f32;
    }
}

pub fn iq4_nl(b: &[u8; 18], out: &mut [f32; 32]) {
    chosen(out, half(b, 0), part(b, 2));
}

pub fn iq4_xs(b: &[u8; 136], out: &mut [f32; 256]) {
    let (d, high) = (half(b, 0), u16_at(b, 2));
    for (g, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let scale = nibble(&b[4..], g) as i32 | ((high >> (2 * g) & 3) as i32) << 4;
        chosen(out, d * (scale - 32) as f32, part(b, 8 + 16 * g));
    }
}
