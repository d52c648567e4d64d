//! Applies many reflections to a matrix, in blocks by matrix products. Each task processes some columns of the matrix.

use super::householder::{Project, sum};
use super::strip::Strip;
use super::{Blocked, Element, Plane, rooms};
use crate::level::at;
use crate::par::Shared;
use crate::scratch::Slot;

/// Reflections that are applied together.
const WIDTH: usize = 64;
/// Columns of the matrix that are a task.
const COLUMNS: usize = 32;

/// Reflections `I - tau v v^H`. The last one is applied first.
pub struct Chain<'a, T> {
    /// The vectors, one in each column, with zeros above their ones.
    pub vectors: Strip<T>,
    /// The row of the one in the first vector. It is one row lower in each further vector.
    pub first: usize,
    pub taus: &'a [T],
}

impl<T: Element> Blocked<'_, T> {
    /// Applies the reflections to c.
    ///
    /// # Safety
    /// The strip and the plane are valid, of as many rows, and disjoint; c has rows of adjacent elements.
    pub unsafe fn apply(&self, chain: &Chain<'_, T>, c: Plane) {
        let Chain { vectors, first, taus } = *chain;
        let (m, count) = (c.m, taus.len());
        let columns = vectors.rows(count).part(0, 0, count, m);
        // SAFETY: the vectors.
        let room = unsafe { self.negated(columns, true) };
        let negated = room.plane;
        let blocks = count.div_ceil(WIDTH);
        let block = |b: usize| (b * WIDTH, WIDTH.min(count - b * WIDTH), b * WIDTH + first);
        let mut factors = vec![T::default(); blocks * WIDTH * WIDTH];
        let factors = Shared(factors.as_mut_ptr());
        let factor = |b: usize| {
            let data = factors.get().wrapping_add(b * WIDTH * WIDTH);
            Plane::dense::<T>(data.cast(), WIDTH, WIDTH)
        };
        self.cx.par.run(blocks, |b| {
            let (from, width, row) = block(b);
            let left = columns.part(from, row, width, m - row).transposed().strip();
            // SAFETY: parts of the vectors; each task has a factor of its own.
            unsafe { self.triangle(left, &taus[from..from + width], factor(b)) };
        });
        self.cx.par.run(c.n.div_ceil(COLUMNS), |task| {
            let at = task * COLUMNS;
            let n = COLUMNS.min(c.n - at);
            let ([one, two], _room) = rooms::<T, 2>(Slot::Slab, [[WIDTH, n]; 2]);
            for b in (0..blocks).rev() {
                let (from, width, row) = block(b);
                let rows = m - row;
                let (to, t) = (c.part(row, at, rows, n), factor(b).part(0, 0, width, width));
                let [one, two] = [one, two].map(|p| p.part(0, 0, width, n));
                // SAFETY: parts of the matrices, whose shapes fit; columns of c that are this task's.
                unsafe {
                    self.product(one, negated.part(from, row, width, rows), to, false);
                    self.product(two, t, one, false);
                    self.add_product(to, columns.part(from, row, width, rows).transposed(), two);
                }
            }
        });
    }

    /// Computes T of `I - V T V^H`, the product of some reflections, into memory that holds zeros.
    ///
    /// # Safety
    /// The strip and the plane are valid, and no other thread's.
    unsafe fn triangle(&self, v: Strip<T>, taus: &[T], t: Plane) {
        let mut products = vec![T::default(); WIDTH * WIDTH];
        let products = Strip { data: products.as_mut_ptr(), ld: WIDTH, m: v.n, n: v.n };
        // SAFETY: by this function's contract.
        unsafe {
            at(self.cx.level, Project { left: v, right: v, to: products });
            for (j, tau) in taus.iter().enumerate() {
                *t.place(j, j) = *tau;
                for i in 0..j {
                    let terms = (i..j).map(|q| *t.place::<T>(i, q) * *products.place(q, j));
                    *t.place(i, j) = -(*tau * sum(terms));
                }
            }
        }
    }

    /// Writes columns of real elements, in the order that is given.
    ///
    /// # Safety
    /// The plane is valid, of as many rows and columns at least, of elements `T`, and has rows of adjacent elements.
    pub unsafe fn write_columns(&self, to: Plane, columns: &[T::Norm], order: &[usize]) {
        let n = order.len();
        self.tasks(n, n, |first, end| {
            for first in (first..end).step_by(16) {
                let rows = first..end.min(first + 16);
                for (j, from) in order.iter().enumerate() {
                    let column = &columns[from * n..][rows.clone()];
                    for (i, v) in rows.clone().zip(column) {
                        let v = ultramarine_linalg::Real::to_f64(*v);
                        // SAFETY: elements of this task's rows.
                        unsafe { *to.place(i, j) = T::rounded([v, 0.0]) };
                    }
                }
            }
        });
    }
}
