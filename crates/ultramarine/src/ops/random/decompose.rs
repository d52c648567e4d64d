//! Decomposition of random bits: the cipher in operations of uint32.

use crate::error::{Error, Result};
use crate::ops::rules::builders::{bin, slice_axis};
use crate::ops::rules::decomposition::{Candidates, Decompose};
use crate::{array::Array, dtype::Dtype, ops::shape::concatenate::concatenate, shape::Shape};
use ultramarine_abi::schema::binary;

fn uint(v: u32) -> Array {
    Array::scalar(v)
}

/// Candidates for random bits: the cipher in operations of uint32.
pub(crate) fn candidates(d: &Decompose<'_>, candidates: &mut Candidates) {
    candidates.add(cipher(&d.inputs[0], d));
}

/// Threefry-2x32 with 20 rounds, applied to the counters that the contract specifies, for all keys
/// at once.
fn cipher(keys: &Array, d: &Decompose<'_>) -> Result<Array> {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let axis = keys.ndim() - 1;
    let (n, width) = (d.shape[axis], d.dtype.size());
    let words = (n * width).div_ceil(4);
    let (half, odd) = (words / 2, words % 2);
    let low = u32::try_from(half + odd)
        .map_err(|_| Error::value("random_bits", "too many for one key"))?;
    let add = |a: &Array, b: &Array| bin(binary::ADD, a, b);
    let xor = |a: &Array, b: &Array| bin(binary::BITWISE_XOR, a, b);
    let [k0, k1] = [slice_axis(keys, axis, 0, 1)?, slice_axis(keys, axis, 1, 1)?];
    let key = [k0.clone(), k1.clone(), xor(&xor(&k0, &k1)?, &uint(0x1BD1_1BDA))?];
    let first = Array::arange(0.0, low as f64, 1.0, Dtype::Uint32)?;
    // With an odd number of words the last counter is (half, 0).
    let mut second = add(&first, &uint(low))?;
    if odd == 1 {
        let zero = Array::zeros(&[1], Dtype::Uint32)?;
        second = concatenate(&[slice_axis(&second, 0, 0, half)?, zero], 0)?;
    }
    let mut wide = Shape::from_slice(keys.shape());
    wide[axis] = low as usize;
    let (mut a, mut b) = (add(&first, &key[0])?, add(&second, &key[1])?);
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            a = add(&a, &b)?;
            let left = bin(binary::LEFT_SHIFT, &b, &uint(rotation))?;
            let right = bin(binary::RIGHT_SHIFT, &b, &uint(32 - rotation))?;
            b = xor(&bin(binary::BITWISE_OR, &left, &right)?, &a)?;
        }
        a = add(&a, &key[(group + 1) % 3])?;
        b = add(&add(&b, &key[(group + 2) % 3])?, &uint(group as u32 + 1))?;
    }
    let parts = [a.broadcast_to(&wide)?, slice_axis(&b.broadcast_to(&wide)?, axis, 0, half)?];
    let words = concatenate(&parts, axis as isize)?;
    // Cut to the requested number of bytes. The words are little-endian.
    slice_axis(&words.view(d.dtype)?, axis, 0, n)
}
