//! Scales matrices so that squares of their elements neither overflow nor underflow.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

use super::strip::{LANES, Strip};
use super::{Blocked, Element};
use crate::level::{Body, Isa, at};
use ultramarine_linalg::power_of_two;

impl<T: Element> Blocked<'_, T> {
    /// Multiplies all elements by a power of two, usually 1, and returns it.
    ///
    /// # Errors
    /// If an element is infinite or NaN.
    ///
    /// # Safety
    /// The strips are valid, with whole vectors of rows.
    pub unsafe fn scale<const N: usize>(&self, strips: [Strip<T>; N]) -> Result<f64, String> {
        let sizes = strips.map(|strip| at(self.cx.level, Largest(strip)));
        if !sizes.iter().all(|size| size.is_finite()) {
            return Err(
                "the matrix has elements that are infinite or NaN. Replace them with nan_to_num"
                    .into(),
            );
        }
        let by = power_of_two(sizes.into_iter().fold(0.0, f64::max), T::LARGE);
        if by != 1.0 {
            for strip in strips {
                // SAFETY: by this function's contract.
                unsafe { strip.all() }.iter_mut().for_each(|v| *v = v.times(by));
            }
        }
        Ok(by)
    }
}

/// The largest magnitude of a strip's columns' real and imaginary parts; NaN if one is not finite.
struct Largest<T>(Strip<T>);

impl<T: Element> Body for Largest<T> {
    type Output = f64;
    #[inline(always)]
    fn call<I: Isa>(self, _: I) -> f64 {
        let (mut most, mut wrong) = ([0.0f64; LANES], [0.0f64; LANES]);
        for j in 0..self.0.n {
            for i in (0..self.0.m).step_by(LANES) {
                // SAFETY: whole vectors of the strip.
                let lanes = unsafe { self.0.load(i, j, LANES) };
                for l in 0..LANES {
                    let [re, im] = lanes[l].widened();
                    let size = re.abs().max(im.abs());
                    // A maximum would ignore NaN, so detect it separately.
                    wrong[l] += re * 0.0 + im * 0.0;
                    most[l] = if size > most[l] { size } else { most[l] };
                }
            }
        }
        let wrong: f64 = wrong.into_iter().sum();
        wrong + most.into_iter().fold(0.0, f64::max)
    }
}
