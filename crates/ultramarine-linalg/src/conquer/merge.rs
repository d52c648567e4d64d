//! A step of the recursion: two solved halves become one problem.

use super::deflate::{Deflated, Problem, Rotation};
use super::secular::{Root, Secular};
use super::{Crew, unit};
use crate::Real;
use std::ops::Range;

/// Columns that a task computes.
const COLUMNS: usize = 16;

/// The vectors of one side of a problem, left or right.
pub struct Side<'a, R> {
    /// Columns, with the same distance as those of the scratch memory. Empty if vectors are not requested.
    pub vectors: &'a mut [R],
    /// The rows of the halves' vectors.
    pub rows: [Range<usize>; 2],
    /// The elements of each vector in the first and the last row, in double precision.
    pub ends: Option<[&'a mut [f64]; 2]>,
}

/// Scratch memory of a problem, with as many columns as its vectors, if vectors are requested.
pub struct Room<'a, R> {
    /// Elements from one column to the next.
    pub ld: usize,
    pub packed: &'a mut [R],
    pub mix: &'a mut [R],
}

/// A problem whose halves are solved. [`Merge::run`] joins them.
pub struct Merge<'a, R> {
    /// Values of the left half, a zero if there is a centre, and values of the right half. Afterwards the values of the
    /// whole, in any order.
    pub d: &'a mut [f64],
    /// The row that joins the halves, in the basis of their vectors.
    pub z: Vec<f64>,
    /// Number of values of the left half.
    pub split: usize,
    /// True for a bidiagonal matrix; the row between its halves is the centre.
    pub centre: bool,
    /// Set if the right vector of the centre has elements in the rows of both halves.
    pub mixed: bool,
    /// Right vectors, and left vectors if they differ. Empty if only values are requested.
    pub sides: Vec<Side<'a, R>>,
    pub room: Room<'a, R>,
}

/// The rows in which a column may have nonzero elements.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Top,
    Both,
    Bottom,
    /// The unit vector of the centre's row.
    Centre,
}

impl<R: Real> Side<'_, R> {
    /// Rotates two columns.
    pub fn rotate(&mut self, ld: usize, r: &Rotation) {
        let rows = self.rows[0].start..self.rows[1].end;
        let (low, high) = (r.to.min(r.from), r.to.max(r.from));
        if !self.vectors.is_empty() {
            let (first, second) = self.vectors.split_at_mut(high * ld);
            let (low, high) = (&mut first[low * ld..][rows.clone()], &mut second[rows]);
            let (to, from) = if r.to < r.from { (low, high) } else { (high, low) };
            let (c, s) = (R::from_f64(r.c), R::from_f64(r.s));
            for (to, from) in to.iter_mut().zip(from) {
                (*to, *from) = (*to * c + *from * s, *from * c - *to * s);
            }
        }
        for end in self.ends.iter_mut().flatten() {
            (end[r.to], end[r.from]) =
                (end[r.to] * r.c + end[r.from] * r.s, end[r.from] * r.c - end[r.to] * r.s);
        }
    }
}

