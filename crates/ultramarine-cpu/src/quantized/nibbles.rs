//! Four-bit elements with AVX-512. Sixteen words are processed at a time. Each word is shifted to its next element,
//! which a table look-up converts to a number. The lanes therefore hold elements that are eight apart, and x is
//! reordered accordingly beforehand.

use super::decode::{Kind, SIZES};
use super::dot::{AHEAD, Elements, FOUR, Factors, PAIR, Products, ROWS, finish, padded};
use super::format::Format;
use crate::level::{self, Body, Isa};
use crate::matmul::simd::x86::F32x16;
use crate::matmul::simd::{Simd, prefetch};
use core::arch::x86_64::*;

/// Elements of sixteen words.
pub const STRETCH: usize = 128;
/// Elements of a word.
const EACH: usize = 8;
/// Number of rows ahead for which scales and biases are prefetched.
const AHEAD_ROWS: usize = 24;
/// Lanes of a vector.
const LANES: usize = 16;

/// Reorders numbers, which form whole stretches, into the order in which elements are decoded.
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

/// The rows that a pass multiplies, and its position in them.
struct Stretch<const P: usize> {
    words: [*const u8; P],
    scales: [*const f32; P],
    x: *const f32,
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
        let (whole, rest) = (of.groups / each, of.groups % each);
        let mask = |lanes: usize| ((1u32 << lanes) - 1) as __mmask16;
        let last = [mask(rest * group / EACH), mask(rest)];
        for first in (0..of.rows).step_by(P) {
            let pair = of.some::<P>(first);
            // Rows of scales and biases are too short for the processor to detect streams.
            for rows in [Some(of.scales), of.biases].into_iter().flatten() {
                for i in 0..P {
                    let later = rows.at(first + AHEAD_ROWS + i);
                    for g in (0..of.groups).step_by(LANES) {
                        prefetch(later.wrapping_add(g).cast());
                    }
                }
            }
            // SAFETY: so many stretches of words, of scales and of x, by the contract of `dot`.
            unsafe {
                let table = _mm512_loadu_ps(numbers.as_ptr());
                let places = _mm512_loadu_si512(places.as_ptr().cast());
                let mut at = Stretch::<P> {
                    words: pair.map(|row| of.words_at(row)),
                    scales: pair.map(|row| of.scales.at(row)),
                    x: x.rows.data,
                };
                let mut totals = [[F32x16::zero(); M]; P];
                for _ in 0..whole {
                    at.add(
                        x.rows.row,
                        [table, _mm512_castsi512_ps(places)],
                        [!0, mask(each)],
                        &mut totals,
                    );
                    for i in 0..P {
                        at.words[i] = at.words[i].add(4 * LANES);
                        at.scales[i] = at.scales[i].add(each);
                    }
                    at.x = at.x.add(STRETCH);
                }
                if rest > 0 {
                    at.add(x.rows.row, [table, _mm512_castsi512_ps(places)], last, &mut totals);
                }
                finish(&totals, of, x, first, self.to);
            }
        }
    }
}

impl<const P: usize> Stretch<P> {
    /// Adds the products of a stretch. `lanes` are those with words, and those with scales.
    ///
    /// # Safety
    /// AVX-512 is available, and there are as many words and scales, and a stretch of x in each of M rows.
    #[inline(always)]
    unsafe fn add<const M: usize>(
        &self,
        row: isize,
        [table, places]: [__m512; 2],
        lanes: [__mmask16; 2],
        totals: &mut [[F32x16; M]; P],
    ) {
        // SAFETY: by this function's contract.
        unsafe {
            let mut words = [_mm512_setzero_si512(); P];
            for i in 0..P {
                prefetch(self.words[i].wrapping_add(AHEAD));
                words[i] = _mm512_maskz_loadu_epi32(lanes[0], self.words[i].cast());
            }
            let mut sums = [[F32x16::zero(); M]; P];
            macro_rules! element {
                ($($e:literal)*) => {$({
                    let mut numbers = [F32x16::zero(); P];
                    for i in 0..P {
                        // Only the lowest four bits of the shifted words are used.
                        let codes = _mm512_srli_epi32::<{ 4 * $e }>(words[i]);
                        numbers[i] = F32x16(_mm512_permutexvar_ps(codes, table));
                    }
                    for r in 0..M {
                        let from = self.x.add($e * LANES);
                        let x = F32x16::load(from.wrapping_offset(r as isize * row));
                        for i in 0..P {
                            sums[i][r] = sums[i][r].mul_acc(numbers[i], x);
                        }
                    }
                })*};
            }
            element!(0 1 2 3 4 5 6 7);
            for i in 0..P {
                let scales = _mm512_maskz_loadu_ps(lanes[1], self.scales[i]);
                let scale = F32x16(_mm512_permutexvar_ps(_mm512_castps_si512(places), scales));
                for r in 0..M {
                    totals[i][r] = totals[i][r].mul_acc(sums[i][r], scale);
                }
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
                1 => self.run::<1, FOUR>(),
                _ => self.run::<ROWS, PAIR>(),
            }
        }
    }
}

/// As [`super::dot::dot`], of rows of x that [`reorder`] ordered.
///
/// # Safety
/// As there. AVX-512 is available, and the elements have four bits. Rows of x make whole stretches, with zeros at their ends.
pub unsafe fn dot(format: &Format, elements: Elements, x: Factors, to: &mut Products) {
    // SAFETY: by this function's contract.
    unsafe { level::v4(Dot { format, elements, x, to }) }
}
