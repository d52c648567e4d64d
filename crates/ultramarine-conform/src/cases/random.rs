//! RANDOM_BITS.

use super::{OpUnderTest, Scope, case, none, numbers};
use crate::compare::Expected;
use crate::dtype::DType;
use crate::reference::random as reference;
use crate::tensor::{Array, Layout};
use ultramarine_abi::schema::op;

/// RANDOM_BITS.
pub fn random_bits(scope: &Scope) -> Vec<OpUnderTest> {
    if !DType::U32.in_mask(scope.storage) {
        return Vec::new();
    }
    let keys = [0i64, 7, 0xdead_beef, 0xcafe, 256, 5];
    scope
        .dtypes(op::RANDOM_BITS, None)
        .into_iter()
        .map(|dtype| {
            let mut cases = Vec::new();
            for n in [1i64, 2, 3, 7, 64, 1001] {
                let input = Array::cycle(DType::U32, &[3, 2], &numbers(&keys));
                cases.push(case(
                    format!("3 keys, {n} numbers each"),
                    (op::RANDOM_BITS, none()),
                    vec![(input, Layout::Contiguous)],
                    (dtype, vec![3, n]),
                    |arrays| random_expected(dtype, n as usize, &arrays[0]),
                ));
            }
            OpUnderTest::new(scope, op::RANDOM_BITS, None, dtype, cases)
        })
        .collect()
}

fn random_expected(dtype: DType, n: usize, keys: &Array) -> Vec<Expected> {
    let width = dtype.size();
    let mut expected = Vec::new();
    for key in keys.values.chunks(2) {
        let key = [key[0].int() as u32, key[1].int() as u32];
        let bytes = reference::bytes(key, n * width);
        expected.extend(bytes.chunks(width).map(|b| Expected::exact(dtype.read(b))));
    }
    expected
}