impl<R: Real> Merge<'_, R> {
    /// Replaces the halves' values and vectors by those of the whole matrix.
    pub fn run(mut self, crew: Crew<'_, R>) {
        let Room { ld, packed, mix } = self.room;
        let centre = self.centre.then_some(self.split);
        let unit = unit::<R>();
        let deflated = Problem { d: self.d, z: &mut self.z, centre, unit }.deflate();
        for rotation in &deflated.rotations {
            for (left, side) in self.sides.iter_mut().enumerate() {
                if left == 0 || !rotation.right_only {
                    side.rotate(ld, rotation);
                }
            }
        }
        let Deflated { kept, done, .. } = &deflated;
        let poles: Vec<f64> = kept.iter().map(|j| self.d[*j]).collect();
        let z: Vec<f64> = kept.iter().map(|j| self.z[*j]).collect();
        let k = kept.len();
        let weights: Vec<f64> = z.iter().map(|z| z * z).collect();
        let secular = Secular { poles: &poles, weights: &weights, squared: self.centre };
        let mut roots = vec![Root::default(); k];
        crew.each(roots.chunks_mut(COLUMNS), |task, roots| {
            for (at, root) in roots.iter_mut().enumerate() {
                *root = secular.root(task * COLUMNS + at);
            }
        });
        // The row z for which the computed roots are exact.
        let mut exact = if self.sides.is_empty() { Vec::new() } else { vec![0.0; k] };
        crew.each(exact.chunks_mut(COLUMNS), |task, exact| {
            row_of_roots(&secular, &roots, task * COLUMNS, exact);
        });
        exact.iter_mut().zip(&z).for_each(|(exact, z)| *exact = exact.copysign(*z));
        for (left, side) in self.sides.iter_mut().enumerate() {
            let mut kinds: Vec<Kind> = (0..self.d.len())
                .map(|j| match (j < self.split, self.centre && j == self.split) {
                    (true, _) => Kind::Top,
                    (_, true) if left == 1 => Kind::Centre,
                    (_, true) if self.mixed => Kind::Both,
                    (_, true) => Kind::Top,
                    _ => Kind::Bottom,
                })
                .collect();
            for r in deflated.rotations.iter().filter(|r| left == 0 || !r.right_only) {
                if kinds[r.from] != kinds[r.to] {
                    (kinds[r.from], kinds[r.to]) = (Kind::Both, Kind::Both);
                }
            }
            // Vectors of the whole in the basis of the kept vectors, grouped by the rows that those occupy.
            let part =
                |kind: Kind| (0..k).filter(|q| kinds[kept[*q]] == kind).collect::<Vec<usize>>();
            let kinds = [Kind::Top, Kind::Both, Kind::Bottom].map(part);
            let mixture = Mixture {
                order: kinds.concat(),
                secular: &secular,
                left: left == 1,
                exact: &exact,
                roots: &roots,
            };
            let elements = mixture.write(crew, kept, side, mix, ld);
            let counts = kinds.map(|kind| kind.len());
            let sources: Vec<usize> =
                mixture.order.iter().map(|q| kept[*q]).chain(done.iter().copied()).collect();
            if !side.vectors.is_empty() {
                side.multiply(crew, ld, [packed, mix], &sources, counts, k);
            }
            if left == 1 {
                let row = self.split + side.rows[0].start;
                for (column, elements) in side.vectors.chunks_mut(ld).zip(&elements) {
                    column[row] = R::from_f64(elements.centre);
                }
            }
            for (n, end) in side.ends.iter_mut().flatten().enumerate() {
                let rest: Vec<f64> = done.iter().map(|j| end[*j]).collect();
                end[..k]
                    .iter_mut()
                    .zip(&elements)
                    .for_each(|(to, elements)| *to = elements.ends[n]);
                end[k..k + rest.len()].copy_from_slice(&rest);
            }
        }
        let done: Vec<f64> = done.iter().map(|j| self.d[*j]).collect();
        self.d[..k].iter_mut().zip(&roots).for_each(|(d, root)| *d = root.value());
        self.d[k..].copy_from_slice(&done);
    }
}

/// The elements from `first` on of the row z for which the roots are exact (Loewner's formula). Using it makes the
/// vectors orthogonal.
fn row_of_roots(secular: &Secular<'_>, roots: &[Root], first: usize, z: &mut [f64]) {
    z.fill(-1.0);
    for (i, root) in roots.iter().enumerate() {
        for (at, z) in z.iter_mut().enumerate() {
            let j = first + at;
            *z *=
                secular.pole_from_root(*root, j) / if i == j { 1.0 } else { secular.between(i, j) };
        }
    }
    z.iter_mut().for_each(|z| *z = z.max(0.0).sqrt());
}

/// Vectors of the small problem, in the poles' order in memory.
struct Mixture<'a> {
    /// Indices of the poles, in their order in memory.
    order: Vec<usize>,
    secular: &'a Secular<'a>,
    /// Set for left vectors, whose element for the first pole belongs to the centre.
    left: bool,
    exact: &'a [f64],
    roots: &'a [Root],
}

