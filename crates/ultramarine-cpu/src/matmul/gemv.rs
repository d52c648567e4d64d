//! Matrix times vector. The time is that of reading the matrix once.
//!
//! The matrix has `rows` rows (one for each element of the result) and `k` columns. Depending on its layout, [`dot`]
//! walks along k, or [`axpy`] along the rows.

use core::marker::PhantomData;

use super::Product;
use super::pack::{Block, Panel};
use super::simd::{Num, Storage, prefetch};
use super::skinny::{SkinnyFn, function, mul_acc};
use crate::level::{Body, Isa, Level, at};
use crate::par::{Par, Shared};
use crate::scratch::{Scratch, Slot};

/// A part of a matrix, the vector's part, and where the sums go. Strides in bytes.
#[derive(Clone, Copy)]
pub struct Part {
    matrix: *const u8,
    row: isize,
    along: isize,
    rows: usize,
    k: usize,
    /// The vector, as numbers.
    x: *const u8,
    /// Receives `rows` numbers.
    y: *mut u8,
}

/// Multiplies a part.
///
/// # Safety
/// The part's pointers are valid; the level is available.
pub type GemvFn = unsafe fn(Level, Part);

/// Functions for a storage type.
#[derive(Clone, Copy)]
pub struct GemvFns {
    /// For matrices that are contiguous along k.
    dot: GemvFn,
    /// For matrices that are contiguous along the rows.
    axpy: GemvFn,
    /// For a few vectors and matrices that are contiguous along the rows.
    pub skinny: SkinnyFn,
}

/// The functions for `S`.
pub fn fns<S: Storage>() -> GemvFns {
    GemvFns {
        dot: |level, part| at(level, Dot::<S>(part, PhantomData)),
        axpy: |level, part| at(level, Axpy::<S>(part, PhantomData)),
        skinny: function::<S>(),
    }
}

struct Dot<S>(Part, PhantomData<S>);
struct Axpy<S>(Part, PhantomData<S>);

/// Number of lanes in which a dot product is summed.
const LANES: usize = 16;
/// Distance in bytes of the prefetch.
const AHEAD: usize = 4096;
/// Number of independent sums of lanes.
const CHAINS: usize = 4;

/// Rows whose lanes are added up together. For a short row alone, adding the lanes would take longer than its products.
const ROWS: usize = 16;

impl<S: Storage> Body for Dot<S> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let p = self.0;
        let y = p.y as *mut S::Acc;
        let mut r = 0;
        while r < p.rows {
            let count = ROWS.min(p.rows - r);
            let mut lanes = Lines([[S::Acc::default(); LANES]; ROWS]);
            for (i, lanes) in lanes.0.iter_mut().enumerate().take(count) {
                // SAFETY: rows of the part, by the contract of `GemvFn`.
                *lanes = unsafe { dot::<S, I>(&p, r + i) };
            }
            let (mut a, mut b) = ([S::Acc::default(); ROWS * 8], [S::Acc::default(); ROWS * 4]);
            halve::<S::Acc, 8>(lanes.0.as_flattened(), &mut a);
            halve::<S::Acc, 4>(&a, &mut b);
            halve::<S::Acc, 2>(&b, &mut a[..ROWS * 2]);
            halve::<S::Acc, 1>(&a[..ROWS * 2], &mut b[..ROWS]);
            // SAFETY: the sums of these rows.
            unsafe { core::ptr::copy_nonoverlapping(b.as_ptr(), y.add(r), count) };
            r += count;
        }
    }
}

/// Numbers that begin at a cache line, because a store across two lines is slow.
#[repr(align(64))]
struct Lines<T>(T);

/// Adds the second half of the `2 * HALF` lanes of each row to the first.
#[inline(always)]
fn halve<A: Num, const HALF: usize>(from: &[A], to: &mut [A]) {
    let (from, to) = (from.as_chunks::<HALF>().0, to.as_chunks_mut::<HALF>().0);
    for (to, from) in to.iter_mut().zip(from.as_chunks::<2>().0) {
        for l in 0..HALF {
            to[l] = from[0][l].plus(from[1][l]);
        }
    }
}

