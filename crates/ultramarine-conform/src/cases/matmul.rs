//! Products of matrices.

use super::{OpUnderTest, PRECISIONS, Scope, case, grouped};
use crate::device::words;
use crate::dtype::DType;
use crate::reference::matmul as reference;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::precision;
use ultramarine_abi::schema::{OpId, PrecisionAttrs, op};

/// The cases of an operation of the family, for each dtype.
pub fn of(op: OpId, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    Some(match op {
        op::MATMUL => matmul(scope),
        op::GATHER_MATMUL => grouped::gather_matmul(scope),
        op::SEGMENTED_MATMUL => grouped::segmented_matmul(scope),
        _ => return None,
    })
}

/// MATMUL.
fn matmul(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(9);
    // m, k, n, batch. Backends may have a separate kernel for a matrix and a vector, which reads
    // rows in whole words.
    let sizes: [(i64, i64, i64, &[i64]); 10] = [
        (3, 5, 4, &[]),
        (1, 64, 1, &[]),
        (1, 33, 17, &[]),
        (17, 33, 1, &[]),
        (64, 100, 48, &[]),
        (5, 7, 6, &[3]),
        (2, 3, 2, &[2, 2]),
        (130, 257, 70, &[]),
        (801, 1096, 1, &[]),
        (5, 2320, 1, &[]),
    ];
    let mut cases = |dtype: DType, precision: u32, epsilon: f64| {
        let mut cases = Vec::new();
        for (i, (m, k, n, batch)) in sizes.into_iter().enumerate() {
            for layout in scope.layouts(if i == 5 { 2 } else { i }) {
                // Broadcasting is only tested along a batch.
                if layout == Layout::Broadcast && batch.is_empty() {
                    continue;
                }
                let shape = |a: i64, b: i64| [batch, &[a, b]].concat();
                let values = |n: i64, rng: &mut Rng| ordinary(dtype, n as usize, rng);
                let a = Array::cycle(dtype, &shape(m, k), &values(m * k * 4, rng));
                let b = Array::cycle(dtype, &shape(k, n), &values(k * n * 4, rng));
                cases.push(case(
                    format!("{batch:?} ({m}, {k}) x ({k}, {n}) {}", layout.name()),
                    (op::MATMUL, words(&PrecisionAttrs::new(precision))),
                    vec![(a, layout), (b, layout)],
                    (dtype, shape(m, n)),
                    |arrays| reference::matmul(&arrays[0], &arrays[1], epsilon).1,
                ));
            }
        }
        cases
    };
    let mut all = Vec::new();
    for dtype in scope.dtypes(op::MATMUL, None) {
        let cases = cases(dtype, precision::HIGHEST, scope.reduced(dtype));
        all.push(OpUnderTest::new(scope, op::MATMUL, None, dtype, cases));
    }
    for (name, precision, epsilon) in PRECISIONS {
        let cases = cases(DType::F32, precision, epsilon);
        all.push(OpUnderTest::in_precision(op::MATMUL, name, cases));
    }
    all
}
