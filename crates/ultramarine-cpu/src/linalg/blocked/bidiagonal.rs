//! Singular values, of matrices that reflections from both sides make bidiagonal, a panel of columns and rows at a time
//! (Dongarra, Hammarling and Sorensen, Block reduction of matrices to condensed forms for eigenvalue computations, 1989).

use super::householder::{Project, reflection};
use super::strip::{Eliminate, LANES, Strip, minus_lanes};
use super::{Blocked, Element, Plane, Room, rooms};
use crate::level::{Body, Isa, at};
use crate::linalg::matrix::{Scratch, resized};
use crate::scratch::Slot;
use ultramarine_linalg::Real;

/// Columns and rows that are reduced before the rest of the matrix is.
const PANEL: usize = 32;
/// Columns that are multiplied with a vector at a time.
const TILE: usize = 8;

/// A matrix under reduction, with no fewer rows than columns.
struct Reduction<T> {
    m: usize,
    n: usize,
    /// The matrix as it was before the panel, and zeros around it.
    a: Strip<T>,
    /// The matrix so far is `A - L R^H`. The columns of L are V and X in turn, reflections from the left and products with those
    /// from the right.
    left: Strip<T>,
    /// Products with the reflections from the left, and those from the right, in turn.
    right: Strip<T>,
    /// The negative of R, conjugated.
    factors: Strip<T>,
    /// A row.
    row: Strip<T>,
    /// The result: the diagonal, and the elements beside it.
    bidiagonal: [Vec<f64>; 2],
    _room: Room,
}

impl<T: Element> Reduction<T> {
    fn new(m: usize, n: usize) -> Self {
        // Columns begin at different lines of the cache; vectors reach beyond the last row and column.
        let padded = [m, n].map(|n| n.next_multiple_of(LANES));
        let [long, short] = padded.map(|n| n + LANES);
        let pair = 2 * PANEL;
        let shapes = [[n + TILE, long], [pair, long], [pair, short], [pair, short], [1, short]];
        let (planes, room) = rooms::<T, 5>(Slot::Operands, shapes);
        let [a, left, right, factors, row] = planes.map(|p| {
            let strip = p.transposed().strip();
            Strip { m: strip.m - LANES, ..strip }
        });
        let bidiagonal = [vec![0.0; n], vec![0.0; n]];
        Reduction { m, n, a, left, right, factors, row, bidiagonal, _room: room }
    }
}

impl<T: Element> Blocked<'_, T> {
    /// Writes the singular values of the matrix `from`, in descending order.
    ///
    /// # Safety
    /// The planes are valid, of shapes that fit, and of elements `T` and its absolute values.
    pub unsafe fn singular_values(
        &self,
        s: Plane,
        from: Plane,
        scratch: &mut Scratch<T>,
    ) -> Result<(), String> {
        // The transposed matrix has the same ones.
        let from = if from.m < from.n { from.transposed() } else { from };
        let (m, n) = (from.m, from.n);
        let mut reduction = Reduction::<T>::new(m, n);
        let values = resized(&mut scratch.reals, n)?;
        // SAFETY: by this function's contract; the shapes fit.
        unsafe {
            let Reduction { a, left, right, row, .. } = reduction;
            [a, left, right, row].into_iter().for_each(|s| s.all().fill(T::default()));
            self.copy(a.rows(n).part(0, 0, n, m), from.transposed());
            let scale = self.scale([Strip { n, ..a }])?;
            for first in (0..n).step_by(PANEL) {
                let width = PANEL.min(n - first);
                for k in 0..width {
                    at(self.cx.level, Step { of: &mut reduction, first, k });
                }
                self.subtract(&mut reduction, first + width, 2 * width);
            }
            let [d, e] = &mut reduction.bidiagonal;
            T::bidiagonal(d, e, values)?;
            s.store(|i, _| <T::Norm as Real>::from_f64(values[i].to_f64() / scale));
        }
        Ok(())
    }

    /// Brings the rows and columns from `start` on to where a panel leaves them.
    ///
    /// # Safety
    /// The panel has so many columns of L and R.
    unsafe fn subtract(&self, r: &mut Reduction<T>, start: usize, width: usize) {
        let (m, n) = (r.m, r.n);
        if start == n {
            return;
        }
        // SAFETY: elements of the reduction's matrices, whose shapes fit.
        unsafe {
            for k in 0..width {
                let from = std::slice::from_raw_parts(r.right.place(start, k), n - start);
                let to = std::slice::from_raw_parts_mut(r.factors.place(start, k), n - start);
                to.iter_mut().zip(from).for_each(|(to, v)| *to = -v.conjugate());
            }
            let factors = r.factors.rows(width).part(0, start, width, n - start).transposed();
            let left = r.left.rows(width).part(0, start, width, m - start);
            self.add_product(r.a.rows(n).part(start, start, n - start, m - start), factors, left);
        }
    }
}

/// Reduces a column and a row of a panel: the `k`-th of those from `first` on.
struct Step<'a, T> {
    of: &'a mut Reduction<T>,
    first: usize,
    k: usize,
}

