//! Sums of exponentials relative to the largest number, in parts of a row that stay in cache.

use super::real::Real;
use super::tensor::widen;
use crate::level::{self, Isa};
use crate::matmul::simd::{Storage, prefetch};
use crate::par::Par;
use core::ops::Range;

/// Elements that are widened at a time.
pub const CHUNK: usize = 512;
/// Elements of a task, from part of a row to several.
pub const PART: usize = 32 * CHUNK;
/// Sums that a chunk is added to.
pub const LANES: usize = 16;

/// Calls `body` for every task with its rows and the elements of each row: many rows, or part of
/// one.
pub fn in_parts(
    par: Par,
    (rows, size): (usize, usize),
    body: impl Fn(Range<usize>, Range<usize>) + Sync,
) {
    let parts = size.div_ceil(PART);
    let each = (PART / size).max(1);
    par.run(rows.div_ceil(each) * parts, |task| {
        let (first, from) = (task / parts * each, task % parts * PART);
        body(first..rows.min(first + each), from..size.min(from + PART));
    });
}

/// The largest of some numbers, and the sum of `e^(x - largest)`. If the largest is infinite, the
/// sum is relative to 0.
#[derive(Clone, Copy)]
pub struct Sum<T> {
    pub top: T,
    pub sum: T,
}

#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

#[inline(always)]
pub fn finite<T: Real>(a: T) -> T {
    if a.is_finite() { a } else { T::ZERO }
}

impl<T: Real> Sum<T> {
    pub const NOTHING: Sum<T> = Sum { top: T::NEG_INFINITY, sum: T::ZERO };

    pub fn join(self, other: Sum<T>) -> Sum<T> {
        let top = larger(self.top, other.top);
        let part = |of: Sum<T>| match of.top.is_finite() {
            true => of.sum.times(T::of(of.top.minus(finite(top)).value().exp())),
            // 0, infinite or NaN.
            false => of.sum,
        };
        Sum { top, sum: part(self).plus(part(other)) }
    }

    /// The logarithm of the sum of all `e^x`.
    pub fn logarithm(self) -> T {
        finite(self.top).plus(self.sum.ln())
    }
}

/// Combines all lanes to one number, by halving.
#[inline(always)]
fn folded<T: Real>(mut lanes: [T; LANES], join: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The largest of the numbers, which fill whole lanes; NaN is ignored.
#[inline(always)]
pub fn largest<T: Real>(numbers: &[T]) -> T {
    let mut tops = [T::NEG_INFINITY; LANES];
    for lanes in numbers.chunks_exact(LANES) {
        for (top, x) in tops.iter_mut().zip(lanes) {
            *top = if *x > *top { *x } else { *top };
        }
    }
    folded(tops, larger)
}

/// Replaces numbers, which fill whole lanes, by `e^(x - shift)`, and returns their sum.
#[inline(always)]
pub fn exponentials<I: Isa, T: Real>(numbers: &mut [T], shift: T) -> T {
    let mut sums = [T::ZERO; LANES];
    for lanes in numbers.chunks_exact_mut(LANES) {
        for (sum, x) in sums.iter_mut().zip(lanes) {
            *x = x.minus(shift).exp::<I>();
            *sum = sum.plus(*x);
        }
    }
    folded(sums, T::plus)
}

/// Prefetches elements while earlier elements are processed.
#[inline(always)]
pub fn fetch<S>(from: *const S, step: isize, size: usize) {
    if step == 1 {
        let from = from.cast::<u8>();
        (0..size * size_of::<S>()).step_by(64).for_each(|at| prefetch(from.wrapping_add(at)));
    }
}

/// The sum of the exponentials of elements that are `step` apart.
pub struct Add<S> {
    pub from: *const S,
    pub step: isize,
    pub size: usize,
}

impl<S: Storage> level::Body for Add<S>
where
    S::Acc: Real,
{
    type Output = Sum<S::Acc>;
    #[inline(always)]
    fn call<I: Isa>(self, _: I) -> Sum<S::Acc> {
        let mut all = Sum::NOTHING;
        let mut chunk = [S::Acc::ZERO; CHUNK];
        for first in (0..self.size).step_by(CHUNK) {
            let n = CHUNK.min(self.size - first);
            let whole = n.next_multiple_of(LANES);
            // SAFETY: within the elements.
            unsafe {
                widen(
                    self.from.wrapping_offset(first as isize * self.step),
                    self.step,
                    &mut chunk[..n],
                );
            }
            let next = self.from.wrapping_offset((first + CHUNK) as isize * self.step);
            fetch(next, self.step, CHUNK);
            // Their exponentials are 0.
            chunk[n..whole].fill(S::Acc::NEG_INFINITY);
            let top = largest(&chunk[..whole]);
            let sum = exponentials::<I, _>(&mut chunk[..whole], finite(top));
            all = all.join(Sum { top, sum });
        }
        all
    }
}
