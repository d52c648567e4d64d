//! A matrix product in the form in which a library with column-major matrices computes it: which
//! operand comes first, which operands are transposed or copied, and which axis of the batch a call
//! covers.

use super::product::Product;
use crate::launch::Axes;

/// Maximum number of batch elements in one call, because the grids of the library's kernels are
/// limited.
pub const MOST_BATCH: i64 = 32768;
/// Bytes that a GPU moves in the time that a call takes to launch. Smaller copies are cheaper than
/// calls in a loop.
const BYTES_OF_A_CALL: u64 = 4 << 20;
/// Maximum number of calls in a loop. Above it, this crate's kernel is better, because it handles
/// any batch in one launch.
const MOST_CALLS: u64 = 1024;
/// Number of multiplications from which a call is worth it, even among many.
const LARGE_CALL: u64 = 1 << 27;

/// `D = op(A) op(B)` of column-major matrices. `D` is `m` by `n`, and `k` is the length of the
/// sums. Arrays of three are for A, B and D.
#[derive(Clone, Debug)]
pub struct Gemm {
    /// True if A is the product's `b`, and B its `a`.
    pub swapped: bool,
    /// Rows of D.
    pub m: i64,
    /// Columns of D.
    pub n: i64,
    /// Length of the sums.
    pub k: i64,
    /// Transposition of A and of B.
    pub transpose: [bool; 2],
    /// Elements from one column to the next.
    pub ld: [i64; 3],
    /// Batch elements that a call covers.
    pub count: i64,
    /// Distance between batch elements, in elements; 0 for broadcast.
    pub step: [i64; 3],
    /// The other axes of the batch, over which calls are made in a loop.
    pub outer: Axes<3>,
    /// Copies of A and B that are made before the calls.
    pub packs: [Option<Pack>; 2],
}

/// A copy of an operand that is contiguous along axis `k`.
#[derive(Clone, Debug)]
pub struct Pack {
    /// The axes that are copied, with strides of the operand and of the copy.
    pub axes: Axes<2>,
}

impl Gemm {
    /// Plans a product of elements of `bytes` bytes. `None` if a library cannot compute it.
    pub fn of(product: &Product, bytes: u64) -> Option<Self> {
        let sizes = [product.m, product.n, product.k];
        if sizes.into_iter().any(|n| n > i64::from(i32::MAX)) {
            return None;
        }
        let flipped = product.transposed();
        let is_column_major = |p: &Product| column_major([p.m, p.n], p.out).is_some();
        // A row-major result is a column-major result of the transposed product.
        let (p, swapped) = match (is_column_major(&flipped), is_column_major(product)) {
            (true, _) => (&flipped, true),
            (false, true) => (product, false),
            (false, false) => return None,
        };
        let plain = Self::with_packs(p, swapped, [false, false])?;
        let mut best = plain;
        // Copies may make batch axes adjacent, so that they can be joined.
        for full in [[true, false], [false, true], [true, true]] {
            if best.calls() <= 1 {
                break;
            }
            if let Some(other) = Self::with_packs(p, swapped, full)
                && other.cost(bytes) < best.cost(bytes)
            {
                best = other;
            }
        }
        let work = [best.n, best.k, best.count.min(MOST_BATCH)];
        let work = work.into_iter().fold(best.m as u64, |a, b| a.saturating_mul(b as u64));
        (best.calls() <= MOST_CALLS || work >= LARGE_CALL).then_some(best)
    }

    /// `full`: the operand is copied with its broadcast axes expanded.
    fn with_packs(p: &Product, swapped: bool, full: [bool; 2]) -> Option<Self> {
        let count = p.batch.count;
        let mut strides = p.batch.stride;
        let (mut transpose, mut ld, mut packs) = ([false; 2], [0; 3], [None, None]);
        ld[2] = column_major([p.m, p.n], p.out)?;
        let shapes = p.matrices();
        for t in 0..2 {
            let (shape, matrix) = shapes[t];
            match operand(shape, matrix) {
                Some(found) if !full[t] => (transpose[t], ld[t]) = found,
                _ => {
                    let (pack, batch) = Pack::of(p, t, full[t]);
                    strides[t][..count].copy_from_slice(&batch);
                    // Contiguous along k: A is transposed, B is not.
                    (transpose[t], ld[t]) = (t == 0, p.k);
                    packs[t] = Some(pack);
                }
            }
        }
        let of = |t: usize| &strides[t][..count];
        let mut outer = Axes::<3>::join(&p.batch.size[..count], [of(0), of(1), of(2)]);
        let (mut count, mut step) = (1, [0; 3]);
        let can = |axis: &usize| {
            let [a, b, out] = outer.stride.map(|s| s[*axis]);
            a >= 0 && b >= 0 && out > 0
        };
        if let Some(axis) = (0..outer.count).filter(can).max_by_key(|axis| outer.size[*axis]) {
            (count, step) = (outer.size[axis], outer.stride.map(|s| s[axis]));
            outer = without(&outer, axis);
        }
        Some(Self { swapped, m: p.m, n: p.n, k: p.k, transpose, ld, count, step, outer, packs })
    }

