//! ARANGE.

use super::expected;
use crate::compare::Expected;
use crate::dtype::{DType, Num};

/// ARANGE.
pub fn arange(dtype: DType, n: i64, start: Num, step: Num) -> Vec<Expected> {
    (0..n)
        .map(|i| match (start, step) {
            (Num::Int(a), Num::Int(b)) => {
                Expected::exact(Num::Int(dtype.wrap(a + i128::from(i) * b)))
            }
            _ => {
                let (a, b) = (start.real(), step.real() * i as f64);
                expected(2.0, dtype, Num::Real(a + b), a.abs().max(b.abs()).max((a + b).abs()))
            }
        })
        .collect()
}