impl<T: Element> Body for Step<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Step { of, first, k } = self;
        let i = first + k;
        let Reduction { m, n, a, left, right, row, .. } = *of;
        // Vectors begin at lines of the cache; what is above is zero, or becomes it.
        let line = |i: usize| i / LANES * LANES;
        let clear = |of: Strip<T>, from: usize, until: usize| {
            // SAFETY: elements of the column, for which there is memory.
            unsafe { std::slice::from_raw_parts_mut(of.place(from, 0), until - from) }
                .fill(T::default());
        };
        let mut factors = [T::default(); 2 * PANEL];
        let strip = |data: &mut [T; 2 * PANEL], m: usize| Strip {
            data: data.as_mut_ptr(),
            ld: 2 * PANEL,
            m,
            n: 1,
        };
        // SAFETY: elements of the reduction's matrices, whose shapes fit.
        unsafe {
            // The column as the steps before leave it, and its reflection.
            let top = line(i);
            let lower = |count: usize| left.part(top, 0, count);
            let column = a.part(0, i, 1);
            (0..2 * k).for_each(|q| factors[q] = (*right.place(i, q)).conjugate());
            let target = column.part(top, 0, 1);
            Eliminate { left: lower(2 * k), factors: strip(&mut factors, 2 * k), right: target }
                .call(isa);
            let v = left.part(0, 2 * k, 1);
            let short = |of: Strip<T>, from: usize, until: usize| Strip {
                m: until - from,
                ..of.part(from, 0, 1)
            };
            let tau = reflection::<T>(short(column, i, m), short(v, i, m));
            of.bidiagonal[0][i] = (*column.place(i, 0)).widened()[0];
            clear(v, top, i);
            let x = left.part(0, 2 * k + 1, 1);
            clear(x, 0, x.m);
            if i + 1 == n {
                return;
            }

            // y = tau (A - L R^H)^H v.
            let behind = line(i + 1);
            let outer = |count: usize| right.part(behind, 0, count);
            let y = right.part(0, 2 * k, 1);
            let v_here = v.part(top, 0, 1);
            clear(y, 0, y.m);
            let columns = Strip { n: n - i - 1, ..a.part(top, i + 1, 0) };
            let to = Strip { m: n - i - 1, ..y.part(i + 1, 0, 1) };
            Project { left: columns, right: v_here, to }.call(isa);
            let z = strip(&mut factors, 2 * k);
            Project { left: lower(2 * k), right: v_here, to: z }.call(isa);
            Eliminate { left: outer(2 * k), factors: z, right: y.part(behind, 0, 1) }.call(isa);
            std::slice::from_raw_parts_mut(y.place(i + 1, 0), n - i - 1)
                .iter_mut()
                .for_each(|y| *y *= tau);
            clear(y, behind, i + 1);

            // The row, conjugated, and its reflection.
            clear(row, behind, row.m);
            for j in i + 1..n {
                *row.place(j, 0) = (*a.place(i, j)).conjugate();
            }
            let count = 2 * k + 1;
            (0..count).for_each(|q| factors[q] = (*left.place(i, q)).conjugate());
            let z = strip(&mut factors, count);
            Eliminate { left: outer(count), factors: z, right: row.part(behind, 0, 1) }.call(isa);
            let u = right.part(0, 2 * k + 1, 1);
            clear(u, 0, u.m);
            let tau = reflection::<T>(short(row, i + 1, n), short(u, i + 1, n));
            of.bidiagonal[1][i] = (*row.place(i + 1, 0)).widened()[0];

            // x = tau (A - L R^H) u.
            let x = x.part(behind, 0, 1);
            let a = Strip { n: n - i - 1, ..a.part(behind, i + 1, 0) };
            Multiply { a, by: u.place(i + 1, 0), to: x }.call(isa);
            Project { left: outer(count), right: u.part(behind, 0, 1), to: z }.call(isa);
            Eliminate { left: left.part(behind, 0, count), factors: z, right: x }.call(isa);
            let rest = std::slice::from_raw_parts_mut(x.data, x.m);
            rest.iter_mut().for_each(|x| *x *= tau);
            rest[..i + 1 - behind].fill(T::default());
        }
    }
}

/// `to += A by`. Behind the last column there are zeros.
struct Multiply<T> {
    a: Strip<T>,
    by: *const T,
    to: Strip<T>,
}

impl<T: Element> Body for Multiply<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Multiply { a, by, to } = self;
        for j in (0..a.n).step_by(TILE) {
            // SAFETY: the vector has zeros behind its last element, the matrix behind its last column.
            unsafe {
                let by: [T; TILE] = std::array::from_fn(|q| -*by.add(j + q));
                for i in (0..a.m).step_by(LANES) {
                    let mut sums = to.load(i, 0, LANES);
                    for (q, by) in by.into_iter().enumerate() {
                        let column = a.load(i, j + q, LANES);
                        sums = minus_lanes::<T, I>(sums, column, [by; LANES]);
                    }
                    to.store(i, 0, LANES, &sums);
                }
            }
        }
    }
}
