//! RMS_NORM and LAYER_NORM.

use crate::cases::{Case, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::nn::norm as reference;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{NoAttrs, OpId, op};

/// Shapes of which the last axis is normalized.
const NORMS: [&[i64]; 8] =
    [&[1000], &[5, 33], &[33, 5], &[3, 64], &[4, 7, 6], &[6, 1], &[1, 9, 1], &[2, 3, 2, 5]];

/// Larger ones, for float32: rows of a few hundred elements, of thousands, and of more than fast memory holds.
const LONG_NORMS: [&[i64]; 5] = [&[7, 800], &[2, 6000], &[3, 6001], &[2, 40_004], &[900, 33]];

fn norm(scope: &Scope, family: OpId, parameters: usize) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(33);
    let mut under_test = |dtype: DType| {
        let long: &[_] = if dtype == DType::F32 { &LONG_NORMS } else { &[] };
        let mut cases: Vec<Case> = Vec::new();
        for (n, shape) in NORMS.iter().chain(long).copied().enumerate() {
            let all = scope.layouts(n).into_iter().map(|layout| (layout, layout));
            let shared = (Layout::Contiguous, Layout::Broadcast);
            for (k, (layout, shares)) in all.chain([shared]).enumerate() {
                let size = shape.iter().product::<i64>() as usize;
                let eps = [1e-5, 0.5][(n + k) % 2];
                let mut values = ordinary(dtype, size, rng);
                if (n + k) % 4 == 3 {
                    values[size / 2] = Num::Real(f64::NAN);
                }
                let mut inputs = vec![(Array::cycle(dtype, shape, &values), layout)];
                for _ in 0..parameters {
                    let values = ordinary(dtype, size, rng);
                    inputs.push((Array::cycle(dtype, shape, &values), shares));
                }
                let mut made = case(
                    format!(
                        "of {shape:?} {}, parameters {}, epsilon {eps}",
                        layout.name(),
                        shares.name()
                    ),
                    (family, words(&NoAttrs::new())),
                    inputs,
                    (dtype, shape.to_vec()),
                    |arrays| reference::norm(eps, arrays),
                );
                made.request.scalars = vec![DType::F64.scalar(Num::Real(eps))];
                cases.push(made);
            }
        }
        OpUnderTest::new(scope, family, None, dtype, cases)
    };
    scope.dtypes(family, None).into_iter().map(&mut under_test).collect()
}

/// RMS_NORM.
pub fn rms_norm(scope: &Scope) -> Vec<OpUnderTest> {
    norm(scope, op::RMS_NORM, 1)
}

/// LAYER_NORM.
pub fn layer_norm(scope: &Scope) -> Vec<OpUnderTest> {
    norm(scope, op::LAYER_NORM, 2)
}
