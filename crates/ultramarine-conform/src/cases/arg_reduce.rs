//! ARG_REDUCE.

use super::lanes::{LANES, LONG_LANE, ties_and_edges, with_long};
use super::{OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::DType;
use crate::reference::arg_reduce as reference;
use crate::tensor::Array;
use crate::values::Rng;
use ultramarine_abi::schema::{ArgReduceAttrs, arg_reduce, op};

/// ARG_REDUCE.
pub fn arg_reduce(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(6);
    let mut ops = Vec::new();
    if !DType::U32.in_mask(scope.storage) {
        return ops;
    }
    for code in 0..arg_reduce::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::ARG_REDUCE, Some(code)) {
            let mut cases = Vec::new();
            for (n, (shape, axis)) in with_long(dtype, &LANES, &[LONG_LANE]).into_iter().enumerate()
            {
                for layout in scope.layouts(n) {
                    let size: i64 = shape.iter().product();
                    let values = ties_and_edges(dtype, size as usize, scope, rng);
                    let input = Array::cycle(dtype, shape, &values);
                    let (kept, _) = reference::arg_reduce(code, axis, &input);
                    cases.push(case(
                        format!("axis {axis} of {shape:?} {}", layout.name()),
                        (op::ARG_REDUCE, words(&ArgReduceAttrs::new(code, axis as u32))),
                        vec![(input, layout)],
                        (DType::U32, kept),
                        |arrays| reference::arg_reduce(code, axis, &arrays[0]).1,
                    ));
                }
            }
            ops.push(OpUnderTest::new(scope, op::ARG_REDUCE, Some(code), dtype, cases));
        }
    }
    ops
}