    /// Number of library calls.
    pub fn calls(&self) -> u64 {
        self.outer.len() * (self.count as u64).div_ceil(MOST_BATCH as u64)
    }

    /// The cost, as the number of bytes that could be moved in the same time.
    fn cost(&self, bytes: u64) -> u64 {
        let elements: u64 = self.packs.iter().flatten().map(|pack| pack.axes.len()).sum();
        let copies = self.packs.iter().flatten().count() as u64;
        let calls = (self.calls() + copies).saturating_mul(BYTES_OF_A_CALL);
        elements.saturating_mul(2 * bytes).saturating_add(calls)
    }
}

impl Pack {
    /// The copy of operand `t`, and its strides along the batch axes. Broadcast axes stay broadcast
    /// unless the copy is `full`.
    fn of(p: &Product, t: usize, full: bool) -> (Self, Vec<i64>) {
        let (shape, [row, col]) = p.matrices()[t];
        let (other, along) = if t == 0 { (row, col) } else { (col, row) };
        let others = if t == 0 { shape[0] } else { shape[1] };
        let (mut size, mut from, mut to) = (Vec::new(), Vec::new(), Vec::new());
        let mut step = p.k * others;
        let mut batch = vec![0; p.batch.count];
        for d in (0..p.batch.count).rev() {
            let stride = p.batch.stride[t][d];
            if stride == 0 && !full {
                continue;
            }
            batch[d] = step;
            size.push(p.batch.size[d]);
            from.push(stride);
            to.push(step);
            step *= p.batch.size[d];
        }
        for list in [&mut size, &mut from, &mut to] {
            list.reverse();
        }
        size.extend([others, p.k]);
        from.extend([other, along]);
        to.extend([p.k, 1]);
        (Self { axes: Axes::join(&size, [&from, &to]) }, batch)
    }
}

/// The distance between the columns of a column-major matrix. `None` for other matrices.
fn column_major([rows, cols]: [i64; 2], [row, col]: [i64; 2]) -> Option<i64> {
    match (rows == 1 || row == 1, cols) {
        (true, 1) => Some(rows),
        (true, _) if col >= rows => Some(col),
        _ => None,
    }
}

/// Transposition of a matrix, and the distance between its columns.
fn operand([rows, cols]: [i64; 2], [row, col]: [i64; 2]) -> Option<(bool, i64)> {
    let plain = column_major([rows, cols], [row, col]).map(|ld| (false, ld));
    plain.or_else(|| column_major([cols, rows], [col, row]).map(|ld| (true, ld)))
}

/// Axes without one of them.
fn without(axes: &Axes<3>, axis: usize) -> Axes<3> {
    let rest = |of: &[i64]| -> Vec<i64> {
        (0..axes.count).filter(|d| *d != axis).map(|d| of[d]).collect()
    };
    let strides = [rest(&axes.stride[0]), rest(&axes.stride[1]), rest(&axes.stride[2])];
    Axes::join(&rest(&axes.size), [&strides[0], &strides[1], &strides[2]])
}

/// Offsets of all elements of axes, for each tensor, in row-major order.
pub fn places<const K: usize>(axes: &Axes<K>) -> impl Iterator<Item = [i64; K]> + '_ {
    (0..axes.len()).map(|i| {
        let mut rest = i as i64;
        let mut at = [0; K];
        for d in (0..axes.count).rev() {
            let index = rest % axes.size[d];
            rest /= axes.size[d];
            for (place, stride) in at.iter_mut().zip(&axes.stride) {
                *place += index * stride[d];
            }
        }
        at
    })
}

/// The largest power of 2, up to 256, that divides an address and all steps.
pub fn alignment(address: u64, steps: impl IntoIterator<Item = i64>, bytes: u64) -> u32 {
    let all =
        steps.into_iter().fold(address | 256, |all, step| all | (step as u64).wrapping_mul(bytes));
    1 << all.trailing_zeros()
}
