//! Lanes for the families that work along one axis: shapes, and values with ties.

use super::Scope;
use crate::dtype::{DType, Num};
use crate::values::{Rng, edges, ordinary};

/// Returns the first list; for float32 also the second list.
pub(super) fn with_long<T: Copy>(dtype: DType, all: &[T], long: &[T]) -> Vec<T> {
    let long = if dtype == DType::F32 { long } else { &[] };
    [all, long].concat()
}

/// Shapes with an axis.
pub(super) const LANES: [(&[i64], usize); 5] =
    [(&[300], 0), (&[7, 40], 1), (&[40, 7], 0), (&[3, 9, 5], 1), (&[1, 1], 1)];

/// A larger one, for float32.
pub(super) const LONG_LANE: (&[i64], usize) = (&[70_001], 0);

/// Values with ties, edges and NaN.
pub(super) fn ties_and_edges(dtype: DType, n: usize, scope: &Scope, rng: &mut Rng) -> Vec<Num> {
    let mut values = ordinary(dtype, n, rng);
    for i in (3..n).step_by(5) {
        values[i] = values[i - 3];
    }
    let rare = edges(dtype, scope.subnormals);
    if n > 2 * rare.len() {
        for (i, edge) in rare.into_iter().enumerate() {
            values[2 * i + 1] = edge;
        }
    }
    values
}
