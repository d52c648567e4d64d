//! Lanes: the elements along one axis, for each index of the other axes.

use crate::dtype::Num;
use crate::tensor::{Array, each_index, row_major};

/// Calls `f` for each lane of an array, that is, for the values along `axis` at one index of the
/// other axes. `f` gets the lane's index (0 along the axis) and its values.
pub fn lanes(array: &Array, axis: usize, mut f: impl FnMut(&[i64], &[Num])) {
    let mut kept = array.shape.clone();
    kept[axis] = 1;
    each_index(&kept, |index| {
        let mut at = index.to_vec();
        let lane: Vec<Num> = (0..array.shape[axis])
            .map(|i| {
                at[axis] = i;
                array.at(&at)
            })
            .collect();
        f(index, &lane);
    });
}

/// Converts results that are ordered lane by lane to row-major order.
pub fn by_lanes<T: Clone>(
    array: &Array,
    axis: usize,
    empty: T,
    f: impl Fn(&[Num]) -> Vec<T>,
) -> Vec<T> {
    let mut all = vec![empty; array.values.len()];
    let strides = row_major(&array.shape);
    lanes(array, axis, |index, lane| {
        let start: i64 = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        for (i, result) in f(lane).into_iter().enumerate() {
            all[(start + i as i64 * strides[axis]) as usize] = result;
        }
    });
    all
}
