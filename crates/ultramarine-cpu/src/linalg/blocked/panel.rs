//! LU factors of a few columns, which are copied so that each column's elements are adjacent.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::{Blocked, Element, Plane, Room};
use crate::level::{Body, Isa, Level, at};
use crate::scratch::Slot;

/// Columns that are factored one after the other.
const BASE: usize = 8;
/// Rows that are worked on at a time.
const LANES: usize = 16;
/// Columns that are updated at a time.
const TILE: usize = 4;

impl<T: Element> Blocked<'_, T> {
    /// Factors a panel whose first row is row `first` of the matrix.
    ///
    /// # Safety
    /// The panel is valid, of elements `T`.
    pub(super) unsafe fn panel(&self, panel: Plane, first: u32, pivots: &mut [u32]) {
        // Columns begin at different lines of the cache.
        let ld = panel.m.next_multiple_of(LANES) + LANES;
        let room = Room::new::<T>(Slot::Operands, panel.n, ld);
        let columns = room.plane.part(0, 0, panel.n, panel.m);
        let strip = Strip { data: columns.place::<T>(0, 0), ld, m: panel.m, n: panel.n };
        // SAFETY: the columns of the copy, which has the panel's shape.
        unsafe {
            self.copy(columns, panel.transposed());
            strip.factor(self.cx.level, pivots);
            self.copy(panel, columns.transposed());
        }
        pivots.iter_mut().for_each(|p| *p += first);
    }
}

/// Columns of `m` elements, `ld` from one to the next.
#[derive(Clone, Copy)]
struct Strip<T> {
    data: *mut T,
    ld: usize,
    m: usize,
    n: usize,
}

impl<T: Element> Strip<T> {
    /// Element `(i, j)`.
    #[inline(always)]
    fn place(&self, i: usize, j: usize) -> *mut T {
        self.data.wrapping_add(i + j * self.ld)
    }

    /// The rows from `i` and the columns `j..j + n`.
    #[inline(always)]
    fn part(&self, i: usize, j: usize, n: usize) -> Strip<T> {
        Strip { data: self.place(i, j), ld: self.ld, m: self.m - i, n }
    }

    /// # Safety
    /// The strip is valid, with at least as many rows as columns.
    unsafe fn factor(self, level: Level, pivots: &mut [u32]) {
        // SAFETY: parts of the strip.
        unsafe {
            if self.n <= BASE {
                return at(level, Columns { strip: self, pivots });
            }
            let left = (self.n / 2).next_multiple_of(BASE);
            let (first, second) = pivots.split_at_mut(left);
            self.part(0, 0, left).factor(level, first);
            let right = self.part(0, left, self.n - left);
            right.swap(0, first);
            at(level, Update { left: self.part(0, 0, left), right });
            right.part(left, 0, right.n).factor(level, second);
            second.iter_mut().for_each(|p| *p += left as u32);
            self.part(0, 0, left).swap(left, second);
        }
    }

    /// # Safety
    /// The strip is valid, the pivots are rows of it.
    #[inline(always)]
    unsafe fn swap(&self, first: usize, pivots: &[u32]) {
        for j in 0..self.n {
            for (i, pivot) in (first..).zip(pivots) {
                // SAFETY: two elements of a column, or one.
                unsafe { std::ptr::swap(self.place(i, j), self.place(*pivot as usize, j)) };
            }
        }
    }

    /// # Safety
    /// So many elements of the column are readable.
    #[inline(always)]
    unsafe fn load(&self, i: usize, j: usize, count: usize) -> [T; LANES] {
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
    unsafe fn store(&self, i: usize, j: usize, count: usize, lanes: &[T; LANES]) {
        // SAFETY: by this function's contract.
        unsafe {
            if count == LANES {
                return self.place(i, j).cast::<[T; LANES]>().write_unaligned(*lanes);
            }
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), self.place(i, j), count);
        }
    }
}

/// Factors up to [`BASE`] columns: each is brought up to date by those before it when its turn comes.
struct Columns<'a, T> {
    strip: Strip<T>,
    pivots: &'a mut [u32],
}