/// The lanes of the dot product of row `r`. Rows are read one after the other, because processors prefetch one stream
/// of memory better than several.
///
/// # Safety
/// `r < rows`; the part is valid.
#[inline(always)]
unsafe fn dot<S: Storage, I: Isa>(p: &Part, r: usize) -> [S::Acc; LANES] {
    let x = p.x as *const S::Acc;
    let row = p.matrix.wrapping_offset(r as isize * p.row) as *const S;
    let mut sums = [[S::Acc::default(); LANES]; CHAINS];
    let mut q = 0;
    // SAFETY: elements q.. of x and of the row, below k.
    unsafe {
        while q + CHAINS * LANES <= p.k {
            for c in 0..CHAINS {
                let xs = x.add(q + c * LANES).cast::<[S::Acc; LANES]>().read_unaligned();
                let from = row.add(q + c * LANES);
                prefetch(from.cast::<u8>().wrapping_add(AHEAD));
                let ms = from.cast::<[S; LANES]>().read_unaligned();
                for l in 0..LANES {
                    sums[c][l] = mul_acc::<S::Acc, I>(sums[c][l], ms[l].widen(), xs[l]);
                }
            }
            q += CHAINS * LANES;
        }
        for t in q..p.k {
            let (c, l) = ((t - q) / LANES, (t - q) % LANES);
            sums[c][l] = mul_acc::<S::Acc, I>(sums[c][l], (*row.add(t)).widen(), *x.add(t));
        }
    }
    let mut half = CHAINS / 2;
    while half > 0 {
        for c in 0..half {
            for l in 0..LANES {
                sums[c][l] = sums[c][l].plus(sums[c + half][l]);
            }
        }
        half /= 2;
    }
    sums[0]
}

impl<S: Storage> Body for Axpy<S> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let p = self.0;
        // SAFETY: `rows` numbers of y, k of x, columns of the matrix, by the
        // contract of `GemvFn`.
        unsafe {
            let y = std::slice::from_raw_parts_mut(p.y as *mut S::Acc, p.rows);
            y.fill(S::Acc::default());
            let x = std::slice::from_raw_parts(p.x as *const S::Acc, p.k);
            let column = |q: usize| {
                let at = p.matrix.wrapping_offset(q as isize * p.along);
                std::slice::from_raw_parts(at as *const S, p.rows)
            };
            let mut q = 0;
            while q + 4 <= p.k {
                let (a, b, c, d) = (column(q), column(q + 1), column(q + 2), column(q + 3));
                for i in 0..p.rows {
                    let mut s = y[i];
                    s = mul_acc::<S::Acc, I>(s, a[i].widen(), x[q]);
                    s = mul_acc::<S::Acc, I>(s, b[i].widen(), x[q + 1]);
                    s = mul_acc::<S::Acc, I>(s, c[i].widen(), x[q + 2]);
                    s = mul_acc::<S::Acc, I>(s, d[i].widen(), x[q + 3]);
                    y[i] = s;
                }
                q += 4;
            }
            while q < p.k {
                let a = column(q);
                for i in 0..p.rows {
                    y[i] = mul_acc::<S::Acc, I>(y[i], a[i].widen(), x[q]);
                }
                q += 1;
            }
        }
    }
}

/// Adds `count` rows of `n` numbers into the first.
struct Fold<A>(*mut A, usize, usize);
impl<A: Num> Body for Fold<A> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let Fold(data, n, count) = self;
        // SAFETY: `count` rows of `n` numbers, the maker's promise; the first row
        // and the others are disjoint.
        unsafe {
            let first = std::slice::from_raw_parts_mut(data, n);
            for c in 1..count {
                let row = std::slice::from_raw_parts(data.add(c * n), n);
                for (to, from) in first.iter_mut().zip(row) {
                    *to = to.plus(*from);
                }
            }
        }
    }
}

