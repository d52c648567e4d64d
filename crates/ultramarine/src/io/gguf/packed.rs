//! Converts blocks to quantised arrays: words, with scales and biases of groups.
//!
//! Words hold each row's elements in order, the lowest bits first. Codes are reordered, because in blocks the two
//! halves of a byte belong to elements far apart. A number is `scale * code + bias` in the affine modes of 4, 5 and 8
//! bits, in groups of 32.

use super::blocks::{flat, float4, half, nibbles, part, super_blocks};
use crate::dtype::Dtype;
use half::f16;

/// The quantised array for a format.
pub(super) struct PackedFormat {
    pub bits: usize,
    pub group_size: usize,
    /// Dtype of scales and biases.
    pub scale: Dtype,
    /// True if MLX also packs this format.
    pub common: bool,
    pub words: Part,
    pub scales: Part,
    pub biases: Option<Part>,
}

/// Converts blocks to a part of the array.
pub(super) type Part = fn(&[u8], &mut [u8]);

/// Converts each block of `B` bytes to `M` bytes.
fn each<const B: usize, const M: usize>(
    from: &[u8],
    to: &mut [u8],
    part: impl Fn(&[u8; B]) -> [u8; M],
) {
    for (block, target) in from.as_chunks().0.iter().zip(to.as_chunks_mut().0) {
        *target = part(block);
    }
}

/// Packs four-bit codes, two to a byte.
fn pack4<const N: usize, const M: usize>(codes: [u8; N]) -> [u8; M] {
    std::array::from_fn(|i| codes[2 * i] | codes[2 * i + 1] << 4)
}

/// Packs five-bit codes, eight to five bytes.
fn pack5<const N: usize, const M: usize>(codes: [u8; N]) -> [u8; M] {
    let mut out = [0; M];
    for (codes, bytes) in codes.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<5>().0) {
        let word = codes.iter().rev().fold(0u64, |word, code| word << 5 | *code as u64);
        bytes.copy_from_slice(&word.to_le_bytes()[..5]);
    }
    out
}

/// `factor * d` for the float16 number `d` at the beginning of each block.
fn times<const B: usize>(from: &[u8], to: &mut [u8], factor: f32) {
    each::<B, 2>(from, to, |b| f16::from_f32(factor * half(b, 0)).to_le_bytes());
}

/// The bias for codes whose middle is 8 in Q4_0 and 128 in Q8_0. It is exact unless float16 overflows.
pub(super) fn bias_of(scale: f16, middle: f32) -> f16 {
    f16::from_f32(-middle * scale.to_f32())
}

pub(super) static Q4_0: PackedFormat = PackedFormat {
    bits: 4,
    group_size: 32,
    scale: Dtype::Float16,
    common: true,
    words: |from, to| each::<18, 16>(from, to, |b| pack4(nibbles(part(b, 2)))),
    scales: |from, to| each::<18, 2>(from, to, |b| *part(b, 0)),
    biases: Some(|from, to| times::<18>(from, to, -8.0)),
};

pub(super) static Q4_1: PackedFormat = PackedFormat {
    words: |from, to| each::<20, 16>(from, to, |b| pack4(nibbles(part(b, 4)))),
    scales: |from, to| each::<20, 2>(from, to, |b| *part(b, 0)),
    biases: Some(|from, to| each::<20, 2>(from, to, |b| *part(b, 2))),
    ..Q4_0
};

pub(super) static Q8_0: PackedFormat = PackedFormat {
    bits: 8,
    words: |from, to| each::<34, 32>(from, to, |b| part::<32>(b, 2).map(|code| code ^ 128)),
    scales: |from, to| each::<34, 2>(from, to, |b| *part(b, 0)),
    biases: Some(|from, to| times::<34>(from, to, -128.0)),
    ..Q4_0
};

pub(super) static Q5_0: PackedFormat = PackedFormat {
    bits: 5,
    common: false,
    words: |from, to| each::<22, 20>(from, to, |b| pack5(flat::codes5(part(b, 2), part(b, 6)))),
    scales: |from, to| each::<22, 2>(from, to, |b| *part(b, 0)),
    biases: Some(|from, to| times::<22>(from, to, -16.0)),
    ..Q4_0
};

pub(super) static Q5_1: PackedFormat = PackedFormat {
    words: |from, to| each::<24, 20>(from, to, |b| pack5(flat::codes5(part(b, 4), part(b, 8)))),
    scales: |from, to| each::<24, 2>(from, to, |b| *part(b, 0)),
    biases: Some(|from, to| each::<24, 2>(from, to, |b| *part(b, 2))),
    ..Q5_0
};

/// Scales of super-blocks. They are products of 11 bits by 6, which float32 holds exactly and float16 does not.
fn scales<const B: usize>(from: &[u8], to: &mut [u8]) {
    each::<B, 32>(from, to, |b| {
        floats(super_blocks::scales_and_offsets(b).map(|(scale, _)| scale))
    });
}

fn biases<const B: usize>(from: &[u8], to: &mut [u8]) {
    each::<B, 32>(from, to, |b| {
        floats(super_blocks::scales_and_offsets(b).map(|(_, offset)| -offset))
    });
}

fn floats(numbers: [f32; 8]) -> [u8; 32] {
    std::array::from_fn(|i| numbers[i / 4].to_le_bytes()[i % 4])
}

pub(super) static Q4_K: PackedFormat = PackedFormat {
    scale: Dtype::Float32,
    common: false,
    words: |from, to| each::<144, 128>(from, to, |b| pack4(super_blocks::codes4(part(b, 16)))),
    scales: scales::<144>,
    biases: Some(biases::<144>),
    ..Q4_0
};

pub(super) static Q5_K: PackedFormat = PackedFormat {
    bits: 5,
    words: |from, to| {
        each::<176, 160>(from, to, |b| pack5(super_blocks::codes5(part(b, 16), part(b, 48))))
    },
    scales: scales::<176>,
    biases: Some(biases::<176>),
    ..Q4_K
};

/// Maps the negative zero of e2m1 to zero, because the format has no negative zero.
fn zeros(code: u8) -> u8 {
    if code == 8 { 0 } else { code }
}

pub(super) static MXFP4: PackedFormat = PackedFormat {
    scale: Dtype::Uint8,
    common: false,
    words: |from, to| each::<17, 16>(from, to, |b| pack4(nibbles(part(b, 1)).map(zeros))),
    scales: |from, to| each::<17, 1>(from, to, |b| [b[0]]),
    biases: None,
    ..Q4_0
};

pub(super) static NVFP4: PackedFormat = PackedFormat {
    group_size: 16,
    words: |from, to| each::<36, 32>(from, to, |b| pack4(float4::codes16(part(b, 4)).map(zeros))),
    // The sign is ignored, and NaN counts as 0.
    scales: |from, to| {
        each::<36, 4>(from, to, |b| part::<4>(b, 0).map(|e| if e == 127 { 0 } else { e & 127 }))
    },
    ..MXFP4
};
