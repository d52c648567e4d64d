//! Triangular solves with many right-hand sides, computed recursively by halves of the triangle.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::{Blocked, Element, Plane};
use crate::level::{Body, Isa, at};
use crate::par::Shared;
use crate::strided::ranges;

/// Rows of a block that is solved by substitution.
const BLOCK: usize = 32;
/// Columns that a task substitutes.
const COLUMNS: usize = 128;
/// Number of multiply-adds by substitution that is not worth several tasks.
const FEW: usize = 1 << 17;

/// A triangular matrix.
#[derive(Clone, Copy)]
pub struct Triangle {
    /// The matrix, one triangle of which is read.
    pub plane: Plane,
    /// Set if the upper triangle is read.
    pub upper: bool,
    /// Set if the diagonal consists of ones and is not read.
    pub unit: bool,
    /// Set if the conjugate matrix is used.
    pub conjugate: bool,
}

impl Triangle {
    /// A lower triangle, with ones on the diagonal.
    pub fn unit_lower(plane: Plane) -> Triangle {
        Triangle { plane, upper: false, unit: true, conjugate: false }
    }

    /// The block on the diagonal from `first` on.
    fn block(self, first: usize, n: usize) -> Triangle {
        Triangle { plane: self.plane.part(first, first, n, n), ..self }
    }
}

impl<T: Element> Blocked<'_, T> {
    /// Writes the solution x of `a x = from` to `to`.
    ///
    /// # Safety
    /// The planes are valid, of elements `T` and shapes that fit, and disjoint.
    pub unsafe fn solve(
        &self,
        a: Plane,
        upper: bool,
        to: Plane,
        from: Plane,
    ) -> Result<(), String> {
        // SAFETY: elements on the diagonal.
        let zero = |i: &usize| unsafe { *a.place::<T>(*i, *i) } == T::default();
        if let Some(i) = (0..a.n).find(zero) {
            return Err(format!(
                "the matrix is singular: element ({i}, {i}) is 0. Use pinv, or add a small multiple of the identity"
            ));
        }
        let triangle = Triangle { plane: a, upper, unit: false, conjugate: false };
        // SAFETY: by this function's contract.
        unsafe { self.within(to, from, |b| self.solve_left(triangle, b)) };
        Ok(())
    }

    /// Replaces b by x of `t x = b`.
    ///
    /// # Safety
    /// The planes are valid, of elements `T`, shapes that fit, and disjoint; b has rows of adjacent elements.
    pub(super) unsafe fn solve_left(&self, t: Triangle, b: Plane) {
        let n = t.plane.n;
        if n == 0 || b.n == 0 {
            return;
        }
        // SAFETY: parts of the planes.
        unsafe {
            if n <= BLOCK {
                return self.substitute(t, b);
            }
            let half = (n / 2).next_multiple_of(BLOCK);
            let (low, high) = (t.block(0, half), t.block(half, n - half));
            let (top, bottom) = (b.part(0, 0, half, b.n), b.part(half, 0, n - half, b.n));
            if t.upper {
                self.solve_left(high, bottom);
                let right = t.plane.part(0, half, half, n - half);
                self.subtract_product(top, right, t.conjugate, bottom);
                self.solve_left(low, top);
            } else {
                self.solve_left(low, top);
                let left = t.plane.part(half, 0, n - half, half);
                self.subtract_product(bottom, left, t.conjugate, top);
                self.solve_left(high, bottom);
            }
        }
    }

    /// # Safety
    /// As [`Blocked::solve_left`], for at most [`BLOCK`] rows.
    unsafe fn substitute(&self, t: Triangle, b: Plane) {
        let n = t.plane.n;
        // The rows in the order of the substitution.
        let order = |i: usize| if t.upper { n - 1 - i } else { i };
        let mut triangle = [[T::default(); BLOCK]; BLOCK];
        let mut diagonal = [T::Divisor::default(); BLOCK];
        for i in 0..n {
            for j in 0..=i {
                if i == j && t.unit {
                    continue;
                }
                // SAFETY: an element of the triangle.
                let v = unsafe { *t.plane.place::<T>(order(i), order(j)) };
                let v = if t.conjugate { v.conjugate() } else { v };
                if i == j {
                    diagonal[i] = v.divisor();
                } else {
                    triangle[i][j] = v;
                }
            }
        }
        let row = b.strides()[0];
        let data = Shared(b.place::<T>(order(0), 0));
        let row = if t.upper { -row } else { row };
        let step = if n * n * b.n <= FEW { b.n } else { COLUMNS };
        ranges(self.cx.par, b.n, step, |columns| {
            let part = Substitution {
                n,
                triangle: &triangle,
                diagonal: (!t.unit).then_some(&diagonal),
                data: data.get().wrapping_add(columns.start),
                row,
                columns: columns.len(),
            };
            if size_of::<T>() == 4 {
                at(self.cx.level, Wide::<T, 64>(part))
            } else {
                at(self.cx.level, Wide::<T, 32>(part))
            }
        });
    }
}

/// A substitution: its lower triangle, and columns of the right-hand side.
struct Substitution<'a, T: Element> {
    n: usize,
    triangle: &'a [[T; BLOCK]; BLOCK],
    /// `None` if the diagonal consists of ones.
    diagonal: Option<&'a [T::Divisor; BLOCK]>,
    data: *mut T,
    row: isize,
    columns: usize,
}

/// A substitution, `L` columns at a time.
struct Wide<'a, T: Element, const L: usize>(Substitution<'a, T>);

impl<T: Element, const L: usize> Body for Wide<'_, T, L> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let p = self.0;
        let mut solved = [[T::default(); L]; BLOCK];
        for first in (0..p.columns).step_by(L) {
            let count = L.min(p.columns - first);
            for i in 0..p.n {
                let at = p.data.wrapping_offset(i as isize * p.row).wrapping_add(first);
                let mut sums = [T::default(); L];
                // SAFETY: columns first.. of row i, as many as there are.
                unsafe {
                    if count == L {
                        sums = at.cast::<[T; L]>().read_unaligned();
                    } else {
                        std::ptr::copy_nonoverlapping(at, sums.as_mut_ptr(), count);
                    }
                }
                for j in 0..i {
                    let by = p.triangle[i][j];
                    for l in 0..L {
                        sums[l] = if I::FMA {
                            sums[l].minus_product::<true>(solved[j][l], by)
                        } else {
                            sums[l].minus_product::<false>(solved[j][l], by)
                        };
                    }
                }
                if let Some(diagonal) = p.diagonal {
                    for l in 0..L {
                        sums[l] = sums[l].divided(diagonal[i]);
                    }
                }
                solved[i] = sums;
                // SAFETY: as above.
                unsafe {
                    if count == L {
                        at.cast::<[T; L]>().write_unaligned(sums);
                    } else {
                        std::ptr::copy_nonoverlapping(sums.as_ptr(), at, count);
                    }
                }
            }
        }
    }
}
