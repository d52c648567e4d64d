//! Elements of four bits with AVX-512: sixteen words at a time, each shifted to its next element, which a table look-up turns
//! into a number. So lanes hold elements that are eight apart, and x is brought into that order before.

use super::decode::{Kind, SIZES};
use super::dot::{AHEAD, Elements, Factors, PAIR, Products, ROWS, finish, padded};
use super::format::Format;
use crate::level::{self, Body, Isa};
use crate::matmul::simd::x86::F32x16;
use crate::matmul::simd::{Simd, prefetch};
use core::arch::x86_64::*;

/// Elements of sixteen words.
pub const STRETCH: usize = 128;
/// Elements of a word.
const EACH: usize = 8;
/// Rows ahead whose scales and biases are fetched.
const AHEAD_ROWS: usize = 8;
/// Lanes of a vector.
const LANES: usize = 16;

/// Brings numbers into the order in which elements are decoded.
pub fn reorder(row: &mut [f32]) {
    for stretch in row.chunks_exact_mut(STRETCH) {
        let mut ordered = [0.0; STRETCH];
        for (i, x) in stretch.iter().enumerate() {
            ordered[i % EACH * LANES + i / EACH] = *x;
        }
        stretch.copy_from_slice(&ordered);
    }
}

struct Dot<'a> {
    format: &'a Format,
    elements: Elements,
    x: Factors,
    to: &'a mut Products,
}

impl Dot<'_> {
    /// # Safety
    /// As [`dot`]; there are M rows.
    #[inline(always)]
    unsafe fn run<const M: usize, const P: usize>(&mut self) {
        let (group, of, x) = (self.format.group, self.elements, self.x);
        let each = STRETCH / group;
        let numbers: [f32; LANES] = match self.format.bits.kind {
            Kind::Integer => core::array::from_fn(|code| code as f32),
            _ => core::array::from_fn(|code| if code < 8 { SIZES[code] } else { -SIZES[code - 8] }),
        };
        let places: [i32; LANES] = core::array::from_fn(|lane| (lane * EACH / group) as i32);
        let there = ((1u32 << each) - 1) as __mmask16;
        for first in (0..of.rows).step_by(P) {
            let pair = of.some::<P>(first);
            // Rows of scales and biases are too short for a processor to see streams in them.
            for rows in [Some(of.scales), of.biases].into_iter().flatten() {
                let later = rows.at(first + AHEAD_ROWS);
                for g in (0..of.groups).step_by(LANES) {
                    prefetch(later.wrapping_add(g).cast());
                }
            }
            // SAFETY: so many stretches of words, of scales and of x, by the contract of `dot`.
            unsafe {
                let table = _mm512_loadu_ps(numbers.as_ptr());
                let places = _mm512_loadu_si512(places.as_ptr().cast());
                let mut totals = [[F32x16::zero(); M]; P];
                for at in 0..of.groups / each {
                    let mut words = [_mm512_setzero_si512(); P];
                    for i in 0..P {
                        let from = of.words_at(pair[i]).add(at * 4 * LANES);
                        prefetch(from.wrapping_add(AHEAD));
                        words[i] = _mm512_loadu_si512(from.cast());
                    }
                    let from = x.rows.data.add(at * STRETCH);
                    let mut sums = [[F32x16::zero(); M]; P];
                    macro_rules! element {
                        ($($e:literal)*) => {$({
                            let mut numbers = [F32x16::zero(); P];
                            for i in 0..P {
                                // Of the shifted words the lowest four bits count.
                                let codes = _mm512_srli_epi32::<{ 4 * $e }>(words[i]);
                                numbers[i] = F32x16(_mm512_permutexvar_ps(codes, table));
                            }
                            for r in 0..M {
                                let from = from.add($e * LANES);
                                let x = F32x16::load(from.wrapping_offset(r as isize * x.rows.row));
                                for i in 0..P {
                                    sums[i][r] = sums[i][r].mul_acc(numbers[i], x);
                                }
                            }
                        })*};
                    }
                    element!(0 1 2 3 4 5 6 7);
                    for i in 0..P {
                        let from = of.scales.at(pair[i]).add(at * each);
                        let scales = _mm512_maskz_loadu_ps(there, from);
                        let scale = F32x16(_mm512_permutexvar_ps(places, scales));
                        for r in 0..M {
                            totals[i][r] = totals[i][r].mul_acc(sums[i][r], scale);
                        }
                    }
                }
                finish(&totals, of, x, first, self.to);
            }
        }
    }
}

impl Body for Dot<'_> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(mut self, _: I) {
        // SAFETY: by the contract of `dot`.
        unsafe {
            match padded(self.x.count) {
                1 => self.run::<1, 1>(),
                _ => self.run::<ROWS, PAIR>(),
            }
        }
    }
}

/// As [`super::dot::dot`], of rows of x that [`reorder`] ordered.
///
/// # Safety
/// As there. AVX-512 is available, and the elements have four bits and make whole stretches.
pub unsafe fn dot(format: &Format, elements: Elements, x: Factors, to: &mut Products) {
    // SAFETY: by this function's contract.
    unsafe { level::v4(Dot { format, elements, x, to }) }
}
