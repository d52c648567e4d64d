//! SCAN.

use super::lanes::{LANES, with_long};
use super::{OpUnderTest, Scope, case};
use crate::device::words;
use crate::reference::scan as reference;
use crate::tensor::Array;
use crate::values::{Rng, terms};
use ultramarine_abi::schema::{ScanAttrs, op, reduce};

/// SCAN.
pub fn scan(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(7);
    let mut ops = Vec::new();
    for code in 0..reduce::NAMES.len() as u32 {
        for dtype in scope.dtypes(op::SCAN, Some(code)) {
            let mut cases = Vec::new();
            for (n, (shape, axis)) in
                with_long(dtype, &LANES, &[(&[3000], 0)]).into_iter().enumerate()
            {
                for (k, layout) in scope.layouts(n).into_iter().enumerate() {
                    let (reverse, inclusive) = ((n + k) % 2 == 1, (n / 2 + k) % 2 == 0);
                    let size: i64 = shape.iter().product();
                    let values = terms(dtype, size as usize, code == reduce::PROD, rng);
                    let input = Array::cycle(dtype, shape, &values);
                    let attributes =
                        ScanAttrs::new(code, axis as u32, reverse.into(), inclusive.into());
                    cases.push(case(
                        format!(
                            "axis {axis} of {shape:?}, reverse {reverse}, inclusive {inclusive}, {}",
                            layout.name()
                        ),
                        (op::SCAN, words(&attributes)),
                        vec![(input, layout)],
                        (dtype, shape.to_vec()),
                        |arrays| reference::scan(code, axis, reverse, inclusive, &arrays[0]),
                    ));
                }
            }
            ops.push(OpUnderTest::new(scope, op::SCAN, Some(code), dtype, cases));
        }
    }
    ops
}
