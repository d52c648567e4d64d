//! Comparison of values with what is expected.

use crate::dtype::{DType, Num};
use crate::tensor::each_index;

/// A value that is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Want {
    /// Before rounding to the dtype.
    pub value: Num,
    /// The allowed distance of the result, beside the rounding to the dtype that is
    /// nearest. Negative: anything is right.
    pub slack: f64,
    /// Errors are measured in units of the last place of this magnitude, if it is above
    /// the value's: that of the terms of a sum.
    pub at: f64,
    /// The sign of a zero counts.
    pub signed_zero: bool,
}

impl Want {
    /// Exactly this, or its rounding.
    pub fn exact(value: Num) -> Self {
        Want { value, slack: 0.0, at: 0.0, signed_zero: false }
    }

    /// Up to a distance.
    pub fn near(value: Num, slack: f64) -> Self {
        Want { value, slack, at: 0.0, signed_zero: false }
    }

    /// A value that the contract leaves open.
    pub const ANY: Want = Want { value: Num::Int(0), slack: -1.0, at: 0.0, signed_zero: false };
}

/// The error of a result in units of the last place; none if it is wrong.
pub fn error(dtype: DType, want: &Want, got: Num, flushes: bool) -> Option<f64> {
    if want.slack < 0.0 {
        return Some(0.0);
    }
    match (want.value, got) {
        (Num::Int(a), Num::Int(b)) => (a == b).then_some(0.0),
        (Num::Complex(re, im), Num::Complex(x, y)) => {
            let parts = [(re, x), (im, y)];
            let mut worst = 0f64;
            for (a, b) in parts {
                let part = Want { value: Num::Real(a), ..*want };
                worst = worst.max(error(dtype, &part, Num::Real(b), flushes)?);
            }
            Some(worst)
        }
        (wanted, Num::Real(got)) => real(dtype, wanted.real(), want, got, flushes),
        _ => None,
    }
}

fn real(dtype: DType, value: f64, want: &Want, got: f64, flushes: bool) -> Option<f64> {
    if value.is_nan() || got.is_nan() {
        return (value.is_nan() && got.is_nan()).then_some(0.0);
    }
    if value.is_infinite() {
        return (got == value).then_some(0.0);
    }
    let ulp = dtype.ulp(value);
    if got.is_infinite() {
        // Right if the value, moved by what is allowed, rounds to infinity.
        let moved = value.abs() + want.slack;
        let right = moved >= dtype.max_float() + dtype.ulp(dtype.max_float()) / 2.0;
        return (right && (got > 0.0) == (value > 0.0)).then_some(0.0);
    }
    if want.signed_zero && value == 0.0 && got == 0.0 {
        return (value.is_sign_negative() == got.is_sign_negative()).then_some(0.0);
    }
    if flushes && value.abs() < dtype.min_normal() && got == 0.0 {
        return Some(0.0);
    }
    let distance = (got - value).abs();
    // The rounding of a value to nearest is no error; the reference's own is allowed for.
    let allowed = want.slack + ulp * (0.5 + 1e-6);
    let unit = if want.at.is_finite() { dtype.ulp(value.abs().max(want.at)) } else { ulp };
    (distance <= allowed).then_some(distance / unit)
}

/// Compares an output with what was expected: the largest error, or what is wrong.
pub fn all(
    dtype: DType,
    shape: &[i64],
    wants: &[Want],
    got: &[Num],
    flushes: bool,
    operands: impl Fn(&[i64]) -> String,
) -> Result<f64, String> {
    if wants.len() != got.len() {
        return Err(format!("the kit expects {} values for {shape:?}", wants.len()));
    }
    let mut worst = 0f64;
    let mut wrong = 0usize;
    let mut first = None;
    let mut place = 0;
    each_index(shape, |index| {
        let (want, value) = (&wants[place], got[place]);
        place += 1;
        match error(dtype, want, value, flushes) {
            Some(error) => worst = worst.max(error),
            None => {
                wrong += 1;
                if first.is_none() {
                    first = Some((index.to_vec(), *want, value));
                }
            }
        }
    });
    let Some((index, want, value)) = first else { return Ok(worst) };
    let from = operands(&index);
    let near = if want.slack > 0.0 { format!(" (to {:.3e})", want.slack) } else { String::new() };
    Err(format!(
        "element {index:?} of {shape:?}{from} is {value}, expected {}{near}; {wrong} of {} elements wrong",
        dtype.value(want.value),
        got.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(dtype: DType, want: f64, slack: f64, got: f64) -> bool {
        error(dtype, &Want::near(Num::Real(want), slack), Num::Real(got), false).is_some()
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
        let mut zero = Want::exact(Num::Real(-0.0));
        assert!(error(DType::F32, &zero, Num::Real(0.0), false).is_some());
        zero.signed_zero = true;
        assert!(error(DType::F32, &zero, Num::Real(0.0), false).is_none());
        let small = Want::exact(Num::Real(1e-40));
        assert!(error(DType::F32, &small, Num::Real(0.0), false).is_none());
        assert!(error(DType::F32, &small, Num::Real(0.0), true).is_some());
    }
}
