//! Comparison of values with the expected ones.

use crate::dtype::{DType, Num};
use crate::tensor::each_index;

/// An expected value, and the error that a result may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The exact value, before rounding to the dtype.
    pub value: Num,
    /// The allowed error of the result, in addition to rounding to the nearest value of the dtype.
    /// If it is negative, any result is right.
    pub slack: f64,
    /// Errors are measured in units of the last place at this magnitude, if it is larger than the
    /// value's. For a sum, it is the magnitude of the terms.
    pub at: f64,
    /// True if the sign of a zero has to be right.
    pub signed_zero: bool,
}

impl Expected {
    /// The exact value, or its rounding.
    pub fn exact(value: Num) -> Self {
        Expected { value, slack: 0.0, at: 0.0, signed_zero: false }
    }

    /// A value with an allowed error.
    pub fn near(value: Num, slack: f64) -> Self {
        Expected { value, slack, at: 0.0, signed_zero: false }
    }

    /// A value that the contract leaves open.
    pub const ANY: Expected =
        Expected { value: Num::Int(0), slack: -1.0, at: 0.0, signed_zero: false };
}

/// Returns the error of a result in units of the last place; `None` if the result is wrong.
pub fn error(dtype: DType, expected: &Expected, got: Num, flushes: bool) -> Option<f64> {
    if expected.slack < 0.0 {
        return Some(0.0);
    }
    match (expected.value, got) {
        (Num::Int(a), Num::Int(b)) => (a == b).then_some(0.0),
        (Num::Complex(re, im), Num::Complex(x, y)) => {
            let parts = [(re, x), (im, y)];
            let mut worst = 0f64;
            for (a, b) in parts {
                let part = Expected { value: Num::Real(a), ..*expected };
                worst = worst.max(error(dtype, &part, Num::Real(b), flushes)?);
            }
            Some(worst)
        }
        (wanted, Num::Real(got)) => real(dtype, wanted.real(), expected, got, flushes),
        _ => None,
    }
}

fn real(dtype: DType, value: f64, expected: &Expected, got: f64, flushes: bool) -> Option<f64> {
    if value.is_nan() || got.is_nan() {
        return (value.is_nan() && got.is_nan()).then_some(0.0);
    }
    if value.is_infinite() {
        return (got == value).then_some(0.0);
    }
    let ulp = dtype.ulp(value);
    if got.is_infinite() {
        // The result is right if the value plus the allowed error rounds to infinity.
        let moved = value.abs() + expected.slack;
        let right = moved >= dtype.max_float() + dtype.ulp(dtype.max_float()) / 2.0;
        return (right && (got > 0.0) == (value > 0.0)).then_some(0.0);
    }
    if expected.signed_zero && value == 0.0 && got == 0.0 {
        return (value.is_sign_negative() == got.is_sign_negative()).then_some(0.0);
    }
    if flushes && value.abs() < dtype.min_normal() && got == 0.0 {
        return Some(0.0);
    }
    let distance = (got - value).abs();
    // Rounding the value to nearest is no error. The reference's own error is allowed too.
    let allowed = expected.slack + ulp * (0.5 + 1e-6);
    let unit = if expected.at.is_finite() { dtype.ulp(value.abs().max(expected.at)) } else { ulp };
    (distance <= allowed).then_some(distance / unit)
}

/// Compares an output with the expected values. Returns the largest error, or a description of the first wrong value.
pub fn all(
    dtype: DType,
    shape: &[i64],
    expected: &[Expected],
    got: &[Num],
    flushes: bool,
    operands: impl Fn(&[i64]) -> String,
) -> Result<f64, String> {
    ensure!(expected.len() == got.len(), "the kit expects {} values for {shape:?}", expected.len());
    let mut worst = 0f64;
    let mut wrong = 0usize;
    let mut first = None;
    let mut place = 0;
    each_index(shape, |index| {
        let (expected, value) = (&expected[place], got[place]);
        place += 1;
        match error(dtype, expected, value, flushes) {
            Some(error) => worst = worst.max(error),
            None => {
                wrong += 1;
                if first.is_none() {
                    first = Some((index.to_vec(), *expected, value));
                }
            }
        }
    });
    let Some((index, expected, value)) = first else { return Ok(worst) };
    let from = operands(&index);
    let near =
        if expected.slack > 0.0 { format!(" (to {:.3e})", expected.slack) } else { String::new() };
    Err(format!(
        "element {index:?} of {shape:?}{from} is {value}, expected {}{near}; {wrong} of {} elements wrong",
        dtype.value(expected.value),
        got.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(dtype: DType, expected: f64, slack: f64, got: f64) -> bool {
        error(dtype, &Expected::near(Num::Real(expected), slack), Num::Real(got), false).is_some()
    }

    #[test]
    fn rounding_is_allowed_and_nothing_else() {
        let third = 1.0 / 3.0;
        let up = f64::from(third as f32);
        assert!(ok(DType::F32, third, 0.0, up));
        assert!(!ok(DType::F32, third, 0.0, f64::from((third as f32).next_up())));
        assert!(ok(DType::F32, third, 6e-8, f64::from((third as f32).next_up())));
        assert!(!ok(DType::F32, 1.0, 1.0, f64::NAN));
        assert!(ok(DType::F32, f64::NAN, 0.0, f64::NAN));
        assert!(!ok(DType::F32, f64::INFINITY, 1.0, f64::MAX));
    }

    #[test]
    fn overflow_and_zeros() {
        assert!(ok(DType::F16, 65520.0, 0.0, f64::INFINITY));
        assert!(!ok(DType::F16, 65504.0, 0.0, f64::INFINITY));
        assert!(!ok(DType::F16, 65520.0, 0.0, f64::NEG_INFINITY));
        let mut zero = Expected::exact(Num::Real(-0.0));
        assert!(error(DType::F32, &zero, Num::Real(0.0), false).is_some());
        zero.signed_zero = true;
        assert!(error(DType::F32, &zero, Num::Real(0.0), false).is_none());
        let small = Expected::exact(Num::Real(1e-40));
        assert!(error(DType::F32, &small, Num::Real(0.0), false).is_none());
        assert!(error(DType::F32, &small, Num::Real(0.0), true).is_some());
    }
}
