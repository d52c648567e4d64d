//! Householder reflections of a few columns, and the triangular factor T of their product `I - V T V^H`.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::Element;
use super::strip::{Eliminate, LANES, Strip, minus, minus_lanes};
use crate::level::{Body, Isa, Level, at};

/// Columns that are reflected one after the other.
const BASE: usize = 8;
/// Range of magnitudes whose squares neither overflow nor underflow in float64.
const SQUARED: std::ops::RangeInclusive<f64> = 1e-140..=1e140;

/// Columns to be reflected, and their reflections.
#[derive(Clone, Copy)]
pub struct Reflections<T> {
    /// The columns; afterwards R in and above the diagonal, and V below it.
    pub columns: Strip<T>,
    /// Receives V with its ones and zeros.
    pub v: Strip<T>,
    /// Receives the upper triangle of T.
    pub t: Strip<T>,
    /// Scratch memory of T's shape.
    pub work: Strip<T>,
}

impl<T: Element> Reflections<T> {
    /// The block of columns from `first` on, below row `first`.
    fn block(self, first: usize, n: usize) -> Self {
        let part = |s: Strip<T>| s.part(first, first, n);
        let Reflections { columns, v, t, work } = self;
        Reflections { columns: part(columns), v: part(v), t: part(t), work }
    }

    /// Reflects the columns.
    ///
    /// # Safety
    /// The strips are valid, of shapes that fit, and disjoint; there are at least as many rows as columns.
    pub unsafe fn run(self, level: Level) {
        let n = self.columns.n;
        if n <= BASE {
            return at(level, Columns(self));
        }
        let half = (n / 2).next_multiple_of(BASE);
        let rest = n - half;
        let (first, second) = (self.block(0, half), self.block(half, rest));
        let (v, right) = (first.v, self.columns.part(0, half, rest));
        let work = Strip { n: rest, ..self.work };
        // SAFETY: parts of the strips.
        unsafe {
            first.run(level);
            // right -= V (T^H (V^H right)).
            at(level, Project { left: v, right, to: work });
            let t = |i: usize, j: usize| *first.t.place(i, j);
            for j in 0..rest {
                for i in (0..half).rev() {
                    let terms = (0..=i).map(|q| t(q, i).conjugate() * *work.place(q, j));
                    *work.place(i, j) = sum(terms);
                }
            }
            at(level, Eliminate { left: v, factors: work, right });
            second.run(level);
            for j in half..n {
                (0..half).for_each(|i| *self.v.place(i, j) = T::default());
            }
            // The block of T above the second diagonal block is `-T V^H V' T'`.
            at(level, Project { left: v.part(half, 0, half), right: second.v, to: work });
            for j in 0..rest {
                for i in 0..half {
                    *work.place(i, j) = sum((i..half).map(|q| t(i, q) * *work.place(q, j)));
                }
            }
            for j in 0..rest {
                for i in 0..half {
                    let terms = (0..=j).map(|q| *work.place(i, q) * *second.t.place(q, j));
                    *self.t.place(i, half + j) = -sum(terms);
                }
            }
        }
    }
}

/// The sum of some numbers.
pub fn sum<T: Element>(terms: impl Iterator<Item = T>) -> T {
    terms.fold(T::default(), |sum, v| sum - -v)
}

/// Reflects up to [`BASE`] columns.
struct Columns<T>(Reflections<T>);

impl<T: Element> Body for Columns<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Reflections { columns, v, t, .. } = self.0;
        let n = columns.n;
        for j in 0..n {
            // SAFETY: elements of the strips, which have at least as many rows as columns.
            unsafe {
                let tau = reflection::<T>(columns.part(j, j, n - j), v.part(j, j, 1));
                (0..j).for_each(|i| *v.place(i, j) = T::default());
                let own = v.part(j, j, 1);
                if j + 1 < n {
                    let right = columns.part(j, j + 1, n - j - 1);
                    let mut factors = [T::default(); BASE];
                    for c in 0..right.n {
                        let dot = dots::<T, I, 1, 1>(own, right.part(0, c, 1));
                        factors[c] = tau.conjugate() * dot[0][0];
                    }
                    let factors = Strip { data: factors.as_mut_ptr(), ld: 1, m: 1, n: right.n };
                    Eliminate { left: own, factors, right }.call(isa);
                }
                // Write `-tau T V^H v` to T.
                *t.place(j, j) = tau;
                let mut products = [T::default(); BASE];
                for i in 0..j {
                    products[i] = dots::<T, I, 1, 1>(v.part(j, i, 1), own)[0][0];
                }
                for i in 0..j {
                    let terms = (i..j).map(|q| *t.place(i, q) * products[q]);
                    *t.place(i, j) = -(tau * sum(terms));
                }
            }
        }
    }
}

