//! LU factors of a few columns. They are copied so that each column's elements are adjacent.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::strip::{Eliminate, LANES, Strip, minus};
use super::{Blocked, Element, Plane, Room};
use crate::level::{Body, Isa, Level, at};
use crate::scratch::Slot;

/// Columns that are factored one after the other.
const BASE: usize = 8;

impl<T: Element> Blocked<'_, T> {
    /// Factors a panel whose first row is row `first` of the matrix.
    ///
    /// # Safety
    /// The panel is valid, of elements `T`.
    pub(super) unsafe fn panel(&self, panel: Plane, first: u32, pivots: &mut [u32]) {
        // Begin columns at different cache sets.
        let ld = panel.m.next_multiple_of(LANES) + LANES;
        let room = Room::new::<T>(Slot::Operands, panel.n, ld);
        let columns = room.plane.part(0, 0, panel.n, panel.m);
        let strip = columns.transposed().strip::<T>();
        // SAFETY: the columns of the copy, which has the panel's shape.
        unsafe {
            self.copy(columns, panel.transposed());
            strip.factor(self.cx.level, pivots);
            self.copy(panel, columns.transposed());
        }
        pivots.iter_mut().for_each(|p| *p += first);
    }
}

impl<T: Element> Strip<T> {
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
            at(level, Forward { left: self.part(0, 0, left), right });
            let (below, factors) = (self.part(left, 0, left), right);
            at(level, Eliminate { left: below, factors, right: right.part(left, 0, right.n) });
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
}

/// Factors up to [`BASE`] columns. Before a column is factored, it is updated by the columns before it.
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
                // If the pivot is zero, the whole column is zero, and so are its factors.
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

/// Updates rows `j..` of column `j`. Returns the first row whose element has the largest magnitude.
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
        // Comparisons with NaN are false: NaN is never larger, and no element is larger than NaN.
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

/// Substitutes the first columns' factors in the rows of their pivots.
struct Forward<T> {
    left: Strip<T>,
    right: Strip<T>,
}

impl<T: Element> Body for Forward<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Forward { left, right } = self;
        let k = left.n;
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
    }
}
