//! LU factors with partial pivoting, computed recursively by halves of the columns.

use super::triangular::Triangle;
use super::{Blocked, Element, MOVED, Plane};
use crate::par::Shared;
use crate::strided::ranges;

/// Columns that are factored at a time.
const PANEL: usize = 32;
/// Columns in which one task swaps rows.
const SWAPPED: usize = 128;

impl<T: Element> Blocked<'_, T> {
    /// Writes the factors of the matrix `from` to `to`, its pivots and the order of its rows.
    ///
    /// # Safety
    /// The planes are valid, of one shape and elements `T`, and disjoint.
    pub unsafe fn lu(
        &self,
        to: Plane,
        from: Plane,
        pivots: &mut [u32],
        rows: &mut [u32],
    ) -> Result<(), String> {
        let (m, n) = (to.m, to.n);
        let k = m.min(n);
        if u32::try_from(m).is_err() {
            return Err("indices of the rows do not fit in uint32".into());
        }
        let factor = |a: Plane| {
            // SAFETY: by this function's contract, here and below.
            unsafe {
                self.columns(a, 0, k, pivots);
                self.swap(a.part(0, k, m, n - k), 0, &pivots[..k]);
                let top = a.part(0, k, k, n - k);
                self.solve_left(Triangle::unit_lower(a.part(0, 0, k, k)), top);
            }
        };
        // SAFETY: as above.
        unsafe { self.within(to, from, factor) };
        rows.iter_mut().zip(0..).for_each(|(row, i)| *row = i);
        (0..k).for_each(|i| rows.swap(i, pivots[i] as usize));
        Ok(())
    }

    /// Factors the columns `first..end`, below row `first`. The rows of other columns are not swapped.
    ///
    /// # Safety
    /// `a` is valid, with rows of adjacent elements.
    unsafe fn columns(&self, a: Plane, first: usize, end: usize, pivots: &mut [u32]) {
        let width = end - first;
        // SAFETY: parts of the matrix.
        unsafe {
            if width <= PANEL {
                let panel = a.part(first, first, a.m - first, width);
                return self.panel(panel, first as u32, &mut pivots[first..end]);
            }
            let middle = first + (width / 2).next_multiple_of(PANEL);
            self.columns(a, first, middle, pivots);
            let (left, right) = (middle - first, end - middle);
            self.swap(a.part(0, middle, a.m, right), first, &pivots[first..middle]);
            let top = a.part(first, middle, left, right);
            let below = a.part(middle, first, a.m - middle, left);
            self.solve_left(Triangle::unit_lower(a.part(first, first, left, left)), top);
            let rest = a.part(middle, middle, a.m - middle, right);
            self.subtract_product(rest, below, false, top);
            self.columns(a, middle, end, pivots);
            self.swap(a.part(0, first, a.m, left), middle, &pivots[middle..end]);
        }
    }

    /// Swaps rows from `first` on with the rows that pivots name.
    ///
    /// # Safety
    /// `a` is valid, with rows of adjacent elements; the pivots are rows of it.
    unsafe fn swap(&self, a: Plane, first: usize, pivots: &[u32]) {
        let data = Shared(a.place::<T>(0, 0));
        let row = a.strides()[0];
        let step = if a.n * pivots.len() < MOVED { a.n } else { SWAPPED };
        ranges(self.cx.par, a.n, step, |columns| {
            for (i, pivot) in (first..).zip(pivots) {
                let at = |i: usize| {
                    data.get().wrapping_offset(i as isize * row).wrapping_add(columns.start)
                };
                if i != *pivot as usize {
                    // SAFETY: two rows of the matrix, of whose columns this task has some to itself.
                    unsafe {
                        std::ptr::swap_nonoverlapping(at(i), at(*pivot as usize), columns.len());
                    }
                }
            }
        });
    }
}
