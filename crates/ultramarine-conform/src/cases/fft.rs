//! FFT.

use super::{Case, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::fft as reference;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{FftAttrs, fft, op};

/// Shapes, and transform lengths. The axis of size 0 in a shape is the axis of the transform. The
/// lengths are powers of two, small primes, large primes and products.
const SHAPES: [(&[i64], &[i64]); 4] = [
    (&[0], &[1, 2, 3, 8, 97, 1024]),
    (&[3, 0], &[1, 4, 5, 30, 64]),
    (&[0, 9], &[2, 7, 16]),
    (&[2, 0, 3], &[1, 6, 17]),
];

/// FFT.
pub fn fft(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(19);
    let mut ops = Vec::new();
    let stored = |dtype: DType| dtype.in_mask(scope.storage);
    for code in 0..fft::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::FFT, Some(code)) {
            let to = if code == fft::REAL_BACKWARD { DType::F32 } else { DType::C64 };
            if !stored(to) {
                continue;
            }
            let mut cases = Vec::new();
            for (n, (shape, lengths)) in SHAPES.into_iter().enumerate() {
                for (k, length) in lengths.iter().enumerate() {
                    for layout in scope.layouts(n + k) {
                        cases.push(one(code, (dtype, to), shape, *length, layout, rng));
                    }
                }
            }
            ops.push(OpUnderTest::new(scope, op::FFT, Some(code), dtype, cases));
        }
    }
    ops
}

fn one(
    code: u32,
    (dtype, to): (DType, DType),
    shape: &[i64],
    length: i64,
    layout: Layout,
    rng: &mut Rng,
) -> Case {
    let axis = shape.iter().position(|n| *n == 0).unwrap_or_default();
    let with = |size: i64| {
        let mut shape = shape.to_vec();
        shape[axis] = size;
        shape
    };
    let half = length / 2 + 1;
    let (from, result) = match code {
        fft::REAL => (with(length), with(half)),
        fft::REAL_BACKWARD => (with(half), with(length)),
        _ => (with(length), with(length)),
    };
    let size: i64 = from.iter().product();
    let values = ordinary(dtype, size as usize, rng);
    let input = Array::cycle(dtype, &from, &values);
    let scale = if length % 2 == 0 { 1.0 / length as f64 } else { 1.0 };
    let mut made = case(
        format!("{length} elements, axis {axis} of {from:?}, times {scale}, {}", layout.name()),
        (op::FFT, words(&FftAttrs::new(code, axis as u32))),
        vec![(input, layout)],
        (to, result.clone()),
        |arrays| reference::fft(code, axis, scale, &result, &arrays[0]),
    );
    made.request.scalars = vec![DType::F64.scalar(Num::Real(scale))];
    made
}
