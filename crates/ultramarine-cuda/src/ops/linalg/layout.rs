//! The workspace of a decomposition.

use crate::launch::{Dtype, View};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{OpId, op};

/// A batch of matrices, with the number of right-hand sides or the sizes of the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Matrices.
    pub count: i64,
    /// Rows.
    pub m: i64,
    /// Columns.
    pub n: i64,
    /// Columns of u, or of the right-hand sides.
    pub left: i64,
    /// Rows of vt.
    pub right: i64,
}

/// Largest side of matrices for which a batch is a single call. For singular values, it is cuSOLVER's limit. For eigenvalues,
/// a loop takes ten times as long, but the batch's errors grow faster with the side than the loop's: on an H200 to 1e-5 of the
/// norm at 64 (float32), and 7e-5 at 128 (complex64). `SMALL` is the limit for factors.
const SMALL_SVD: i64 = 32;
const SMALL_EIGEN: i64 = 64;
const SMALL: i64 = 256;

impl Sizes {
    /// The sizes of a command, whose shapes were validated for the operation.
    pub fn of(op: OpId, inputs: &[View<'_>], outputs: &[View<'_>]) -> Result<Self> {
        let wrong = || {
            let shapes = |views: &[View<'_>]| {
                let all: Vec<_> = views.iter().map(|v| format!("{:?}", v.shape)).collect();
                all.join(", ")
            };
            let text = format!("a decomposition of {} to {}", shapes(inputs), shapes(outputs));
            Failure::invalid(text)
        };
        let a = inputs.first().ok_or_else(wrong)?.shape;
        let Some((batch, &[m, n])) = a.split_last_chunk::<2>() else { return Err(wrong()) };
        let k = m.min(n);
        let last = |i: usize, back: usize| {
            let shape = outputs.get(i).map_or(&[][..], |v| v.shape);
            shape.len().checked_sub(back).map_or(0, |at| shape[at])
        };
        let (mut left, mut right) = (k, k);
        let expected: Vec<Vec<i64>> = match op {
            op::CHOLESKY => vec![vec![n, n]],
            op::LU => vec![vec![m, n], vec![k], vec![m]],
            op::QR => vec![vec![m, k], vec![k, n]],
            op::SVD => {
                (left, right) = if last(0, 1) == k && last(2, 2) == k { (k, k) } else { (m, n) };
                vec![vec![m, left], vec![k], vec![right, n]]
            }
            op::SINGULAR_VALUES => vec![vec![k]],
            op::EIGH => vec![vec![n], vec![n, n]],
            op::EIGVALSH => vec![vec![n]],
            _ => {
                left = last(0, 1);
                vec![vec![n, left]]
            }
        };
        let square = matches!(op, op::CHOLESKY | op::EIGH | op::EIGVALSH | op::SOLVE_TRIANGULAR);
        let fits = expected.len() == outputs.len()
            && outputs
                .iter()
                .zip(&expected)
                .all(|(view, last)| view.shape == [batch, last].concat())
            && inputs.get(1).is_none_or(|b| b.shape == outputs[0].shape)
            && (!square || m == n);
        let sizes = Self { count: batch.iter().product(), m, n, left, right };
        let most = [m, n, left, right, sizes.count].into_iter().max().unwrap_or(0);
        match fits {
            false => Err(wrong()),
            true if most > i64::from(i32::MAX) => {
                Err(Failure::unsupported("cuSOLVER counts to 2^31. Use smaller matrices"))
            }
            true => Ok(sizes),
        }
    }

    /// The smaller side.
    pub fn k(&self) -> i64 {
        self.m.min(self.n)
    }

    /// True if a batch is a single call of the library.
    pub fn at_once(&self, op: OpId) -> bool {
        let most = self.m.max(self.n);
        self.count > 1
            && match op {
                op::CHOLESKY | op::SOLVE_TRIANGULAR => most <= SMALL,
                op::LU => most <= SMALL && self.m == self.n,
                op::QR => false,
                op::EIGH | op::EIGVALSH => most <= SMALL_EIGEN,
                _ => most <= SMALL_SVD,
            }
    }
}

