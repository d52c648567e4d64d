//! Strips of a few columns with adjacent elements. Panels are copied to strips, which specialised loops process.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::{Element, Plane};
use crate::level::{Body, Isa};

/// Rows that are worked on at a time.
pub const LANES: usize = 16;
/// Columns that are updated at a time, where there are more than one.
const TILE: usize = 4;

/// Columns of `m` elements, `ld` elements apart.
#[derive(Clone, Copy)]
pub struct Strip<T> {
    pub data: *mut T,
    pub ld: usize,
    pub m: usize,
    pub n: usize,
}

impl<T: Element> Strip<T> {
    /// Element `(i, j)`.
    #[inline(always)]
    pub fn place(&self, i: usize, j: usize) -> *mut T {
        self.data.wrapping_add(i + j * self.ld)
    }

    /// The rows from `i` and the columns `j..j + n`.
    #[inline(always)]
    pub fn part(&self, i: usize, j: usize, n: usize) -> Strip<T> {
        Strip { data: self.place(i, j), ld: self.ld, m: self.m - i, n }
    }

    /// Its memory, including the memory between the columns.
    ///
    /// # Safety
    /// The strip is valid, including the gaps between its columns, and nothing else uses it.
    pub unsafe fn all<'a>(&self) -> &'a mut [T] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.n * self.ld) }
    }

    /// The first columns as rows.
    pub fn rows(&self, columns: usize) -> Plane {
        Plane::dense::<T>(self.data.cast(), columns, self.ld)
    }

    /// # Safety
    /// So many elements of the column are readable.
    #[inline(always)]
    pub unsafe fn load(&self, i: usize, j: usize, count: usize) -> [T; LANES] {
        // SAFETY: by this function's contract.
        unsafe {
            if count == LANES {
                return self.place(i, j).cast::<[T; LANES]>().read_unaligned();
            }
            let mut lanes = [T::default(); LANES];
            std::ptr::copy_nonoverlapping(self.place(i, j), lanes.as_mut_ptr(), count);
            lanes
        }
    }

    /// # Safety
    /// So many elements of the column are writable.
    #[inline(always)]
    pub unsafe fn store(&self, i: usize, j: usize, count: usize, lanes: &[T; LANES]) {
        // SAFETY: by this function's contract.
        unsafe {
            if count == LANES {
                return self.place(i, j).cast::<[T; LANES]>().write_unaligned(*lanes);
            }
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), self.place(i, j), count);
        }
    }
}

impl Plane {
    /// The matrix as a strip, whose columns have adjacent elements.
    pub fn strip<T>(&self) -> Strip<T> {
        let [row, column] = self.strides();
        debug_assert!(row == 1 || self.m <= 1);
        Strip { data: self.place(0, 0), ld: column as usize, m: self.m, n: self.n }
    }
}

/// `right -= left * factors`.
pub struct Eliminate<T> {
    pub left: Strip<T>,
    pub factors: Strip<T>,
    pub right: Strip<T>,
}

impl<T: Element> Body for Eliminate<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        if self.right.n == 1 { self.tiles::<I, 1>() } else { self.tiles::<I, TILE>() }
    }
}

impl<T: Element> Eliminate<T> {
    /// Works on `TILE` columns at a time.
    #[inline(always)]
    fn tiles<I: Isa, const TILE: usize>(self) {
        let Eliminate { left, factors, right } = self;
        for j in (0..right.n).step_by(TILE) {
            let columns = TILE.min(right.n - j);
            // Process the last column again in place of missing ones.
            let column = |c: usize| j + c.min(columns - 1);
            for i in (0..right.m).step_by(LANES) {
                let count = LANES.min(right.m - i);
                let mut sums = [[T::default(); LANES]; TILE];
                // SAFETY: elements of the strips, whose shapes fit.
                unsafe {
                    for c in 0..TILE {
                        sums[c] = right.load(i, column(c), count);
                    }
                    for q in 0..left.n {
                        let a = left.load(i, q, count);
                        for c in 0..TILE {
                            let b = *factors.place(q, column(c));
                            for l in 0..LANES {
                                sums[c][l] = minus::<T, I>(sums[c][l], a[l], b);
                            }
                        }
                    }
                    for c in 0..columns {
                        right.store(i, j + c, count, &sums[c]);
                    }
                }
            }
        }
    }
}

/// `sum - a * b`.
#[inline(always)]
pub fn minus<T: Element, I: Isa>(sum: T, a: T, b: T) -> T {
    if I::FMA { sum.minus_product::<true>(a, b) } else { sum.minus_product::<false>(a, b) }
}

/// `sums - a * b`, lane by lane. The arguments are passed by value, so that each is one vector.
#[inline(always)]
pub fn minus_lanes<T: Element, I: Isa>(
    mut sums: [T; LANES],
    a: [T; LANES],
    b: [T; LANES],
) -> [T; LANES] {
    for l in 0..LANES {
        sums[l] = minus::<T, I>(sums[l], a[l], b[l]);
    }
    sums
}
