//! SOFTMAX and LOGSUMEXP.

use super::{part, rows};
use crate::compare::Expected;
use crate::dtype::{DType, Num};
use crate::reference::{reduce::sum_slack, working};
use crate::tensor::Array;

/// The largest value, NaN if there is one.
pub(super) fn top(values: &[f64]) -> f64 {
    let larger = |a: f64, b: &f64| if a.is_nan() || *b <= a { a } else { *b };
    values.iter().fold(f64::NEG_INFINITY, larger)
}

/// Returns the sum of the exponentials, and its relative error. The error comes from rounding `x -
/// m`, from the function and from the sum. Terms that are too small to matter do not count.
pub(super) fn exponentials(dtype: DType, values: &[f64], top: f64) -> (f64, f64) {
    let total: f64 = values.iter().map(|x| (x - top).exp()).sum();
    let shifted = values.iter().map(|x| ((x - top).abs() * (x - top).exp()) / total);
    let shift: f64 = shifted.filter(|x| x.is_finite()).sum();
    let epsilon = working(dtype).epsilon();
    (total, sum_slack(dtype, values.len(), 1.0) + epsilon * (4.0 + shift))
}

/// SOFTMAX: one value for each of the input.
pub fn softmax(axes: u64, input: &Array) -> Vec<Expected> {
    let mut expected = vec![Expected::ANY; input.values.len()];
    let dtype = input.dtype;
    rows(input, axes, |values, positions| {
        let top = top(values);
        let (total, error) = exponentials(dtype, values, top);
        for (x, position) in values.iter().zip(positions) {
            let value = (x - top).exp() / total;
            let own = working(dtype).epsilon() * (6.0 + (x - top).abs());
            // Results below the normal numbers may be rounded to zero.
            let slack = value * (error + own) + working(dtype).ulp(0.0) * 2.0;
            let slack = if slack.is_finite() { slack } else { 0.0 };
            expected[*position] = Expected { at: value, ..Expected::near(Num::Real(value), slack) };
        }
    });
    expected
}

/// LOGSUMEXP: the output's shape, and one value for each row.
pub fn logsumexp(axes: u64, input: &Array) -> (Vec<i64>, Vec<Expected>) {
    let mut expected = Vec::new();
    let dtype = input.dtype;
    rows(input, axes, |values, _| {
        let top = top(values);
        if !top.is_finite() {
            return expected.push(Expected::exact(Num::Real(top)));
        }
        let (total, error) = exponentials(dtype, values, top);
        let value = top + total.ln();
        let epsilon = working(dtype).epsilon();
        let slack = error + epsilon * (4.0 * total.ln() + top.abs() + value.abs());
        expected.push(Expected {
            at: top.abs().max(value.abs()),
            ..Expected::near(Num::Real(value), slack)
        });
    });
    (part(&input.shape, axes, true), expected)
}
