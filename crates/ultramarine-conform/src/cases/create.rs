//! FILL and ARANGE.

use super::{OpUnderTest, Scope, case, none};
use crate::compare::Expected;
use crate::dtype::{DType, Num};
use crate::reference::create as reference;
use crate::tensor::size;
use crate::values::edges;
use ultramarine_abi::schema::{OpId, op};

/// The cases of an operation of the family, for each dtype.
pub fn of(op: OpId, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    Some(match op {
        op::FILL => fill(scope),
        op::ARANGE => arange(scope),
        _ => return None,
    })
}

/// FILL.
fn fill(scope: &Scope) -> Vec<OpUnderTest> {
    scope
        .dtypes(op::FILL, None)
        .into_iter()
        .map(|dtype| {
            let mut values = edges(dtype, scope.subnormals);
            values.truncate(if scope.full { usize::MAX } else { 6 });
            let mut cases = Vec::new();
            for (n, value) in values.into_iter().enumerate() {
                let shape = [vec![], vec![1], vec![1000], vec![7, 1, 5]][n % 4].clone();
                let expected = vec![Expected::exact(value); size(&shape)];
                let what = format!("{value} in {shape:?}");
                let mut made =
                    case(what, (op::FILL, none()), Vec::new(), (dtype, shape), |_| expected);
                made.request.scalars = vec![dtype.scalar(value)];
                cases.push(made);
            }
            OpUnderTest::new(scope, op::FILL, None, dtype, cases)
        })
        .collect()
}

/// ARANGE.
fn arange(scope: &Scope) -> Vec<OpUnderTest> {
    scope
        .dtypes(op::ARANGE, None)
        .into_iter()
        .filter(|d| d.is_int() || d.is_float())
        .map(|dtype| {
            let mut cases = Vec::new();
            for (n, start, step) in
                [(100, 3.0, 1.0), (1, -2.0, 1.0), (37, 0.5, -0.25), (64, 5.0, 2.0)]
            {
                let numbers = if dtype.is_float() {
                    [Num::Real(start), Num::Real(step)]
                } else {
                    [start, step * 4.0].map(|x: f64| Num::Int(x as i128))
                };
                let [start, step] = numbers;
                let what = format!("{n} from {start} by {step}");
                let wide = if dtype.is_float() { DType::F64 } else { DType::I64 };
                let mut made =
                    case(what, (op::ARANGE, none()), Vec::new(), (dtype, vec![n]), |_| {
                        reference::arange(dtype, n, start, step)
                    });
                made.request.scalars = vec![wide.scalar(start), wide.scalar(step)];
                cases.push(made);
            }
            OpUnderTest::new(scope, op::ARANGE, None, dtype, cases)
        })
        .collect()
}
