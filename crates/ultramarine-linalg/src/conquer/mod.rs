//! Vectors of tridiagonal and bidiagonal matrices by divide and conquer (Gu and Eisenstat, A divide-and-conquer algorithm for
//! the symmetric tridiagonal eigenproblem, and for the bidiagonal SVD, 1995).
//!
//! Each half of the matrix is solved separately. The part that joins the halves has rank one. The values of the whole
//! are therefore the roots of a secular equation, each of which is found independently. Its vectors are products of the
//! halves' vectors with the vectors of that small problem. Values and the equation are computed in double precision,
//! vectors and products in the type of the result.

mod bidiagonal;
mod deflate;
mod merge;
mod secular;
mod sweeps;
mod tridiagonal;

pub use bidiagonal::{Singular, bidiagonal_values, bidiagonal_vectors};
pub use tridiagonal::{Eigen, tridiagonal_values, tridiagonal_vectors};

use crate::Real;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Largest number of rows of a matrix that is solved without halving it.
const LEAF: usize = 32;
/// Number of rows from which on a single problem uses all threads. Smaller problems run on one thread each.
const LARGE: usize = 192;

/// Number of rows from which on this method is used when only values are requested. For smaller matrices, sweeps on one
/// thread are faster.
const LEAST_VALUES: usize = 256;

/// The caller's threads and matrix products. Results must not depend on the number of threads.
pub trait Threads<R>: Sync {
    /// Calls `body(i)` for every `i < count`, in any order, and returns when all calls have returned. Calls may be
    /// nested.
    fn each(&self, count: usize, body: &(dyn Fn(usize) + Sync));

    /// `c = a b`. Each slice begins with its matrix; the number beside it is the distance between the matrix's columns.
    fn product(&self, shape: [usize; 3], c: (&mut [R], usize), a: (&[R], usize), b: (&[R], usize));
}

/// Relative magnitude below which elements count as zero.
fn unit<R: Real>() -> f64 {
    if size_of::<R>() == 4 { f32::EPSILON as f64 } else { 8.0 * f64::EPSILON }
}

/// Number of times that a matrix of `n` rows is halved.
fn depth(n: usize) -> usize {
    (0..).find(|depth| n.div_ceil(1 << depth) <= LEAF).unwrap_or(0)
}

/// The ranges of rows of the problems at a given depth, with `between` rows between halves.
fn ranges(n: usize, depth: usize, between: usize) -> Vec<Range<usize>> {
    let halves = |r: Range<usize>| {
        let middle = r.start + r.len() / 2;
        [r.start..middle, middle + between..r.end]
    };
    let whole = std::iter::once(0..n).collect();
    (0..depth)
        .fold(whole, |ranges: Vec<Range<usize>>, _| ranges.into_iter().flat_map(halves).collect())
}

/// The threads that work on a problem.
#[derive(Clone, Copy)]
struct Crew<'a, R> {
    threads: &'a dyn Threads<R>,
    /// True if all threads work on it, false if only the calling thread does.
    together: bool,
}

impl<R> Crew<'_, R> {
    /// Calls `body(i, &mut items[i])` for each item.
    fn each<T: Send>(
        &self,
        items: impl IntoIterator<Item = T>,
        body: impl Fn(usize, &mut T) + Sync,
    ) {
        if !self.together {
            return items.into_iter().enumerate().for_each(|(i, mut item)| body(i, &mut item));
        }
        let items: Vec<Mutex<T>> = items.into_iter().map(Mutex::new).collect();
        self.threads.each(items.len(), &|i| {
            body(i, &mut items[i].lock().unwrap_or_else(PoisonError::into_inner));
        });
    }
}

/// Splits a slice into the parts given by ascending ranges, with `unit` elements for each index.
fn parts<'a, T>(mut of: &'a mut [T], unit: usize, ranges: &[Range<usize>]) -> Vec<&'a mut [T]> {
    let mut at = 0;
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        let rest = of.split_at_mut((range.start - at) * unit).1;
        let (part, rest) = rest.split_at_mut(range.len() * unit);
        (of, at) = (rest, range.end);
        parts.push(part);
    }
    parts
}
