//! A matrix product with its batch: what a command computes, independent of addresses.

use crate::launch::{Axes, View, span};
use ultramarine_abi::helper::{Failure, Result};

/// Maximum number of elements of one matrix for 32-bit arithmetic, with room for a tile.
const SMALL: i64 = 1 << 30;

/// `out (m, n) = a (m, k) x b (k, n)` for each element of a batch. Strides are in elements, for
/// rows and for columns.
#[derive(Clone, Debug)]
pub struct Product {
    /// Rows of `a` and `out`.
    pub m: i64,
    /// Columns of `b` and `out`.
    pub n: i64,
    /// Columns of `a` and rows of `b`.
    pub k: i64,
    /// Strides of `a`.
    pub a: [i64; 2],
    /// Strides of `b`.
    pub b: [i64; 2],
    /// Strides of `out`.
    pub out: [i64; 2],
    /// The batch, with strides of `a`, `b` and `out`.
    pub batch: Axes<3>,
}

impl Product {
    /// The product of a command's tensors.
    pub fn of(a: &View<'_>, b: &View<'_>, out: &View<'_>) -> Result<Self> {
        Self::new([a.shape, b.shape, out.shape], [a.strides, b.strides, out.strides])
    }

    /// The product of tensors of these shapes and strides.
    pub fn new(shapes: [&[i64]; 3], strides: [&[i64]; 3]) -> Result<Self> {
        let wrong = || {
            Failure::invalid(format!(
                "a product of shapes {:?} and {:?} into {:?}",
                shapes[0], shapes[1], shapes[2]
            ))
        };
        let rank = shapes[2].len().checked_sub(2).ok_or_else(wrong)?;
        let (batch, [[m, k], [inner, n], [rows, columns]]) = match shapes.map(split_pair) {
            [Some((a, x)), Some((b, y)), Some((out, z))] if a == out && b == out => {
                (out, [x, y, z])
            }
            _ => return Err(wrong()),
        };
        if inner != k || rows != m || columns != n {
            return Err(wrong());
        }
        let pair = |t: usize| [strides[t][rank], strides[t][rank + 1]];
        Ok(Self {
            m,
            n,
            k,
            a: pair(0),
            b: pair(1),
            out: pair(2),
            batch: Axes::join(batch, strides.map(|s| &s[..rank])),
        }
        .folded())
    }

    /// The transposed product: `out^T = b^T x a^T`.
    pub fn transposed(&self) -> Self {
        let flip = |[row, col]: [i64; 2]| [col, row];
        let mut batch = self.batch.clone();
        batch.stride.swap(0, 1);
        Self {
            m: self.n,
            n: self.m,
            k: self.k,
            a: flip(self.b),
            b: flip(self.a),
            out: flip(self.out),
            batch,
        }
    }

    /// Turns batch axes into rows, if they are adjacent to the rows of `a` and share one `b`;
    /// likewise for columns. This makes one large product of many small ones.
    fn folded(self) -> Self {
        let rows = self.rows_folded();
        rows.transposed().rows_folded().transposed()
    }

    fn rows_folded(&self) -> Self {
        let count = self.batch.count;
        let with = |of: &[i64], last: i64| [&of[..count], &[last]].concat();
        let [a, b, out] = &self.batch.stride;
        let shape = with(&self.batch.size, self.m);
        let strides = [with(a, self.a[0]), with(b, 0), with(out, self.out[0])];
        let mut axes = Axes::<3>::join(&shape, [&strides[0], &strides[1], &strides[2]]);
        let Some(last) = axes.count.checked_sub(1) else { return self.clone() };
        if axes.stride[1][last] != 0 {
            return self.clone();
        }
        let (m, a, out) = (axes.size[last], axes.stride[0][last], axes.stride[2][last]);
        axes.count = last;
        Self { m, a: [a, self.a[1]], out: [out, self.out[1]], batch: axes, ..self.clone() }
    }

    /// Sizes and strides of each matrix: `a`, `b`, `out`.
    pub fn matrices(&self) -> [([i64; 2], [i64; 2]); 3] {
        [([self.m, self.k], self.a), ([self.k, self.n], self.b), ([self.m, self.n], self.out)]
    }

    /// True if 32-bit arithmetic can address all elements of each single matrix.
    pub fn is_small(&self) -> bool {
        self.m.max(self.n).max(self.k) <= SMALL
            && self
                .matrices()
                .into_iter()
                .all(|(sizes, strides)| span(sizes.into_iter().zip(strides)) <= SMALL as u64)
    }
}

/// Splits a shape into all but its last two sizes, and these two.
fn split_pair(shape: &[i64]) -> Option<(&[i64], [i64; 2])> {
    shape.split_last_chunk::<2>().map(|(batch, pair)| (batch, *pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::row_major;

    fn product(batch: &[i64], m: i64, k: i64, n: i64, b_is_shared: bool) -> Product {
        let shape = |x: i64, y: i64| [batch, &[x, y]].concat();
        let shapes = [shape(m, k), shape(k, n), shape(m, n)];
        let mut strides = shapes.clone().map(|s| row_major(&s));
        if b_is_shared {
            strides[1][..batch.len()].fill(0);
        }
        let view = |list: &'_ [Vec<i64>; 3]| list.clone();
        let (s, t) = (view(&shapes), view(&strides));
        Product::new([&s[0], &s[1], &s[2]], [&t[0], &t[1], &t[2]]).unwrap()
    }

    #[test]
    fn a_shared_matrix_makes_rows_of_the_batch() {
        let one = product(&[4, 3], 5, 7, 6, true);
        assert_eq!((one.m, one.batch.count, one.a, one.out), (60, 0, [7, 1], [6, 1]));
        let one = product(&[4, 3], 1, 7, 6, true);
        assert_eq!((one.m, one.batch.count, one.a, one.out), (12, 0, [7, 1], [6, 1]));
        let many = product(&[4, 3], 5, 7, 6, false);
        assert_eq!((many.m, many.batch.count, many.batch.size[0]), (5, 1, 12));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let new = |a: &[i64], b: &[i64], out: &[i64]| {
            let strides = [a, b, out].map(row_major);
            Product::new([a, b, out], [&strides[0], &strides[1], &strides[2]]).is_ok()
        };
        assert!(new(&[2, 3], &[3, 4], &[2, 4]));
        assert!(!new(&[2, 3], &[2, 4], &[2, 4]));
        assert!(!new(&[2, 3], &[3, 4], &[2, 5]));
        assert!(!new(&[2, 2, 3], &[3, 3, 4], &[2, 2, 4]));
        assert!(!new(&[3], &[3], &[1]));
    }

    #[test]
    fn large_matrices_need_wide_indices() {
        assert!(product(&[1 << 20], 64, 64, 64, false).is_small());
        assert!(!product(&[], 1 << 16, 1 << 16, 2, false).is_small());
    }
}