/// Elements of a vector that are not computed by matrix products.
#[derive(Clone, Copy, Default)]
struct Elements {
    /// Elements in the first and the last row.
    ends: [f64; 2],
    /// The element for the first pole of a left vector, in the centre's row.
    centre: f64,
}

impl Mixture<'_> {
    fn write<R: Real>(
        &self,
        crew: Crew<'_, R>,
        kept: &[usize],
        side: &Side<'_, R>,
        mix: &mut [R],
        ld: usize,
    ) -> Vec<Elements> {
        let Mixture { secular, left, exact, roots, .. } = *self;
        let k = exact.len();
        let ends = side
            .ends
            .as_ref()
            .map(|ends| [0, 1].map(|n| kept.iter().map(|j| ends[n][*j]).collect::<Vec<f64>>()));
        let mut elements = vec![Elements::default(); k];
        let mut mixes = mix.chunks_mut(COLUMNS * ld);
        let columns = elements.chunks_mut(COLUMNS).map(|elements| (mixes.next(), elements));
        crew.each(columns, |task, (mix, elements)| {
            let mut vector = vec![0.0; k];
            for (at, elements) in elements.iter_mut().enumerate() {
                let root = roots[task * COLUMNS + at];
                for (j, v) in vector.iter_mut().enumerate() {
                    *v = exact[j] / secular.pole_from_root(root, j);
                }
                if left {
                    vector.iter_mut().zip(secular.poles).for_each(|(v, pole)| *v *= pole);
                    vector[0] = -1.0;
                }
                let by = 1.0 / lanes(&vector, &vector).sqrt();
                vector.iter_mut().for_each(|v| *v *= by);
                elements.centre = vector[0];
                if let Some(ends) = &ends {
                    elements.ends = [0, 1].map(|n| lanes(&ends[n], &vector));
                }
                if let Some(mix) = mix {
                    let to = mix[at * ld..].iter_mut();
                    to.zip(&self.order).for_each(|(to, q)| *to = R::from_f64(vector[*q]));
                }
            }
        });
        elements
    }
}

/// A sum of products, computed in eight lanes.
fn lanes(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.into_iter().sum()
}

impl<R: Real> Side<'_, R> {
    /// Replaces the first `k` vectors by the products of `mix` with the columns listed in `sources`. The counts give
    /// how many of these have elements in the top rows, in both, and in the bottom rows. The columns listed after them
    /// follow unchanged.
    fn multiply(
        &mut self,
        crew: Crew<'_, R>,
        ld: usize,
        [packed, mix]: [&mut [R]; 2],
        sources: &[usize],
        [top, both, bottom]: [usize; 3],
        k: usize,
    ) {
        let Side { vectors, rows: [upper, lower], .. } = self;
        let rows = upper.start..lower.end;
        let columns = packed.chunks_mut(ld).zip(sources);
        let from = &vectors[..];
        crew.each(columns, |_, (to, source)| {
            to[rows.clone()].copy_from_slice(&from[*source * ld..][rows.clone()]);
        });
        for (rows, columns) in [(upper, 0..top + both), (lower, top..top + both + bottom)] {
            let shape = [rows.len(), k, columns.len()];
            if columns.is_empty() {
                vectors.chunks_mut(ld).take(k).for_each(|c| c[rows.clone()].fill(R::default()));
            } else if k > 0 && shape[0] > 0 {
                let a = &packed[columns.start * ld + rows.start..];
                let c = &mut vectors[rows.start..];
                crew.threads.product(shape, (c, ld), (a, ld), (&mix[columns.start..], ld));
            }
        }
        let named = top + both + bottom;
        let columns = vectors.chunks_mut(ld).skip(k).zip(packed.chunks(ld).skip(named));
        crew.each(columns.take(sources.len() - named), |_, (to, from)| {
            to[rows.clone()].copy_from_slice(&from[rows.clone()]);
        });
    }
}
