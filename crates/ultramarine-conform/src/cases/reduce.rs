//! REDUCE.

use super::{OpUnderTest, Scope, case, lanes::with_long};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::reduce as reference;
use crate::tensor::Array;
use crate::values::{Rng, edges, terms};
use ultramarine_abi::schema::{ReduceAttrs, op, reduce};

/// Shapes with axes to reduce.
const REDUCTIONS: [(&[i64], u64); 7] = [
    (&[1000], 0b1),
    (&[5, 33], 0b10),
    (&[33, 5], 0b01),
    (&[4, 7, 6], 0b101),
    (&[4, 7, 6], 0b010),
    (&[1, 9, 1], 0b111),
    (&[3, 4], 0),
];

/// Larger ones, for float32.
const LONG_REDUCTIONS: [(&[i64], u64); 3] =
    [(&[100_003], 0b1), (&[300, 401], 0b01), (&[300, 401], 0b10)];

/// REDUCE.
pub fn reduce(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(5);
    let mut ops = Vec::new();
    for code in 0..reduce::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::REDUCE, Some(code)) {
            let mut cases = Vec::new();
            for (n, (shape, axes)) in
                with_long(dtype, &REDUCTIONS, &LONG_REDUCTIONS).into_iter().enumerate()
            {
                for layout in scope.layouts(n) {
                    let size: i64 = shape.iter().product();
                    let mut values = terms(dtype, size as usize, code == reduce::PROD, rng);
                    if matches!(code, reduce::MIN | reduce::MAX) && n % 2 == 1 {
                        values.splice(0..1, edges(dtype, scope.subnormals));
                    }
                    // Change the values so that ALL is sometimes true and ANY is sometimes false.
                    if dtype == DType::BOOL && n % 3 == 0 {
                        values.fill(Num::Int((code == reduce::ALL).into()));
                    }
                    let input = Array::cycle(dtype, shape, &values);
                    let (kept, _) = reference::reduce(code, axes, &input);
                    cases.push(case(
                        format!("axes {axes:#b} of {shape:?} {}", layout.name()),
                        (op::REDUCE, words(&ReduceAttrs::new(code, axes))),
                        vec![(input, layout)],
                        (
                            if matches!(code, reduce::ALL | reduce::ANY) {
                                DType::BOOL
                            } else {
                                dtype
                            },
                            kept,
                        ),
                        |arrays| reference::reduce(code, axes, &arrays[0]).1,
                    ));
                }
            }
            ops.push(OpUnderTest::new(scope, op::REDUCE, Some(code), dtype, cases));
        }
    }
    ops
}
