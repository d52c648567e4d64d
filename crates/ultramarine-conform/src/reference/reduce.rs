//! REDUCE, and the error bounds of sums.

use super::{elementwise::logaddexp, sort::compare, working};
use crate::compare::Expected;
use crate::dtype::{DType, Kind, Num};
use crate::tensor::{Array, each_index};
use num_complex::Complex64;
use std::cmp::Ordering;
use ultramarine_abi::schema::reduce;

/// The allowed error of a floating sum of `n` terms whose magnitudes sum to `size`, in any order of
/// additions and without special care. The errors of a few equal terms may all have the same sign;
/// for many terms, they are expected to cancel.
pub(super) fn sum_slack(dtype: DType, n: usize, size: f64) -> f64 {
    let terms = if n <= 4096 { n as f64 / 2.0 } else { (n as f64).sqrt() } + 3.0;
    let own = if dtype.is_complex() { 2.0 } else { 1.0 };
    if n <= 1 { 0.0 } else { own * terms * working(dtype).epsilon() * size }
}

/// A floating sum whose terms have magnitudes that sum to `size`.
pub(super) fn sum(value: Num, slack: f64, size: f64) -> Expected {
    Expected { at: size, ..Expected::near(value, slack) }
}

/// A reduction of values.
pub(super) fn reduced(code: u32, dtype: DType, values: &[Num]) -> Expected {
    let n = values.len();
    match code {
        reduce::ALL => return Expected::exact(Num::Int(values.iter().all(|v| v.truth()).into())),
        reduce::ANY => return Expected::exact(Num::Int(values.iter().any(|v| v.truth()).into())),
        reduce::MIN => return Expected::exact(extreme(values, true)),
        reduce::MAX => return Expected::exact(extreme(values, false)),
        _ => {}
    }
    let is_sum = code == reduce::SUM;
    match dtype.kind() {
        Kind::Float | Kind::Complex => {
            let parts = values.iter().map(|v| v.complex());
            let size: f64 = parts.clone().map(|z| z.norm()).sum();
            let (value, slack, size) = if code == reduce::LOGADDEXP && dtype.is_complex() {
                // The contract does not define the branch of the angle.
                return Expected::ANY;
            } else if code == reduce::LOGADDEXP {
                let total = values.iter().fold(f64::NEG_INFINITY, |t, v| logaddexp(t, v.real()));
                (total.into(), 8.0 * sum_slack(dtype, n, 1.0 + total.abs()), 1.0)
            } else if is_sum {
                (parts.sum::<Complex64>(), sum_slack(dtype, n, size), size)
            } else {
                let product: Complex64 = parts.product();
                (product, sum_slack(dtype, n, n as f64 * product.norm()), product.norm())
            };
            let slack = if slack.is_finite() { slack } else { 0.0 };
            let value = match dtype.kind() {
                Kind::Complex => Num::Complex(value.re, value.im),
                // Complex arithmetic would turn infinities into NaN.
                _ if is_sum => Num::Real(values.iter().map(|v| v.real()).sum()),
                _ if code == reduce::PROD => Num::Real(values.iter().map(|v| v.real()).product()),
                _ => Num::Real(value.re),
            };
            sum(value, slack, size)
        }
        _ => Expected::exact(Num::Int(values.iter().fold(i128::from(!is_sum), |total, v| {
            dtype.wrap(if is_sum { total + v.int() } else { total.wrapping_mul(v.int()) })
        }))),
    }
}

pub(super) fn extreme(values: &[Num], smallest: bool) -> Num {
    let mut best = values[0];
    for v in values {
        if v.is_nan() {
            return *v;
        }
        let order = compare(*v, best);
        if order == if smallest { Ordering::Less } else { Ordering::Greater } {
            best = *v;
        }
    }
    best
}

/// REDUCE: the output keeps reduced axes with size 1.
pub fn reduce(code: u32, axes: u64, input: &Array) -> (Vec<i64>, Vec<Expected>) {
    let reduced_axis = |a: usize| axes >> a & 1 == 1;
    let shape: Vec<i64> =
        input.shape.iter().enumerate().map(|(a, n)| if reduced_axis(a) { 1 } else { *n }).collect();
    let inner: Vec<i64> =
        input.shape.iter().enumerate().map(|(a, n)| if reduced_axis(a) { *n } else { 1 }).collect();
    let mut expected = Vec::new();
    each_index(&shape, |kept| {
        let mut values = Vec::new();
        each_index(&inner, |along| {
            let at: Vec<i64> = kept.iter().zip(along).map(|(a, b)| a + b).collect();
            values.push(input.at(&at));
        });
        expected.push(reduced(code, input.dtype, &values));
    });
    (shape, expected)
}
