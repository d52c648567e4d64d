//! SELECT.

use super::{OpUnderTest, Scope, case, case_name, none, numbers, shapes};
use crate::compare::Expected;
use crate::dtype::DType;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, edges, ordinary};
use ultramarine_abi::schema::op;

/// SELECT.
pub fn select(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(4);
    let mut ops = Vec::new();
    for (n, dtype) in scope.dtypes(op::SELECT, None).into_iter().enumerate() {
        let mut cases = Vec::new();
        for layout in scope.layouts(n) {
            for shape in shapes(layout, 60) {
                let truth = Array::cycle(DType::BOOL, &shape, &numbers(&[0, 1, 1, 0, 1]));
                let mut values = ordinary(dtype, 60, rng);
                let b = Array::cycle(dtype, &shape, &values);
                values.reverse();
                values.extend(edges(dtype, scope.subnormals));
                let c = Array::cycle(dtype, &shape, &values);
                let inputs = vec![(truth, Layout::Contiguous), (b, layout), (c, layout)];
                cases.push(case(
                    case_name(&shape, layout),
                    (op::SELECT, none()),
                    inputs,
                    (dtype, shape),
                    |arrays| {
                        let [truth, b, c] = [0, 1, 2].map(|i| &arrays[i].values);
                        let pick = |i: usize| if truth[i].truth() { b[i] } else { c[i] };
                        (0..truth.len()).map(|i| Expected::exact(pick(i))).collect()
                    },
                ));
            }
        }
        ops.push(OpUnderTest::new(scope, op::SELECT, None, dtype, cases));
    }
    ops
}
