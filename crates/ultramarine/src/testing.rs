//! Shared by the unit tests.

use crate::{array::Array, dtype::Dtype, error::Result};
use ultramarine_test_support::{Tolerance, assert_close};

/// Compares two real arrays of finite numbers: shape, dtype, and elements within `bound` of each other.
#[track_caller]
pub(crate) fn assert_near(got: &Array, expected: &Array, bound: f64) -> Result<()> {
    assert_eq!((got.shape(), got.dtype()), (expected.shape(), expected.dtype()));
    let numbers = |a: &Array| a.astype(Dtype::Float64).to_vec::<f64>();
    let expected = numbers(expected)?;
    assert!(expected.iter().all(|e| e.is_finite()), "not finite: {expected:?}");
    assert_close("elements", &numbers(got)?, &expected, Tolerance::absolute(bound));
    Ok(())
}
