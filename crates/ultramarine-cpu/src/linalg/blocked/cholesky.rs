//! Cholesky factors, computed recursively by halves.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::triangular::Triangle;
use super::{Blocked, Element, Plane, Room};
use crate::level::{Body, Isa, at};
use crate::scratch::Slot;

/// Rows of a block that is factored row by row.
const BLOCK: usize = 32;
/// Rows of the diagonal blocks, in which both triangles are updated.
const DIAGONAL: usize = 128;

impl<T: Element> Blocked<'_, T> {
    /// Writes the upper or lower factor of the matrix `from` to `to`; NaN if the matrix is not positive definite. Only
    /// the corresponding triangle of `from` is read.
    ///
    /// # Safety
    /// The planes are valid, square, of one size and elements `T`, and disjoint.
    pub unsafe fn cholesky(&self, to: Plane, from: Plane, upper: bool) {
        let nan = T::of_parts([f64::NAN, if T::IS_COMPLEX { f64::NAN } else { 0.0 }]);
        // The transposed lower triangle is the upper triangle of the conjugate matrix; the same holds for the factors.
        let turned = |p: Plane| if upper { p } else { p.transposed() };
        // SAFETY: by this function's contract; the room has the same shape.
        unsafe {
            let fine = if turned(to).has_rows() {
                self.copy_from(turned(to), turned(from), |row| row);
                self.upper(turned(to))
            } else {
                let room = Room::new::<T>(Slot::Operands, to.m, to.n);
                self.copy_from(room.plane, turned(from), |row| row);
                let fine = self.upper(room.plane);
                self.copy_from(turned(to), room.plane, |row| row);
                fine
            };
            let n = to.n;
            self.fill(to, T::default(), |i| if upper { 0..i } else { i + 1..n });
            if !fine {
                self.fill(to, nan, |i| if upper { i..n } else { 0..i + 1 });
            }
        }
    }

    /// Replaces the upper triangle by U of `a = U^H U`. False if it is not positive definite.
    ///
    /// # Safety
    /// The plane is valid, square, of elements `T`, with rows of adjacent elements.
    unsafe fn upper(&self, a: Plane) -> bool {
        let n = a.n;
        if n <= BLOCK {
            return at(self.cx.level, Block::<T>(a, []));
        }
        let half = (n / 2).next_multiple_of(BLOCK);
        let (corner, right) = (a.part(0, 0, half, half), a.part(0, half, half, n - half));
        let rest = a.part(half, half, n - half, n - half);
        // SAFETY: parts of the matrix.
        unsafe {
            if !self.upper(corner) {
                return false;
            }
            let adjoint = corner.transposed();
            let adjoint = Triangle { plane: adjoint, upper: false, unit: false, conjugate: true };
            self.solve_left(adjoint, right);
            let negated = self.negated(right, true);
            self.add_to_upper(rest, negated.plane.transposed(), right);
            drop(negated);
            self.upper(rest)
        }
    }

    /// Updates the upper triangle by `c += a b`; some elements below it change too.
    ///
    /// # Safety
    /// As [`Blocked::add_product`], for square c.
    unsafe fn add_to_upper(&self, c: Plane, a: Plane, b: Plane) {
        let (n, k) = (c.n, a.n);
        // SAFETY: parts of the matrices.
        unsafe {
            if n <= DIAGONAL {
                return self.add_product(c, a, b);
            }
            let half = (n / 2).next_multiple_of(BLOCK);
            let (top, bottom) = (a.part(0, 0, half, k), a.part(half, 0, n - half, k));
            let (left, right) = (b.part(0, 0, k, half), b.part(0, half, k, n - half));
            self.add_to_upper(c.part(0, 0, half, half), top, left);
            self.add_product(c.part(0, half, half, n - half), top, right);
            self.add_to_upper(c.part(half, half, n - half, n - half), bottom, right);
        }
    }
}

/// Factors a matrix of at most [`BLOCK`] rows.
struct Block<T>(Plane, [T; 0]);

impl<T: Element> Body for Block<T> {
    type Output = bool;
    #[inline(always)]
    fn call<I: Isa>(self, _: I) -> bool {
        let Block(plane, _) = self;
        let n = plane.n;
        let mut a = [[T::default(); BLOCK]; BLOCK];
        for i in 0..n {
            // SAFETY: the upper triangle of the matrix, whose rows have adjacent elements.
            unsafe {
                std::ptr::copy_nonoverlapping(plane.place(i, i), a[i][i..].as_mut_ptr(), n - i);
            }
        }
        for i in 0..n {
            let mut row = a[i];
            let Some(root) = row[i].root() else { return false };
            let by = root.divisor();
            for l in 0..BLOCK {
                row[l] = row[l].divided(by);
            }
            row[i] = root;
            a[i] = row;
            for j in i + 1..n {
                let factor = row[j].conjugate();
                let mut below = a[j];
                for l in 0..BLOCK {
                    below[l] = if I::FMA {
                        below[l].minus_product::<true>(row[l], factor)
                    } else {
                        below[l].minus_product::<false>(row[l], factor)
                    };
                }
                a[j] = below;
            }
            // SAFETY: as above.
            unsafe {
                std::ptr::copy_nonoverlapping(row[i..].as_ptr(), plane.place(i, i), n - i);
            }
        }
        true
    }
}
