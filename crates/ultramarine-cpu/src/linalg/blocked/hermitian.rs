//! Eigenvalues and eigenvectors of Hermitian matrices. Reflections make the matrix tridiagonal, a panel of columns at a
//! time. Half of the work is products of the matrix with vectors; the other half is products of matrices after each
//! panel (Dongarra, Hammarling and Sorensen, Block reduction of matrices to condensed forms for eigenvalue
//! computations, 1989).

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::chain::Chain;
use super::householder::{Project, dots, reflection, sum};
use super::pool::Pool;
use super::strip::{Eliminate, LANES, Strip, minus_lanes};
use super::{Blocked, Element, Plane, Room, rooms};
use crate::kernel::Context;
use crate::level::{Body, Isa, at};
use crate::par::Shared;
use crate::scratch::Slot;
use ultramarine_linalg::{Eigen, Real, tridiagonal_values, tridiagonal_vectors};

/// Columns of a panel, which are reduced before the rest of the matrix is updated.
const PANEL: usize = 32;
/// Columns of the matrix that one product of matrices updates. Only its part below the diagonal is needed.
const UPDATED: usize = 128;
/// Columns that are multiplied with a vector at a time.
const TILE: usize = 4;
/// Elements below the diagonal in one task of the product with a vector.
const SHARE: usize = 1 << 15;
/// Tasks of a product, at most.
const SHARES: usize = 32;

/// A matrix during its reduction.
struct Reduction<T> {
    n: usize,
    /// The matrix below its diagonal, and zeros elsewhere. Finished columns hold the vectors of reflections.
    a: Strip<T>,
    /// V and W of a panel, with alternating columns. The current matrix is `A - V W^H - W V^H`.
    pairs: Strip<T>,
    /// `-W` and `-V` with alternating columns, conjugated.
    factors: Strip<T>,
    /// The diagonal, padded with zeros to whole vectors.
    diagonal: Strip<T>,
    /// Parts of a product with a vector.
    sums: Strip<T>,
    /// Factors of the reflections.
    taus: Vec<T>,
    /// The subdiagonal of the result.
    below: Vec<f64>,
    /// The power of two that the elements were multiplied by.
    scale: f64,
    _room: Room,
}

impl<T: Element> Reduction<T> {
    fn new(n: usize) -> Self {
        let padded = n.next_multiple_of(LANES);
        // Begin columns at different cache sets. Vectors extend beyond the last row and column.
        let ld = padded + LANES;
        let columns = [n + TILE, 2 * PANEL, 2 * PANEL, 1, shares(n)];
        let (planes, room) = rooms::<T, 5>(Slot::Operands, columns.map(|n| [n, ld]));
        let [a, pairs, factors, diagonal, sums] =
            planes.map(|p| Strip { m: padded, ..p.transposed().strip() });
        let (taus, below) = (vec![T::default(); n], vec![0.0; n]);
        Reduction { n, a, pairs, factors, diagonal, sums, taus, below, scale: 1.0, _room: room }
    }
}