/// Maps the first of the columns to a multiple of the first unit vector, by the adjoint of a reflection `I - tau v
/// v^H`. v, except its leading one, replaces the rest of the column. Returns tau.
///
/// # Safety
/// The strips are valid and have as many rows.
#[inline(always)]
pub unsafe fn reflection<T: Element>(columns: Strip<T>, v: Strip<T>) -> T {
    let m = columns.m;
    // SAFETY: by this function's contract.
    unsafe {
        let head = *columns.place(0, 0);
        let column = std::slice::from_raw_parts_mut(columns.place(0, 0), m);
        let v = std::slice::from_raw_parts_mut(v.place(0, 0), m);
        let scale = if T::SQUARES_FIT { 1.0 } else { scale(column) };
        let square = squares::<T>(&column[1..], scale);
        let [re, im] = head.widened().map(|p| p * scale);
        v[0] = T::ONE;
        if square == 0.0 && im == 0.0 {
            v[1..].fill(T::default());
            return T::default();
        }
        let beta = -(re * re + im * im + square).sqrt().copysign(re);
        let (x, y) = (re - beta, im);
        let inverse = [x / (x * x + y * y), -y / (x * x + y * y)];
        for (v, c) in v[1..].iter_mut().zip(&mut column[1..]) {
            let [re, im] = c.widened().map(|p| p * scale);
            let [a, b] = inverse;
            *v = T::rounded([re * a - im * b, re * b + im * a]);
            *c = *v;
        }
        column[0] = T::rounded([beta / scale, 0.0]);
        T::rounded([(beta - re) / beta, -im / beta])
    }
}

/// The power of two that scales the elements so that their squares are in range.
#[inline(always)]
fn scale<T: Element>(column: &[T]) -> f64 {
    let mut most = [0.0f64; LANES];
    for chunk in column.chunks(LANES) {
        for (most, v) in most.iter_mut().zip(chunk) {
            let [re, im] = v.widened().map(f64::abs);
            let size = re + im;
            *most = if size > *most { size } else { *most };
        }
    }
    let most = most.into_iter().fold(0.0, f64::max);
    if most == 0.0 || most == f64::INFINITY || SQUARED.contains(&most) {
        return 1.0;
    }
    // Scale in steps that neither overflow nor lose bits.
    if most < 1.0 { 0.5f64.powi(-600) } else { 0.5f64.powi(600) }
}

/// The sum of the squares of elements times `scale`.
#[inline(always)]
fn squares<T: Element>(column: &[T], scale: f64) -> f64 {
    let mut sums = [0.0f64; LANES];
    let mut chunks = column.chunks_exact(LANES);
    let add = |sum: &mut f64, v: T| {
        let [re, im] = v.widened().map(|p| p * scale);
        *sum += re * re;
        if T::IS_COMPLEX {
            *sum += im * im;
        }
    };
    for chunk in &mut chunks {
        for l in 0..LANES {
            add(&mut sums[l], chunk[l]);
        }
    }
    for (sum, v) in sums.iter_mut().zip(chunks.remainder()) {
        add(sum, *v);
    }
    sums.into_iter().sum()
}

/// `to = left^H right`.
pub struct Project<T> {
    pub left: Strip<T>,
    pub right: Strip<T>,
    pub to: Strip<T>,
}

impl<T: Element> Body for Project<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        // Use as many sums as there are registers.
        match (I::LEVEL, self.right.n) {
            (Level::V4, 1) => self.tiles::<I, 4, 1>(),
            (Level::V4, _) => self.tiles::<I, 4, 2>(),
            _ => self.tiles::<I, 2, 1>(),
        }
    }
}

impl<T: Element> Project<T> {
    /// Multiplies `P` columns by `Q` at a time.
    #[inline(always)]
    fn tiles<I: Isa, const P: usize, const Q: usize>(self) {
        let Project { left, right, to } = self;
        for j in (0..right.n).step_by(Q) {
            for i in (0..left.n).step_by(P) {
                let (rows, columns) = (P.min(left.n - i), Q.min(right.n - j));
                let (a, b) = (left.part(0, i, rows), right.part(0, j, columns));
                // SAFETY: elements of the strips, whose shapes fit.
                unsafe {
                    let dots = dots::<T, I, P, Q>(a, b);
                    for p in 0..rows {
                        for q in 0..columns {
                            *to.place(i + p, j + q) = dots[p][q];
                        }
                    }
                }
            }
        }
    }
}

/// The products of up to `P` adjoint columns with up to `Q` columns. The remaining results are unspecified.
///
/// # Safety
/// The strips are valid and have as many rows.
#[inline(always)]
pub unsafe fn dots<T: Element, I: Isa, const P: usize, const Q: usize>(
    left: Strip<T>,
    right: Strip<T>,
) -> [[T; Q]; P] {
    let mut sums = [[[T::default(); LANES]; Q]; P];
    let whole = left.m / LANES * LANES;
    // Read the last column in place of missing ones.
    let a: [*mut T; P] = std::array::from_fn(|p| left.place(0, p.min(left.n - 1)));
    let b: [*mut T; Q] = std::array::from_fn(|q| right.place(0, q.min(right.n - 1)));
    let mut i = 0;
    while i < whole {
        let mut lanes = [[T::default(); LANES]; Q];
        // SAFETY: rows of the strips, LANES of them.
        unsafe {
            for q in 0..Q {
                lanes[q] = b[q].add(i).cast::<[T; LANES]>().read_unaligned();
            }
            for p in 0..P {
                let a = a[p].add(i).cast::<[T; LANES]>().read_unaligned();
                let a = a.map(|v| -v.conjugate());
                for q in 0..Q {
                    sums[p][q] = minus_lanes::<T, I>(sums[p][q], a, lanes[q]);
                }
            }
        }
        i += LANES;
    }
    let mut results = [[T::default(); Q]; P];
    for p in 0..P {
        for q in 0..Q {
            let mut total = sum(sums[p][q].into_iter());
            for i in whole..left.m {
                // SAFETY: the last rows of the strips.
                let (a, b) = unsafe { (*a[p].add(i), *b[q].add(i)) };
                total = minus::<T, I>(total, -a.conjugate(), b);
            }
            results[p][q] = total;
        }
    }
    results
}
