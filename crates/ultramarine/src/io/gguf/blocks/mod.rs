//! Blocks of few-bit numbers. They are decoded to float32 as llama.cpp's reference does, and rounded once if another
//! dtype is requested. The operations and their order are part of the format, because other orders would round
//! differently.

pub(super) mod codebook;
pub(super) mod flat;
pub(super) mod float4;
mod grids;
pub(super) mod super_blocks;

use crate::dtype::Dtype;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Decodes blocks of `B` bytes to `N` numbers each, of a dtype to which floats are rounded.
pub(super) fn each<const B: usize, const N: usize>(
    from: &[u8],
    to: &mut [u8],
    dtype: Dtype,
    decode: impl Fn(&[u8; B], &mut [f32; N]),
) {
    let mut numbers = [0.0; N];
    for (block, target) in from.as_chunks().0.iter().zip(to.chunks_exact_mut(N * dtype.size())) {
        decode(block, &mut numbers);
        match dtype {
            Dtype::Float32 => put(target, &numbers, f32::to_le_bytes),
            Dtype::Bfloat16 => put(target, &numbers, |x| bf16::from_f32(x).to_le_bytes()),
            _ => {
                let mut rounded = [f16::ZERO; N];
                rounded.convert_from_f32_slice(&numbers);
                put(target, &rounded, f16::to_le_bytes);
            }
        }
    }
}

fn put<T: Copy, const S: usize>(target: &mut [u8], numbers: &[T], bytes: impl Fn(T) -> [u8; S]) {
    for (target, number) in target.as_chunks_mut().0.iter_mut().zip(numbers) {
        *target = bytes(*number);
    }
}

/// The `N` bytes of a block from byte `at` on.
pub(super) fn part<const N: usize>(block: &[u8], at: usize) -> &[u8; N] {
    // Blocks are arrays, and offsets in them are constants, so this cannot fail.
    block[at..].first_chunk().expect("parts are inside of their block")
}

/// The float16 number at byte `at` of a block.
pub(super) fn half(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes(*part(block, at)).to_f32()
}

/// Four-bit codes: the low halves of 16 bytes, then the high halves.
pub(super) fn nibbles(bytes: &[u8; 16]) -> [u8; 32] {
    std::array::from_fn(|i| if i < 16 { bytes[i] & 15 } else { bytes[i - 16] >> 4 })
}
