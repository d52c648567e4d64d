//! Singular values and vectors. Reflections from both sides make the matrix bidiagonal, a panel of columns and rows at
//! a time (Dongarra, Hammarling and Sorensen, Block reduction of matrices to condensed forms for eigenvalue
//! computations, 1989).

use super::chain::Chain;
use super::householder::{Project, reflection};
use super::pool::Pool;
use super::strip::{Eliminate, LANES, Strip, minus_lanes};
use super::{Blocked, Element, Plane, Room, rooms};
use crate::kernel::Context;
use crate::level::{Body, Isa, at};
use crate::par::Shared;
use crate::scratch::Slot;
use ultramarine_linalg::{Real, Singular, bidiagonal_values, bidiagonal_vectors};

/// Columns and rows of a panel, which are reduced before the rest of the matrix is updated.
const PANEL: usize = 32;
/// Columns that are multiplied with a vector at a time.
const TILE: usize = 8;
/// Elements that are a task of a product with a vector.
const SHARE: usize = 1 << 15;

/// A matrix during its reduction; it has at least as many rows as columns.
struct Reduction<T> {
    m: usize,
    n: usize,
    /// The matrix as it was before the panel, surrounded by zeros. If the reflections from the left are kept, they are
    /// stored in finished columns.
    a: Strip<T>,
    /// The current matrix is `A - L R^H`. The columns of L alternate between V and X: reflections from the left, and
    /// products with the reflections from the right.
    left: Strip<T>,
    /// The columns of R: products with the reflections from the left, alternating with the reflections from the right.
    right: Strip<T>,
    /// The negative of R, conjugated.
    factors: Strip<T>,
    /// A row.
    row: Strip<T>,
    /// Reflections from the right, if they are requested.
    kept: Option<Strip<T>>,
    /// Factors of the reflections, from the left and from the right.
    taus: [Vec<T>; 2],
    /// The power of two that the elements were multiplied by.
    scale: f64,
    /// The result: the diagonal, and the elements beside it.
    bidiagonal: [Vec<f64>; 2],
    _room: Room,
}

impl<T: Element> Reduction<T> {
    fn new(m: usize, n: usize, keep: bool) -> Self {
        // Begin columns at different cache sets. Vectors extend beyond the last row and column.
        let padded = [m, n].map(|n| n.next_multiple_of(LANES));
        let [long, short] = padded.map(|n| n + LANES);
        let pair = 2 * PANEL;
        let wide = [pair, short];
        let kept = [if keep { n } else { 0 }, short];
        let shapes = [[n + TILE, long], [pair, long], wide, wide, [1, short], kept];
        let (planes, room) = rooms::<T, 6>(Slot::Operands, shapes);
        let [a, left, right, factors, row, kept] = planes.map(|p| {
            let strip = p.transposed().strip();
            Strip { m: strip.m - LANES, ..strip }
        });
        let bidiagonal = [vec![0.0; n], vec![0.0; n]];
        let kept = keep.then_some(kept);
        let taus = [0, 1].map(|_| vec![T::default(); n]);
        let (scale, _room) = (1.0, room);
        Reduction { m, n, a, left, right, factors, row, kept, taus, scale, bidiagonal, _room }
    }
}

impl<T: Element> Blocked<'_, T> {
    /// Writes the singular values of the matrix `from`, in descending order.
    ///
    /// # Safety
    /// The planes are valid, of shapes that fit, and of elements `T` and its absolute values.
    pub unsafe fn singular_values(&self, s: Plane, from: Plane) -> Result<(), String> {
        // The transposed matrix has the same singular values.
        let from = if from.m < from.n { from.transposed() } else { from };
        let (m, n) = (from.m, from.n);
        let mut reduction = Reduction::<T>::new(m, n, false);
        let pool = Pool::new::<f64>(self.cx)?;
        // SAFETY: by this function's contract; the shapes fit.
        unsafe {
            self.make_bidiagonal(&mut reduction, from)?;
            let [d, e] = &reduction.bidiagonal;
            let single = size_of::<T::Norm>() == 4;
            let values = bidiagonal_values(d, e, single, &pool)?;
            s.store(|i, _| <T::Norm as Real>::from_f64(values[i] / reduction.scale));
        }
        Ok(())
    }

    /// Writes the singular values of the matrix `from`, in descending order, the left singular vectors as columns of `u`, and
    /// the adjoint right ones as rows of `v`.
    ///
    /// # Safety
    /// The planes are valid, of shapes that fit, of elements `T` (the singular values: of its absolute values), and disjoint.
    pub unsafe fn svd(&self, u: Plane, s: Plane, v: Plane, from: Plane) -> Result<(), String> {
        // With `A = P S Q^H`, the transposed matrix is `conj(Q) S P^T`.
        let (from, u, v) = match from.m < from.n {
            true => (from.transposed(), v.transposed(), u.transposed()),
            false => (from, u, v),
        };
        let (m, n) = (from.m, from.n);
        let mut reduction = Reduction::<T>::new(m, n, true);
        let pool = Pool::new::<T::Norm>(self.cx)?;
        // SAFETY: by this function's contract; the shapes fit.
        unsafe {
            self.make_bidiagonal(&mut reduction, from)?;
            let Reduction { a, kept, taus, scale, bidiagonal: [d, e], .. } = &reduction;
            let Singular { values, order, left, right } =
                bidiagonal_vectors::<T::Norm>(d, e, &pool)?;
            s.store(|i, _| <T::Norm as Real>::from_f64(values[i] / scale));
            self.in_rows(u, |u| {
                self.fill(u, T::default(), |_| 0..u.n);
                (n..u.n).for_each(|i| *u.place(i, i) = T::ONE);
                self.write_columns(u, &left, &order);
                self.apply(&Chain { vectors: *a, first: 0, taus: &taus[0] }, u);
            });
            let vectors = kept.ok_or("reflections that were not kept")?;
            self.in_rows(v.transposed(), |v| {
                self.write_columns(v, &right, &order);
                self.apply(&Chain { vectors, first: 1, taus: &taus[1][..n - 1] }, v);
                if T::IS_COMPLEX {
                    self.tasks(n, n, |first, end| {
                        for i in first..end {
                            let row = std::slice::from_raw_parts_mut(v.place::<T>(i, 0), n);
                            row.iter_mut().for_each(|v| *v = v.conjugate());
                        }
                    });
                }
            });
        }
        Ok(())
    }

    /// Copies the matrix, and makes it bidiagonal.
    ///
    /// # Safety
    /// The plane is valid, of the reduction's shape.
    unsafe fn make_bidiagonal(&self, r: &mut Reduction<T>, from: Plane) -> Result<(), String> {
        let Reduction { m, n, a, left, right, row, .. } = *r;
        // SAFETY: by this function's contract; the shapes fit.
        unsafe {
            [a, left, right, row].into_iter().for_each(|s| s.all().fill(T::default()));
            self.copy(a.rows(n).part(0, 0, n, m), from.transposed());
            r.scale = self.scale([Strip { n, ..a }])?;
            for first in (0..n).step_by(PANEL) {
                let width = PANEL.min(n - first);
                for k in 0..width {
                    at(self.cx.level, Step { of: r, cx: self.cx, first, k });
                }
                self.subtract(r, first + width, 2 * width);
            }
        }
        Ok(())
    }

    /// Updates the rows and columns from `start` on with the results of a panel.
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