impl<T: Element> Blocked<'_, T> {
    /// Writes the eigenvalues of the Hermitian matrix `from` in ascending order, and eigenvectors as columns of `v`.
    /// Only one triangle of `from` is read.
    ///
    /// # Safety
    /// The planes are valid, of shapes that fit, of elements `T` (the eigenvalues: of its absolute values), and disjoint.
    pub unsafe fn eigh(
        &self,
        w: Plane,
        v: Option<Plane>,
        from: Plane,
        upper: bool,
    ) -> Result<(), String> {
        let n = from.n;
        let mut reduction = Reduction::<T>::new(n);
        // SAFETY: by this function's contract.
        let diagonal: Vec<f64> = unsafe {
            self.load(&mut reduction, if upper { from.transposed() } else { from }, upper)?;
            self.reduce(&mut reduction);
            (0..n).map(|i| (*reduction.diagonal.place(i, 0)).widened()[0]).collect()
        };
        let scale = reduction.scale;
        let value = |v: f64| <T::Norm as Real>::from_f64(v / scale);
        let below = &reduction.below;
        let Some(v) = v else {
            let values = tridiagonal_values(&diagonal, below, &Pool::new::<f64>(self.cx)?)?;
            // SAFETY: by this function's contract.
            unsafe { w.store(|i, _| value(values[i])) };
            return Ok(());
        };
        let pool = Pool::new::<T::Norm>(self.cx)?;
        let Eigen { values, order, vectors } =
            tridiagonal_vectors::<T::Norm>(&diagonal, below, &pool)?;
        let (vectors_of, taus) = (reduction.a, &reduction.taus[..n - 1]);
        // SAFETY: by this function's contract; the matrix was reduced.
        unsafe {
            w.store(|i, _| value(values[i]));
            self.in_rows(v, |v| {
                self.write_columns(v, &vectors, &order);
                self.apply(&Chain { vectors: vectors_of, first: 1, taus }, v);
            });
        }
        Ok(())
    }

    /// Copies the lower triangle, scaled.
    ///
    /// # Safety
    /// As [`Blocked::eigh`].
    unsafe fn load(
        &self,
        to: &mut Reduction<T>,
        lower: Plane,
        conjugate: bool,
    ) -> Result<(), String> {
        let n = to.n;
        let columns = to.a.rows(n + TILE);
        // SAFETY: by this function's contract; the shapes fit.
        unsafe {
            self.copy(columns.part(0, 0, n, n), lower.transposed());
            [to.pairs, to.factors, to.diagonal]
                .into_iter()
                .for_each(|s| s.all().fill(T::default()));
            for j in 0..n + TILE {
                let column = std::slice::from_raw_parts_mut(to.a.place(0, j), to.a.ld);
                if j < n {
                    *to.diagonal.place(j, 0) = T::of_parts([column[j].widened()[0], 0.0]);
                }
                column[..n.min(j + 1)].fill(T::default());
                column[n..].fill(T::default());
                if conjugate && T::IS_COMPLEX {
                    column.iter_mut().for_each(|v| *v = v.conjugate());
                }
            }
            to.scale = self.scale([Strip { n, ..to.a }, to.diagonal])?;
        }
        Ok(())
    }

    /// Makes the matrix tridiagonal.
    ///
    /// # Safety
    /// It was loaded.
    unsafe fn reduce(&self, r: &mut Reduction<T>) {
        for first in (0..r.n - 1).step_by(PANEL) {
            let width = PANEL.min(r.n - 1 - first);
            for k in 0..width {
                at(self.cx.level, Column { of: r, cx: self.cx, first, k });
            }
            // SAFETY: the panel was reduced.
            unsafe { self.update(r, first + width, 2 * width) };
        }
    }

    /// Updates the columns from `start` on with the results of a panel.
    ///
    /// # Safety
    /// The panel has so many columns of V and W.
    unsafe fn update(&self, r: &mut Reduction<T>, start: usize, width: usize) {
        let n = r.n;
        // SAFETY: elements of the reduction's matrices, whose shapes fit.
        unsafe {
            for k in 0..width {
                let from = std::slice::from_raw_parts(r.pairs.place(start, k ^ 1), n - start);
                let to = std::slice::from_raw_parts_mut(r.factors.place(start, k), n - start);
                to.iter_mut().zip(from).for_each(|(to, v)| *to = -v.conjugate());
            }
            let columns = r.a.rows(n);
            let (pairs, factors) = (r.pairs.rows(width), r.factors.rows(width));
            for first in (start..n).step_by(UPDATED) {
                let count = UPDATED.min(n - first);
                let to = columns.part(first, first, count, n - first);
                let left = factors.part(0, first, width, count).transposed();
                self.add_product(to, left, pairs.part(0, first, width, n - first));
                for j in first..first + count {
                    let column = std::slice::from_raw_parts_mut(r.a.place(first, j), j + 1 - first);
                    let d = r.diagonal.place(j, 0);
                    let change = column[j - first].widened()[0];
                    *d = T::rounded([(*d).widened()[0] + change, 0.0]);
                    column.fill(T::default());
                }
            }
        }
    }
}

/// Reduces column `k` of the panel that begins at `first`.
struct Column<'a, T> {
    of: &'a mut Reduction<T>,
    cx: &'a Context,
    first: usize,
    k: usize,
}

impl<T: Element> Body for Column<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Column { of, cx, first, k } = self;
        let i = first + k;
        // Vectors begin at cache lines; rows above the column's first row are zero, or become zero.
        let row = (i + 1) / LANES * LANES;
        let above = i + 1 - row;
        let Reduction { n, a, pairs, .. } = *of;
        let before = pairs.part(row, 0, 2 * k);
        let column = a.part(row, i, 1);
        let [v, w] = [0, 1].map(|q| pairs.part(row, 2 * k + q, 1));
        let mut factors = [T::default(); 2 * PANEL];
        let strip = |data: &mut [T; 2 * PANEL]| Strip {
            data: data.as_mut_ptr(),
            ld: 2 * PANEL,
            m: 2 * k,
            n: 1,
        };
        // SAFETY: elements of the reduction's matrices, whose shapes fit.
        unsafe {
            for q in 0..2 * k {
                factors[q] = (*pairs.place(i, q ^ 1)).conjugate();
            }
            let own = (0..2 * k).map(|q| *pairs.place(i, q) * factors[q]);
            let d = of.diagonal.place(i, 0);
            *d = T::rounded([(*d).widened()[0] - sum(own).widened()[0], 0.0]);
            Eliminate { left: before, factors: strip(&mut factors), right: column }.call(isa);

            let rest = n - i - 1;
            for strip in [column, v, w] {
                std::slice::from_raw_parts_mut(strip.data, above).fill(T::default());
            }
            let short = |s: Strip<T>| Strip { m: rest, ..s.part(above, 0, 1) };
            let tau = reflection::<T>(short(column), short(v));
            let head = column.place(above, 0);
            of.below[i] = (*head).widened()[0];
            *head = T::ONE;
            of.taus[i] = tau;

            std::slice::from_raw_parts_mut(w.data, w.m).fill(T::default());
            let [x, y] = [0, 1].map(|q| pairs.place(0, 2 * k + q));
            Symmetric { a, diagonal: of.diagonal, sums: of.sums, cx, first: i + 1, n, x, y }
                .call(isa);
            Project { left: before, right: v, to: strip(&mut factors) }.call(isa);
            (0..k).for_each(|q| factors.swap(2 * q, 2 * q + 1));
            Eliminate { left: before, factors: strip(&mut factors), right: w }.call(isa);
            std::slice::from_raw_parts_mut(w.data, above).fill(T::default());

            // w = tau w - (|tau|^2 v^H w / 2) v.
            let dot = dots::<T, I, 1, 1>(v, w)[0][0].widened()[0];
            let [re, im] = tau.widened();
            let alpha = T::rounded([(re * re + im * im) * dot / 2.0, 0.0]);
            for at in (0..w.m).step_by(LANES) {
                let (x, mut y) = (v.load(at, 0, LANES), w.load(at, 0, LANES));
                for l in 0..LANES {
                    y[l] *= tau;
                }
                w.store(at, 0, LANES, &minus_lanes::<T, I>(y, x, [alpha; LANES]));
            }
        }
    }
}

