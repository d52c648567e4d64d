//! Blocked algorithms for large matrices. Most of their work is matrix products, on the host's threads.
//!
//! During the work, a matrix has rows of adjacent elements, and is mostly in the result's own memory. Recursion halves
//! it down to blocks of a few columns, which specialised loops factor. The block sizes depend on the matrix sizes
//! alone, and products do not depend on the number of threads, so results do not either.

mod apply;
mod bidiagonal;
mod chain;
mod cholesky;
mod element;
mod hermitian;
mod householder;
mod lu;
mod panel;
mod pool;
mod qr;
mod scale;
mod strip;
mod triangular;

use super::Operation;
use super::matrix::Plane;
use crate::copy::strided::{self, Rect};
use crate::kernel::Context;
use crate::matmul::{self, ops::Ops};
use crate::par::Shared;
use crate::scratch::{Scratch, Slot};
pub use element::Element;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows and columns from which LU factors and triangular solves are blocked.
const LEAST: usize = 64;
/// Columns on the right-hand side from which a triangular solve is blocked.
const LEAST_COLUMNS: usize = 16;
/// Rows from which a Cholesky factorisation is blocked.
const LEAST_CHOLESKY: usize = 192;
/// Rows from which QR factors are blocked: of real, and of complex matrices.
const LEAST_QR: [usize; 2] = [12, 64];
/// Rows and columns from which on eigenvalues of Hermitian matrices, and singular values, are computed by a blocked
/// reduction.
const LEAST_REDUCED: usize = 64;
/// Number of moved elements that is worth a separate task.
const MOVED: usize = 1 << 15;

/// True if an operation on an `m` x `n` matrix, with a right-hand side of `k` columns, is blocked.
pub fn serves<T: Element>(operation: Operation, m: usize, n: usize, k: usize) -> bool {
    match operation {
        Operation::Cholesky => n >= LEAST_CHOLESKY,
        Operation::Lu => m.min(n) >= LEAST,
        Operation::Solve => n >= LEAST && k >= LEAST_COLUMNS,
        Operation::Qr => m >= LEAST_QR[T::IS_COMPLEX as usize],
        Operation::Eigh | Operation::EigvalsH => n >= LEAST_REDUCED,
        // Matrices with many more rows than columns are reduced to square ones first.
        Operation::SingularValues | Operation::Svd => {
            m.min(n) >= LEAST_REDUCED && m.max(n) <= 2 * m.min(n)
        }
        _ => false,
    }
}

/// The functions and threads that process matrices of `T`.
pub struct Blocked<'a, T> {
    cx: &'a Context,
    ops: Ops,
    of: PhantomData<T>,
}

/// Memory for a matrix with rows of adjacent elements.
struct Room {
    plane: Plane,
    _memory: Scratch,
}

impl Room {
    fn new<T>(slot: Slot, m: usize, n: usize) -> Room {
        let memory = Scratch::new(slot, m * n * size_of::<T>());
        Room { plane: Plane::dense::<T>(memory.get(), m, n), _memory: memory }
    }
}

/// Matrices with rows of adjacent elements, in one piece of memory.
fn rooms<T, const N: usize>(slot: Slot, shapes: [[usize; 2]; N]) -> ([Plane; N], Room) {
    let room = Room::new::<T>(slot, shapes.iter().map(|[m, n]| m * n).sum(), 1);
    let mut next = room.plane.data();
    let planes = shapes.map(|[m, n]| {
        let plane = Plane::dense::<T>(next, m, n);
        next = next.wrapping_add(m * n * size_of::<T>());
        plane
    });
    (planes, room)
}

impl<'a, T: Element> Blocked<'a, T> {
    /// None if there is no matrix product.
    pub fn new(cx: &'a Context) -> Option<Self> {
        let ops = matmul::ops::ops(T::DTYPE, cx.level)?;
        Some(Blocked { cx, ops, of: PhantomData })
    }

    /// Calls `work` to change a matrix with rows of adjacent elements, whose contents then become those of `to`. It
    /// works in place if `to` is such a matrix. `from` has the initial contents.
    ///
    /// # Safety
    /// The planes are valid, of one shape and elements `T`, and disjoint.
    unsafe fn within<R>(&self, to: Plane, from: Plane, work: impl FnOnce(Plane) -> R) -> R {
        // SAFETY: by this function's contract.
        unsafe {
            self.in_rows(to, |room| {
                self.copy(room, from);
                work(room)
            })
        }
    }

    /// Calls `work` to fill `to`, or another matrix with rows of adjacent elements that is then copied to `to`.
    ///
    /// # Safety
    /// The plane is valid, of elements `T`.
    unsafe fn in_rows<R>(&self, to: Plane, work: impl FnOnce(Plane) -> R) -> R {
        if to.has_rows() {
            return work(to);
        }
        let room = Room::new::<T>(Slot::Operands, to.m, to.n);
        let result = work(room.plane);
        // SAFETY: by this function's contract; the room has the same shape.
        unsafe { self.copy(to, room.plane) };
        result
    }