/// Adds `count` rows of `n` numbers of `acc` bytes into the first row, in order. The rows are adjacent.
///
/// # Safety
/// They are float32 or float64, and nobody else's.
pub(super) unsafe fn fold(level: Level, acc: usize, data: *mut u8, n: usize, count: usize) {
    match (count, acc) {
        (1, _) => {}
        (_, 4) => at(level, Fold(data as *mut f32, n, count)),
        _ => at(level, Fold(data as *mut f64, n, count)),
    }
}

/// Computes a product with one row or one column, if a specialised path is worthwhile. Returns whether it did.
///
/// # Safety
/// The product's matrices are valid.
pub unsafe fn gemv(par: &Par, pr: &Product<'_>, level: Level) -> bool {
    let ops = pr.ops;
    let Some(fns) = ops.gemv else { return false };
    let size = ops.storage as isize;
    let (rows, matrix, row, along, x, x_step, y, y_step) = if pr.n == 1 {
        (pr.m, pr.a.data, pr.a.row, pr.a.col, pr.b.data, pr.b.row, pr.c.data, pr.c.row)
    } else if pr.m == 1 {
        (pr.n, pr.b.data, pr.b.col, pr.b.row, pr.a.data, pr.a.col, pr.c.data, pr.c.col)
    } else {
        return false;
    };
    let (matrix, x, k) = (Shared(matrix), x as *const u8, pr.k);
    let dot = along == size || k == 1 && row != size;
    if !dot && row != size {
        return false;
    }
    // Parts of a few hundred KiB; their sums are added in the order of k.
    let part = (rows * k / 32).clamp(1 << 16, 1 << 19);
    let (row_step, k_step) = if dot {
        let k_step = k.min(1 << 15);
        ((part / k_step).next_multiple_of(4).min(rows), k_step)
    } else {
        let row_step = rows.min(1 << 12);
        (row_step, (part / row_step).next_multiple_of(4).min(k))
    };
    let (row_parts, k_parts) = (rows.div_ceil(row_step), k.div_ceil(k_step));
    let x_bytes = (k * ops.acc).next_multiple_of(64);
    let scratch = Scratch::new(Slot::Call, x_bytes + k_parts * rows * ops.acc);
    let sums = Shared(scratch.get().wrapping_add(x_bytes));
    let numbers = ops.storage == ops.acc && x_step == size;
    if !numbers {
        let panel = Panel {
            src: x,
            across: x_step,
            along: 0,
            width: k,
            ld: k,
            unit: 1,
            k: 1,
            dst: scratch.get(),
        };
        // SAFETY: k elements of the vector, k numbers of scratch.
        unsafe { (ops.pack_a)(&panel) }
    }
    let x = Shared(if numbers { x as *mut u8 } else { scratch.get() });
    let f = if dot { fns.dot } else { fns.axpy };
    par.run(row_parts * k_parts, |i| {
        let (r, q) = (i % row_parts * row_step, i / row_parts * k_step);
        let part = Part {
            matrix: matrix.get().wrapping_offset(r as isize * row + q as isize * along),
            row,
            along,
            rows: row_step.min(rows - r),
            k: k_step.min(k - q),
            x: x.get().wrapping_add(q * ops.acc),
            y: sums.get().wrapping_add((q / k_step * rows + r) * ops.acc),
        };
        // SAFETY: a part of the matrix; each task has its own sums.
        unsafe { f(level, part) }
    });
    // SAFETY: rows sums of each part.
    unsafe { fold(level, ops.acc, sums.get(), rows, k_parts) }
    let block =
        Block { src: sums.get(), ld: rows, rows: 1, cols: rows, dst: y, row: 0, col: y_step };
    // SAFETY: `rows` sums, and as many elements of C.
    unsafe { (ops.store)(&block) }
    true
}
