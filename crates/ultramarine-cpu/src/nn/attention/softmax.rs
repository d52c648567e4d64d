//! Passes over a block of scores, with a row for each key and a lane for each query. Scores are in units of ln 2, so
//! that exponentials are powers of two. Masked scores are the lowest finite number.

use super::QUERIES;
use crate::level::{self, Isa, Level};
use crate::nn::real::Real;

/// Lanes that a pass handles at a time: a vector of AVX-512's float32.
const STEP: usize = 16;

/// A block of scores: rows of [`QUERIES`] numbers.
#[derive(Clone, Copy)]
pub struct Scores<T> {
    pub data: *mut T,
    /// Rows.
    pub keys: usize,
    /// Number of lanes that are used.
    pub queries: usize,
}

impl<T: Real> Scores<T> {
    /// Row `j` from lane `lane` on.
    #[inline(always)]
    fn at(&self, j: usize, lane: usize) -> *mut [T; STEP] {
        self.data.wrapping_add(j * QUERIES + lane).cast()
    }

    fn lanes(&self) -> impl Iterator<Item = usize> + use<T> {
        (0..self.queries).step_by(STEP)
    }
}

#[inline(always)]
fn part<T>(lanes: &mut [T; QUERIES], lane: usize) -> &mut [T] {
    &mut lanes[lane..lane + STEP]
}

/// The running softmax of the queries of a block.
pub struct Running<T> {
    /// The largest score so far.
    pub top: [T; QUERIES],
    /// The sum of `2^(score - top)`.
    pub sum: [T; QUERIES],
    /// The factor by which the last pass multiplied earlier sums.
    pub factor: [T; QUERIES],
}

/// Masks the keys from `first` on that are after a lane's end.
pub struct Hide<'a, T> {
    pub scores: Scores<T>,
    pub first: i64,
    pub ends: &'a [i64; QUERIES],
}

impl<T: Real> level::Body for Hide<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let ends = self.ends.map(|end| (end - self.first).clamp(0, i64::from(i32::MAX)) as i32);
        for lane in self.scores.lanes() {
            for j in 0..self.scores.keys {
                // SAFETY: the block has that many rows of QUERIES numbers, of which STEP are in whole steps.
                let row = unsafe { &mut *self.scores.at(j, lane) };
                for (score, end) in row.iter_mut().zip(&ends[lane..lane + STEP]) {
                    *score = if (j as i32) < *end { *score } else { T::LOWEST };
                }
            }
        }
    }
}

/// Turns scores into weights relative to the largest so far.
pub struct Online<'a, T> {
    pub scores: Scores<T>,
    pub running: &'a mut Running<T>,
}

impl<T: Real> level::Body for Online<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        for lane in self.scores.lanes() {
            let mut top = [T::ZERO; STEP];
            top.copy_from_slice(part(&mut self.running.top, lane));
            let before = top;
            for j in 0..self.scores.keys {
                // SAFETY: as in `Hide`.
                let row = unsafe { &*self.scores.at(j, lane) };
                for (top, score) in top.iter_mut().zip(row) {
                    *top = if *score > *top { *score } else { *top };
                }
            }
            let mut sum = [T::ZERO; STEP];
            for j in 0..self.scores.keys {
                // SAFETY: as in `Hide`.
                let row = unsafe { &mut *self.scores.at(j, lane) };
                for ((sum, score), top) in sum.iter_mut().zip(row).zip(&top) {
                    *score = score.minus(*top).power_of_two::<I>();
                    *sum = sum.plus(*score);
                }
            }
            let factors = part(&mut self.running.factor, lane);
            let sums = part(&mut self.running.sum, lane);
            for l in 0..STEP {
                factors[l] = before[l].minus(top[l]).power_of_two::<I>();
                sums[l] = sums[l].times(factors[l]).plus(sum[l]);
            }
            part(&mut self.running.top, lane).copy_from_slice(&top);
        }
    }
}

/// Turns scores into weights, from the logarithms of the sums (in units of ln 2).
pub struct Weights<'a, T> {
    pub scores: Scores<T>,
    pub logarithms: &'a [T; QUERIES],
}

impl<T: Real> level::Body for Weights<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        for lane in self.scores.lanes() {
            for j in 0..self.scores.keys {
                // SAFETY: as in `Hide`.
                let row = unsafe { &mut *self.scores.at(j, lane) };
                for (score, l) in row.iter_mut().zip(&self.logarithms[lane..lane + STEP]) {
                    *score = score.minus(*l).power_of_two::<I>();
                }
            }
        }
    }
}

/// Turns the products of cotangent and values into the gradient with respect to the scores: `weight * (product -
/// delta)`.
pub struct Slopes<'a, T> {
    pub weights: Scores<T>,
    pub products: *mut T,
    pub delta: &'a [T; QUERIES],
}

impl<T: Real> level::Body for Slopes<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let products = Scores { data: self.products, ..self.weights };
        for lane in products.lanes() {
            for j in 0..products.keys {
                // SAFETY: as in `Hide`; the two blocks do not overlap.
                let (weights, row) =
                    unsafe { (&*self.weights.at(j, lane), &mut *products.at(j, lane)) };
                let delta = &self.delta[lane..lane + STEP];
                for ((product, weight), delta) in row.iter_mut().zip(weights).zip(delta) {
                    *product = product.minus(*delta).times(*weight);
                }
            }
        }
    }
}

/// Multiplies each row of a result by its lane's factor; rows are `pitch` numbers apart.
pub struct Scale<'a, T> {
    pub data: *mut T,
    pub pitch: usize,
    pub rows: usize,
    pub factors: &'a [T; QUERIES],
}

impl<T: Real> level::Body for Scale<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        for (i, factor) in self.factors.iter().enumerate().take(self.rows) {
            if *factor == T::ONE {
                continue;
            }
            // SAFETY: the rows are there, one behind the other.
            let row = unsafe {
                core::slice::from_raw_parts_mut(self.data.wrapping_add(i * self.pitch), self.pitch)
            };
            row.iter_mut().for_each(|x| *x = x.times(*factor));
        }
    }
}

/// Runs a pass at a level.
pub fn pass<B: level::Body>(level: Level, body: B) -> B::Output {
    level::at(level, body)
}
