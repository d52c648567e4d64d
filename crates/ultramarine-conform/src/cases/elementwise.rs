//! UNARY and BINARY.

use super::{OpUnderTest, Scope, case, case_name, complex_special, in_place, numbers, placements};
use crate::compare::Expected;
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::{elementwise as reference, expected};
use crate::rules;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, edges, ordinary, unary_operands};
use ultramarine_abi::schema::{BinaryAttrs, OpId, UnaryAttrs, binary, op, unary};

/// The cases of an operation of the family, for each dtype.
pub fn of(op: OpId, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    Some(match op {
        op::UNARY => unary(scope),
        op::BINARY => binary(scope),
        _ => return None,
    })
}

/// UNARY: every code for every dtype.
fn unary(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(2);
    let mut ops = Vec::new();
    for code in 0..unary::NAMES.len() as u32 {
        for (n, dtype) in scope.dtypes(op::UNARY, Some(code)).into_iter().enumerate() {
            let values = unary_operands(code, dtype, scope.subnormals, rng);
            let to = reference::unary_dtype(code, dtype);
            let attributes = words(&UnaryAttrs::new(code));
            let mut cases = Vec::new();
            let wide = code == unary::EXP && dtype == DType::F32;
            for (layout, shape) in placements(scope, n + code as usize, values.len(), wide) {
                let input = Array::cycle(dtype, &shape, &values);
                cases.push(case(
                    case_name(&shape, layout),
                    (op::UNARY, attributes.clone()),
                    vec![(input, layout)],
                    (to, shape),
                    |arrays| unary_expected(code, dtype, &arrays[0].values),
                ));
            }
            if to == dtype {
                cases.push(in_place(&cases[0]));
            }
            if dtype.is_complex() {
                cases.extend(complex_special::case_of(code));
            }
            ops.push(OpUnderTest::new(scope, op::UNARY, Some(code), dtype, cases));
        }
    }
    ops
}

fn unary_expected(code: u32, dtype: DType, values: &[Num]) -> Vec<Expected> {
    let ulps = rules::ulps(op::UNARY, Some(code));
    let to = reference::unary_dtype(code, dtype);
    values
        .iter()
        .map(|x| match reference::unary(code, dtype, *x) {
            // Where a function oscillates, it magnifies the argument's own rounding error.
            _ if is_wild(code, x.real(), dtype) => Expected::ANY,
            Some(value) => {
                let at = value.complex().norm();
                let expected =
                    expected(ulps, if to == DType::BOOL { to } else { dtype }, value, at);
                Expected {
                    signed_zero: dtype.is_float() && reference::zero_sign_counts(code),
                    ..expected
                }
            }
            None => Expected::ANY,
        })
        .collect()
}

/// Returns true for arguments of trigonometric functions that are larger than those which all
/// libraries reduce exactly.
fn is_wild(code: u32, x: f64, dtype: DType) -> bool {
    let oscillates = matches!(code, unary::SIN | unary::COS | unary::TAN);
    oscillates && dtype.is_float() && x.is_finite() && x.abs() > 1e5
}

/// Every pair of two lists' values.
fn pairs(values: &[Num]) -> (Vec<Num>, Vec<Num>) {
    let first = values.iter().flat_map(|a| values.iter().map(move |_| *a)).collect();
    let second = values.iter().flat_map(|_| values.iter().copied()).collect();
    (first, second)
}

/// BINARY: every code for every dtype.
fn binary(scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(3);
    let mut ops = Vec::new();
    for code in 0..binary::NAMES.len() as u32 {
        for (n, dtype) in scope.dtypes(op::BINARY, Some(code)).into_iter().enumerate() {
            let mut values = edges(dtype, scope.subnormals);
            if !dtype.is_float() && matches!(code, binary::LEFT_SHIFT | binary::RIGHT_SHIFT) {
                values.extend(numbers(&[4, 5, 8, 15, 31, 63]).iter().map(|v| dtype.value(*v)));
            }
            let (mut first, mut second) = pairs(&values);
            first.extend(ordinary(dtype, 60, rng));
            second.extend(ordinary(dtype, 60, rng));
            let to = reference::binary_dtype(code, dtype);
            let attributes = words(&BinaryAttrs::new(code));
            let mut cases = Vec::new();
            let wide = code == binary::ADD && dtype == DType::F32;
            for (layout, shape) in placements(scope, n + code as usize, first.len(), wide) {
                let a = Array::cycle(dtype, &shape, &first);
                let b = Array::cycle(dtype, &shape, &second);
                // One of the two operands has the named layout; the other one is contiguous.
                let other = if layout == Layout::Broadcast { Layout::Contiguous } else { layout };
                cases.push(case(
                    case_name(&shape, layout),
                    (op::BINARY, attributes.clone()),
                    vec![(a, layout), (b, other)],
                    (to, shape),
                    |arrays| binary_expected(code, dtype, &arrays[0].values, &arrays[1].values),
                ));
            }
            if to == dtype {
                cases.push(in_place(&cases[0]));
            }
            ops.push(OpUnderTest::new(scope, op::BINARY, Some(code), dtype, cases));
        }
    }
    ops
}

fn binary_expected(code: u32, dtype: DType, first: &[Num], second: &[Num]) -> Vec<Expected> {
    let ulps = rules::ulps(op::BINARY, Some(code));
    let to = reference::binary_dtype(code, dtype);
    let pairs = first.iter().zip(second);
    pairs
        .map(|(x, y)| {
            let Some(value) = reference::binary(code, dtype, *x, *y) else { return Expected::ANY };
            if to == DType::BOOL {
                return Expected::exact(value);
            }
            let norms = [x.complex().norm(), y.complex().norm(), value.complex().norm()];
            let at = match code {
                // The error of each part of a complex sum or product is relative to the magnitude
                // of the whole number.
                binary::MULTIPLY if dtype.is_complex() => norms[0] * norms[1],
                binary::LOGADDEXP => norms.into_iter().fold(1.0, f64::max),
                binary::REMAINDER => norms[1].max(norms[2]),
                _ => norms[2],
            };
            if dtype.is_complex() && !value.complex().is_finite() {
                return Expected::ANY;
            }
            // If the quotient is near a whole number, rounding to either side is right.
            if code == binary::FLOOR_DIVIDE && dtype.is_float() {
                return quotient(dtype, x.real(), y.real(), value);
            }
            if dtype.is_complex() && code == binary::POWER {
                return expected(ulps, dtype, value, 8.0 * at);
            }
            let signed_zero = code == binary::REMAINDER;
            Expected { signed_zero, ..expected(ulps, dtype, value, at) }
        })
        .collect()
}

/// The expected floor of a quotient. For numbers too large to have fractions it is the quotient,
/// with the quotient's error.
fn quotient(dtype: DType, x: f64, y: f64, value: Num) -> Expected {
    let exact = x / y;
    let margin = 2.5 * dtype.ulp(exact);
    if !exact.is_finite() {
        return Expected::exact(value);
    }
    if margin >= 0.5 {
        return Expected::near(value, 2.0 * margin);
    }
    let close = (exact - exact.round()).abs() <= margin && exact.round() != exact;
    if close { Expected::ANY } else { Expected::exact(value) }
}
