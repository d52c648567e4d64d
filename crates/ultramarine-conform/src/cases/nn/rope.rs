//! ROPE.

use crate::cases::{Case, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::nn::rope::{self as reference, Rotation};
use crate::reference::working;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{RopeAttrs, op};

/// Shapes, and how many pairs of the last axis are rotated: all, some, of rows that packs fit into or not.
const ROPES: [(&[i64], i64); 11] = [
    (&[5, 64], 32),
    (&[3, 4, 6, 16], 8),
    (&[4, 6, 16], 8),
    (&[2, 3, 7], 3),
    (&[4, 5, 24], 6),
    (&[3, 2, 4, 20], 8),
    (&[1000], 500),
    (&[6, 33, 10], 5),
    (&[2, 1, 2], 1),
    (&[3, 1, 5], 1),
    (&[1, 9, 12], 6),
];

/// Larger ones, for float32.
const LONG_ROPES: [(&[i64], i64); 3] =
    [(&[8, 300, 128], 64), (&[7, 500, 40], 10), (&[6, 400, 33], 16)];

/// ROPE.
pub fn rope(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(35);
    let mut under_test = |dtype: DType| {
        let long: &[_] = if dtype == DType::F32 { &LONG_ROPES } else { &[] };
        let mut cases: Vec<Case> = Vec::new();
        for (n, (shape, pairs)) in ROPES.iter().chain(long).copied().enumerate() {
            let all = scope.layouts(n).into_iter().map(|layout| (layout, layout));
            let shared = [Layout::Contiguous, Layout::Offset, Layout::Gaps]
                .map(|layout| (layout, Layout::Broadcast));
            for (k, (layout, shares)) in all.chain(shared).enumerate() {
                for traditional in [false, true] {
                    let how = Rotation { pairs, traditional, inverse: (n + k) % 2 == 1 };
                    cases.push(one(dtype, shape, how, (layout, shares), rng));
                }
            }
        }
        OpUnderTest::new(scope, op::ROPE, None, dtype, cases)
    };
    scope.dtypes(op::ROPE, None).into_iter().map(&mut under_test).collect()
}

fn one(
    dtype: DType,
    shape: &[i64],
    how: Rotation,
    (layout, shares): (Layout, Layout),
    rng: &mut Rng,
) -> Case {
    let mut of_pairs = shape.to_vec();
    of_pairs[shape.len() - 1] = how.pairs;
    let mut array = |dtype: DType, shape: &[i64]| {
        let size = shape.iter().product::<i64>() as usize;
        Array::cycle(dtype, shape, &ordinary(dtype, size, rng))
    };
    let mut x = array(dtype, shape);
    if how.inverse {
        let middle = x.values.len() / 2;
        x.values[middle] = Num::Real(f64::NAN);
    }
    let tables = [0, 1].map(|_| (array(working(dtype), &of_pairs), shares));
    let attributes = RopeAttrs::new(how.pairs as u32, how.traditional.into(), how.inverse.into());
    case(
        format!("{how:?} of {shape:?} {}, angles {}", layout.name(), shares.name()),
        (op::ROPE, words(&attributes)),
        [(x, layout)].into_iter().chain(tables).collect(),
        (dtype, shape.to_vec()),
        |arrays| reference::rope(how, arrays),
    )
}