/// Reduces column and row `k` of the panel that begins at `first`.
struct Step<'a, T> {
    of: &'a mut Reduction<T>,
    cx: &'a Context,
    first: usize,
    k: usize,
}

impl<T: Element> Body for Step<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Step { of, cx, first, k } = self;
        let i = first + k;
        let Reduction { m, n, a, left, right, row, .. } = *of;
        // Vectors begin at cache lines; the elements above are zero, or become zero.
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
            // The column after the previous steps, and its reflection.
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
            of.taus[0][i] = tau;
            if of.kept.is_some() {
                *column.place(i, 0) = T::ONE;
                clear(column, 0, i);
            }
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
            Products { cx, left: columns, right: v_here, to }.call(isa);
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
            of.taus[1][i] = tau;
            if let Some(kept) = of.kept {
                std::ptr::copy_nonoverlapping(u.data, kept.place(0, i), u.m);
            }

            // x = tau (A - L R^H) u.
            let x = x.part(behind, 0, 1);
            let a = Strip { n: n - i - 1, ..a.part(behind, i + 1, 0) };
            Multiples { cx, a, by: u.place(i + 1, 0), to: x }.call(isa);
            Project { left: outer(count), right: u.part(behind, 0, 1), to: z }.call(isa);
            Eliminate { left: left.part(behind, 0, count), factors: z, right: x }.call(isa);
            let rest = std::slice::from_raw_parts_mut(x.data, x.m);
            rest.iter_mut().for_each(|x| *x *= tau);
            rest[..i + 1 - behind].fill(T::default());
        }
    }
}

/// Rows or columns of a task, of `m` with `n` elements each: a multiple of `step`.
fn share(m: usize, n: usize, step: usize) -> usize {
    (SHARE / n.max(1)).max(step).next_multiple_of(step).min(m.next_multiple_of(step))
}

/// `to = left^H right`, for a vector, on all threads if it is worth that.
struct Products<'a, T> {
    cx: &'a Context,
    left: Strip<T>,
    right: Strip<T>,
    to: Strip<T>,
}

impl<T: Element> Body for Products<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Products { cx, left, right, to } = self;
        let step = share(left.n, left.m, TILE);
        if step >= left.n {
            return Project { left, right, to }.call(isa);
        }
        let places = [left.data, right.data, to.data].map(Shared);
        let (m, n, ld) = (left.m, left.n, left.ld);
        cx.par.run(n.div_ceil(step), |task| {
            let begin = task * step;
            let [left, right, to] = places.map(|p| Strip { data: p.get(), ld, m, n: 1 });
            let left = left.part(0, begin, step.min(n - begin));
            let to = to.part(begin, 0, 1);
            at(cx.level, Project { left, right, to });
        });
    }
}

/// `to += A by`, on all threads if it is worth that.
struct Multiples<'a, T> {
    cx: &'a Context,
    a: Strip<T>,
    by: *mut T,
    to: Strip<T>,
}

impl<T: Element> Body for Multiples<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Multiples { cx, a, by, to } = self;
        let step = share(a.m, a.n, 2 * LANES);
        if step >= a.m {
            return Multiply { a, by, to }.call(isa);
        }
        let places = [a.data, by, to.data].map(Shared);
        let (m, n, ld) = (a.m, a.n, a.ld);
        cx.par.run(m.div_ceil(step), |task| {
            let begin = task * step;
            let [a, by, to] = places.map(Shared::get);
            let [a, to] = [a, to].map(|data| {
                let whole = Strip { data, ld, m, n };
                Strip { m: step.min(m - begin), ..whole.part(begin, 0, n) }
            });
            at(cx.level, Multiply { a, by, to });
        });
    }
}

/// `to += A by`. There are zeros after the last column.
struct Multiply<T> {
    a: Strip<T>,
    by: *mut T,
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
