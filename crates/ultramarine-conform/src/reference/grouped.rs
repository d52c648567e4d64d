//! GATHER_MATMUL and SEGMENTED_MATMUL, by their definition.

use super::index::clamped;
use super::reduce::{sum, sum_slack};
use crate::compare::Expected;
use crate::dtype::{DType, Num};
use crate::tensor::Array;
use std::ops::Range;

/// The values of an array as real numbers.
pub(super) fn reals(array: &Array) -> Vec<f64> {
    array.values.iter().map(|v| v.real()).collect()
}

/// Returns the matrix that each of `items` uses: the one that the indices name, or its own.
pub(super) fn chosen(indices: Option<&Array>, items: usize, matrices: i64) -> Vec<usize> {
    match indices {
        Some(indices) => indices.values.iter().map(|i| clamped(*i, matrices, 1) as usize).collect(),
        None => (0..items).collect(),
    }
}

/// Computes the products of two matrices `(m, k)` and `(k, n)` over a range of k. `reduced` is an
/// epsilon of the products, as for MATMUL.
fn product(
    dtype: DType,
    [a, b]: [&[f64]; 2],
    [k, n]: [usize; 2],
    range: Range<usize>,
    reduced: f64,
) -> Vec<Expected> {
    let mut expected = Vec::new();
    let terms = range.len() + 1;
    for row in a.chunks_exact(k) {
        let mut sums = vec![(0.0, 0.0); n];
        for (x, line) in row.iter().zip(b.chunks_exact(n)).take(range.end).skip(range.start) {
            for ((total, size), y) in sums.iter_mut().zip(line) {
                *total += x * y;
                *size += (x * y).abs();
            }
        }
        expected.extend(sums.into_iter().map(|(total, size)| {
            sum(Num::Real(total), sum_slack(dtype, terms, size) + reduced * size, size)
        }));
    }
    expected
}

/// GATHER_MATMUL.
pub fn gather_matmul(
    [a, b]: [&Array; 2],
    indices: [Option<&Array>; 2],
    items: usize,
    reduced: f64,
) -> Vec<Expected> {
    let [m, k, n] = [a.shape[1], b.shape[1], b.shape[2]].map(|size| size as usize);
    let (left, right) = (reals(a), reals(b));
    let lhs = chosen(indices[0], items, a.shape[0]);
    let rhs = chosen(indices[1], items, b.shape[0]);
    let each = lhs.into_iter().zip(rhs).flat_map(|(l, r)| {
        let matrices = [&left[l * m * k..(l + 1) * m * k], &right[r * k * n..(r + 1) * k * n]];
        product(a.dtype, matrices, [k, n], 0..k, reduced)
    });
    each.collect()
}

/// SEGMENTED_MATMUL.
pub fn segmented_matmul([a, b, segments]: [&Array; 3], reduced: f64) -> Vec<Expected> {
    let [k, n] = [b.shape[0], b.shape[1]].map(|size| size as usize);
    let (left, right) = (reals(a), reals(b));
    let each = segments.values.chunks_exact(2).flat_map(|segment| {
        let held = |i: usize| segment[i].int().clamp(0, k as i128) as usize;
        let (start, end) = (held(0), held(1));
        product(a.dtype, [&left, &right], [k, n], start..end.max(start), reduced)
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(dtype: DType, shape: &[i64], values: &[i64]) -> Array {
        let values: Vec<Num> = values.iter().map(|v| Num::Int((*v).into())).collect();
        Array::cycle(dtype, shape, &values)
    }

    fn values(expected: &[Expected]) -> Vec<f64> {
        expected.iter().map(|e| e.value.real()).collect()
    }

    #[test]
    fn indices_choose_matrices() {
        let a = array(DType::F32, &[2, 1, 2], &[1, 2, 3, 4]);
        let b = array(DType::F32, &[3, 2, 1], &[1, 1, 10, 10, 100, 100]);
        let rhs = array(DType::I32, &[2], &[-1, 7]);
        let both = gather_matmul([&a, &b], [None, Some(&rhs)], 2, 0.0);
        assert_eq!(values(&both), [300.0, 700.0]);
        let lhs = array(DType::I32, &[3], &[-9, 1, 0]);
        let all = gather_matmul([&a, &b], [Some(&lhs), None], 3, 0.0);
        assert_eq!(values(&all), [3.0, 70.0, 300.0]);
    }

    #[test]
    fn segments_are_held_to_the_axis() {
        let a = array(DType::F32, &[1, 4], &[1, 2, 3, 4]);
        let b = array(DType::F32, &[4, 1], &[1, 10, 100, 1000]);
        let segments = array(DType::I32, &[5, 2], &[0, 2, 1, 9, -3, 1, 3, 1, -4, -1]);
        let all = segmented_matmul([&a, &b, &segments], 0.0);
        assert_eq!(values(&all), [21.0, 4320.0, 1.0, 0.0, 0.0]);
    }
}