impl<T: Element> Body for Columns<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Columns { strip, pivots } = self;
        for j in 0..strip.n {
            // SAFETY: elements of the strip, of which `m >= n` rows and n columns are valid.
            unsafe {
                let mut factors = [T::default(); BASE];
                for i in 0..j {
                    let mut sum = *strip.place(i, j);
                    for q in 0..i {
                        sum = minus::<T, I>(sum, *strip.place(i, q), factors[q]);
                    }
                    *strip.place(i, j) = sum;
                    factors[i] = sum;
                }
                let pivot = update::<T, I>(&strip, j, &factors);
                pivots[j] = pivot as u32;
                if pivot != j {
                    for c in 0..strip.n {
                        std::ptr::swap(strip.place(j, c), strip.place(pivot, c));
                    }
                }
                let head = *strip.place(j, j);
                // With a pivot of zero the whole column is zero, and so are its factors.
                if head != T::default() {
                    let by = head.divisor();
                    let below =
                        std::slice::from_raw_parts_mut(strip.place(j + 1, j), strip.m - j - 1);
                    below.iter_mut().for_each(|v| *v = v.divided(by));
                }
            }
        }
    }
}

/// Brings rows `j..` of column `j` up to date; the first row with the element of the largest magnitude.
///
/// # Safety
/// The strip is valid.
#[inline(always)]
unsafe fn update<T: Element, I: Isa>(strip: &Strip<T>, j: usize, factors: &[T; BASE]) -> usize {
    let m = strip.m;
    // SAFETY: rows j.. of the strip.
    unsafe {
        let mut head = *strip.place(j, j);
        for q in 0..j {
            head = minus::<T, I>(head, *strip.place(j, q), factors[q]);
        }
        // NaN is never larger, and nothing is larger than it.
        let head = head.size();
        let mut most = [head; LANES];
        for i in (j..m).step_by(LANES) {
            let count = LANES.min(m - i);
            let mut sums = strip.load(i, j, count);
            for q in 0..j {
                let column = strip.load(i, q, count);
                for l in 0..LANES {
                    sums[l] = minus::<T, I>(sums[l], column[l], factors[q]);
                }
            }
            strip.store(i, j, count, &sums);
            for l in 0..LANES {
                let size = sums[l].size();
                most[l] = if size > most[l] { size } else { most[l] };
            }
        }
        let most = most.into_iter().fold(head, |most, size| if size > most { size } else { most });
        if most > head {
            let column = std::slice::from_raw_parts(strip.place(j, j), m - j);
            j + column.iter().position(|v| v.size() == most).unwrap_or(0)
        } else {
            j
        }
    }
}

#[inline(always)]
fn minus<T: Element, I: Isa>(sum: T, a: T, b: T) -> T {
    if I::FMA { sum.minus_product::<true>(a, b) } else { sum.minus_product::<false>(a, b) }
}

/// Brings columns up to date by factored ones: U in the rows of their pivots, sums below.
struct Update<T> {
    left: Strip<T>,
    right: Strip<T>,
}

impl<T: Element> Body for Update<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Update { left, right } = self;
        let (m, k) = (left.m, left.n);
        for j in 0..right.n {
            for q in 0..k {
                // SAFETY: elements of the strips, which have at least k rows.
                unsafe {
                    let factor = *right.place(q, j);
                    for i in q + 1..k {
                        let to = right.place(i, j);
                        *to = minus::<T, I>(*to, *left.place(i, q), factor);
                    }
                }
            }
        }
        for j in (0..right.n).step_by(TILE) {
            let columns = TILE.min(right.n - j);
            for i in (k..m).step_by(LANES) {
                let count = LANES.min(m - i);
                let mut sums = [[T::default(); LANES]; TILE];
                // SAFETY: rows i.. of columns j..; of missing columns the last one is taken instead.
                unsafe {
                    let column = |c: usize| j + c.min(columns - 1);
                    for c in 0..TILE {
                        sums[c] = right.load(i, column(c), count);
                    }
                    for q in 0..k {
                        let a = left.load(i, q, count);
                        for c in 0..TILE {
                            let b = *right.place(q, column(c));
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