    /// Copies a matrix.
    ///
    /// # Safety
    /// The planes are valid, of one shape and elements `T`, and disjoint.
    unsafe fn copy(&self, to: Plane, from: Plane) {
        // SAFETY: passed on.
        unsafe { self.copy_from(to, from, |_| 0) }
    }

    /// Copies rows of a matrix, in blocks. `column` gives the first column to copy, from the block's first row.
    ///
    /// # Safety
    /// As [`Blocked::copy`].
    unsafe fn copy_from(&self, to: Plane, from: Plane, column: fn(usize) -> usize) {
        let size = size_of::<T>();
        self.tasks(to.m, to.n, |first, end| {
            let (rows, column) = (end - first, column(first).min(to.n));
            let columns = to.n - column;
            let rect = |p: &Plane| {
                let p = p.part(first, column, rows, columns);
                let [rows, columns] = p.strides().map(|s| s * size as isize);
                Rect { data: p.data(), rows, columns }
            };
            // SAFETY: rows of the planes.
            unsafe { strided::copy(self.cx.level, rect(&to), rect(&from), rows, columns, size) }
        });
    }

    /// Writes `value` to the columns that `columns` gives for each row.
    ///
    /// # Safety
    /// The plane is valid, of elements `T`, and has such columns.
    unsafe fn fill(&self, to: Plane, value: T, columns: impl Fn(usize) -> Range<usize> + Sync) {
        self.tasks(to.m, to.n, |first, end| {
            for i in first..end {
                let columns = columns(i);
                // SAFETY: elements of this task's rows.
                unsafe {
                    if to.has_rows() {
                        let row = to.place::<T>(i, columns.start);
                        std::slice::from_raw_parts_mut(row, columns.len()).fill(value);
                    } else {
                        columns.for_each(|j| *to.place::<T>(i, j) = value);
                    }
                }
            }
        });
    }

    /// Calls `body` with ranges of `m` rows of `n` elements, on all threads if that is worth it.
    fn tasks(&self, m: usize, n: usize, body: impl Fn(usize, usize) + Sync) {
        let rows = (MOVED / n.max(1)).next_multiple_of(16);
        self.cx.par.run(m.div_ceil(rows), |i| body(i * rows, m.min((i + 1) * rows)));
    }

    /// The negative of a matrix, or of its conjugate.
    ///
    /// # Safety
    /// The plane is valid, of elements `T`.
    unsafe fn negated(&self, of: Plane, conjugate: bool) -> Room {
        // Adjacent elements stay adjacent.
        if of.strides()[0] == 1 && of.strides()[1] != 1 {
            // SAFETY: by this function's contract.
            let room = unsafe { self.negated(of.transposed(), conjugate) };
            return Room { plane: room.plane.transposed(), ..room };
        }
        let room = Room::new::<T>(Slot::Slab, of.m, of.n);
        let (to, n) = (Shared(room.plane.place::<T>(0, 0)), of.n);
        self.tasks(of.m, n, |first, end| {
            for i in first..end {
                let change = |v: T| if conjugate { -v.conjugate() } else { -v };
                // SAFETY: row i of both, of which this task writes one.
                unsafe {
                    let to = std::slice::from_raw_parts_mut(to.get().add(i * n), n);
                    if of.strides()[1] == 1 {
                        let from = std::slice::from_raw_parts(of.place::<T>(i, 0), n);
                        to.iter_mut().zip(from).for_each(|(to, v)| *to = change(*v));
                    } else {
                        (0..n).for_each(|j| to[j] = change(*of.place::<T>(i, j)));
                    }
                }
            }
        });
        room
    }

    /// `c += a b`.
    ///
    /// # Safety
    /// The planes are valid, of elements `T` and of shapes that fit; c has rows of adjacent elements and overlaps neither.
    unsafe fn add_product(&self, c: Plane, a: Plane, b: Plane) {
        // SAFETY: passed on.
        unsafe { self.product(c, a, b, true) }
    }

    /// `c = a b`, or added to c.
    ///
    /// # Safety
    /// As [`Blocked::add_product`].
    unsafe fn product(&self, c: Plane, a: Plane, b: Plane, add: bool) {
        if c.m == 0 || c.n == 0 || a.n == 0 {
            return;
        }
        let at = |p: Plane| (p.data(), p.strides().map(|s| s * size_of::<T>() as isize));
        // SAFETY: by this function's contract.
        unsafe { matmul::product(self.cx, &self.ops, [c.m, c.n, a.n], [at(a), at(b), at(c)], add) }
    }

    /// `c -= a b`, or with a's conjugate.
    ///
    /// # Safety
    /// As [`Blocked::add_product`].
    unsafe fn subtract_product(&self, c: Plane, a: Plane, conjugate: bool, b: Plane) {
        if c.m == 0 || c.n == 0 {
            return;
        }
        // SAFETY: by this function's contract.
        unsafe {
            // Negate the smaller factor.
            if conjugate || c.m <= c.n {
                let a = self.negated(a, conjugate);
                self.add_product(c, a.plane, b);
            } else {
                let b = self.negated(b, false);
                self.add_product(c, a, b.plane);
            }
        }
    }
}