/// Tasks of the product of a vector with the last `n` rows and columns.
fn shares(n: usize) -> usize {
    (n * n / 2 / SHARE).clamp(1, SHARES)
}

/// `y += A x`, for the Hermitian matrix whose rows and columns begin at `first`.
struct Symmetric<'a, T> {
    a: Strip<T>,
    diagonal: Strip<T>,
    /// A column for each share.
    sums: Strip<T>,
    cx: &'a Context,
    first: usize,
    n: usize,
    x: *mut T,
    y: *mut T,
}

impl<T: Element> Body for Symmetric<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Symmetric { a, diagonal, sums, cx, first, n, x, y } = self;
        let vector = |data: *mut T| Strip { data, ld: a.ld, m: a.m, n: 1 };
        let (x, y) = (vector(x), vector(y));
        let shares = shares(n - first);
        if shares == 1 {
            Below { a, first, end: n, x, y }.call(isa);
        } else {
            // Columns become shorter, so divide them into shares with equal numbers of elements.
            let begin = |share: usize| {
                let rest = (1.0 - share as f64 / shares as f64).sqrt();
                n.min(first + (((n - first) as f64 * (1.0 - rest)) as usize).next_multiple_of(TILE))
            };
            let places = [a.data, x.data, sums.data].map(Shared);
            let (m, ld) = (a.m, a.ld);
            cx.par.run(shares, |share| {
                let [a, x, sums] = places.map(|p| Strip { data: p.get(), ld, m, n: shares });
                let (first, end) = (begin(share), begin(share + 1));
                let y = sums.part(0, share, 1);
                let above = first / LANES * LANES;
                // SAFETY: the share's own column.
                unsafe { std::slice::from_raw_parts_mut(y.place(above, 0), y.m - above) }
                    .fill(T::default());
                at(cx.level, Below { a, first, end, x, y });
            });
            for share in 0..shares {
                let from = sums.part(0, share, 1);
                for i in (begin(share) / LANES * LANES..a.m).step_by(LANES) {
                    // SAFETY: whole vectors of both.
                    unsafe {
                        let mut to = y.load(i, 0, LANES);
                        let more = from.load(i, 0, LANES);
                        for l in 0..LANES {
                            to[l] -= -more[l];
                        }
                        y.store(i, 0, LANES, &to);
                    }
                }
            }
        }
        for i in (first / LANES * LANES..a.m).step_by(LANES) {
            // SAFETY: the vectors have zeros behind their last element.
            unsafe {
                let factors = diagonal.load(i, 0, LANES).map(|v| -v);
                let to = minus_lanes::<T, I>(y.load(i, 0, LANES), factors, x.load(i, 0, LANES));
                y.store(i, 0, LANES, &to);
            }
        }
    }
}

/// `y += A x` for some columns of a Hermitian matrix: uses the part below the diagonal and its adjoint.
struct Below<T> {
    a: Strip<T>,
    first: usize,
    end: usize,
    x: Strip<T>,
    y: Strip<T>,
}

impl<T: Element> Body for Below<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Below { a, first, end, x, y } = self;
        for j in (first..end).step_by(TILE) {
            // SAFETY: the matrix has zeros behind its last column and row, the vectors behind their last element.
            unsafe {
                let factors: [T; TILE] = std::array::from_fn(|q| -*x.place(j + q, 0));
                let mut sums = [[T::default(); LANES]; TILE];
                for i in (j / LANES * LANES..a.m).step_by(LANES) {
                    let from = x.load(i, 0, LANES);
                    let mut to = y.load(i, 0, LANES);
                    for q in 0..TILE {
                        let column = a.load(i, j + q, LANES);
                        to = minus_lanes::<T, I>(to, column, [factors[q]; LANES]);
                        let column = column.map(T::conjugate);
                        sums[q] = minus_lanes::<T, I>(sums[q], column, from);
                    }
                    y.store(i, 0, LANES, &to);
                }
                for q in 0..TILE {
                    let to = y.place(j + q, 0);
                    *to -= sum(sums[q].into_iter());
                }
            }
        }
    }
}