/// The parts of a decomposition's workspace, as offsets in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The matrices.
    pub a: u64,
    /// Singular vectors: those that become vt, and those that become u.
    pub vectors: [u64; 2],
    /// Singular values or eigenvalues.
    pub values: u64,
    /// Pivots, or the factors of reflections.
    pub pivots: u64,
    /// The library's status word for each matrix.
    pub info: u64,
    /// Addresses of the matrices, and of the right-hand sides.
    pub addresses: [u64; 2],
    /// The library's own workspace.
    pub own: u64,
    /// Total size in bytes.
    pub total: u64,
}

impl Parts {
    /// Lays out the parts; `own` is the number of elements that the library requires.
    pub fn of(op: OpId, dtype: Dtype, sizes: &Sizes, own: i64) -> Self {
        let (bytes, k) = (dtype.bytes(), sizes.k());
        let real = if dtype.is_complex() { 4 } else { bytes };
        let mut total = 0;
        let mut take = |elements: i64, bytes: u64| {
            let at = total;
            total += (elements as u64 * sizes.count as u64 * bytes).next_multiple_of(256);
            at
        };
        let jacobi = matches!(op, op::SVD | op::SINGULAR_VALUES);
        let eigen = matches!(op, op::EIGH | op::EIGVALSH);
        // A batched call computes all vectors.
        let full = jacobi && sizes.at_once(op);
        let only = |needed: bool, elements: i64| if needed { elements } else { 0 };
        let (right, left) = if full { (sizes.n, sizes.m) } else { (sizes.right, sizes.left) };
        let a = take(sizes.m * sizes.n, bytes);
        let vectors =
            [take(only(jacobi, sizes.n * right), bytes), take(only(jacobi, sizes.m * left), bytes)];
        let values = take(only(jacobi || eigen, k), real);
        let pivots = match op {
            op::LU => take(k, 4),
            op::QR => take(k, bytes),
            _ => 0,
        };
        let info = take(1, 4);
        let batched = sizes.at_once(op) && !jacobi && !eigen;
        let addresses =
            [take(only(batched, 1), 8), take(only(batched && op == op::SOLVE_TRIANGULAR, 1), 8)];
        let at = total;
        Self {
            a,
            vectors,
            values,
            pivots,
            info,
            addresses,
            own: at,
            total: at + own as u64 * bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(shape: &[i64]) -> View<'_> {
        View { address: 0, dtype: Dtype::Float32, shape, strides: shape }
    }

    #[test]
    fn sizes_are_those_of_the_shapes() {
        let a = [view(&[3, 7, 4])];
        let svd =
            |u: &[i64], vt: &[i64]| Sizes::of(op::SVD, &a, &[view(u), view(&[3, 4]), view(vt)]);
        let thin = svd(&[3, 7, 4], &[3, 4, 4]).unwrap();
        assert_eq!((thin.count, thin.m, thin.n, thin.left, thin.right), (3, 7, 4, 4, 4));
        assert_eq!(svd(&[3, 7, 7], &[3, 4, 4]).unwrap().left, 7);
        assert!(svd(&[3, 7, 5], &[3, 4, 4]).is_err());
        assert!(Sizes::of(op::CHOLESKY, &a, &a).is_err());
        let lu = Sizes::of(op::LU, &a, &[view(&[3, 7, 4]), view(&[3, 4]), view(&[3, 7])]);
        assert!(lu.is_ok_and(|sizes| !sizes.at_once(op::LU)));
    }

    #[test]
    fn parts_do_not_overlap() {
        let sizes = Sizes { count: 5, m: 9, n: 9, left: 2, right: 9 };
        let parts = Parts::of(op::SOLVE_TRIANGULAR, Dtype::Complex64, &sizes, 0);
        assert_eq!((parts.a, parts.info), (0, 3328));
        assert_eq!((parts.addresses, parts.total), ([3584, 3840], 4096));
        let parts = Parts::of(op::CHOLESKY, Dtype::Float64, &Sizes { count: 1, ..sizes }, 10);
        assert_eq!((parts.info, parts.own, parts.total), (768, 1024, 1104));
    }
}
