//! Few rows of x times a block of rows of elements. Elements are decoded when they are read, once.

use super::decode::{Decode, E2M1, E4M3, INTEGER, Kind, Row};
use super::expand::with_vectors;
use super::format::Format;
use crate::level::{self, Body, Isa, Level};
use core::marker::PhantomData;

/// Most rows of x that are multiplied at a time.
pub const ROWS: usize = 4;
/// Rows of elements that several rows of x are multiplied by at a time: each number of x is loaded once for both.
pub const PAIR: usize = 2;
/// Rows of elements that a single row of x is multiplied by at a time.
pub const FOUR: usize = 4;
/// Most rows of elements of a block.
pub const BLOCK: usize = 128;
/// The products of rows of x with those of a block.
pub type Products = [[f32; BLOCK]; ROWS];
/// Distance in bytes of the prefetch. The processor does not detect that several rows are one stretch of memory.
pub const AHEAD: usize = 8192;

/// Rows of float32 numbers. Their length is known to the caller.
#[derive(Clone, Copy)]
pub struct Rows {
    pub data: *const f32,
    /// Numbers from a row to the next.
    pub row: isize,
}

impl Rows {
    #[inline(always)]
    pub fn at(&self, row: usize) -> *const f32 {
        self.data.wrapping_offset(row as isize * self.row)
    }
}

/// Rows of elements.
#[derive(Clone, Copy)]
pub struct Elements {
    pub words: *const u8,
    /// Bytes from a row to the next.
    pub row: isize,
    /// At most [`BLOCK`], and one at least.
    pub rows: usize,
    /// Of a row.
    pub groups: usize,
    pub scales: Rows,
    pub biases: Option<Rows>,
}

impl Elements {
    #[inline(always)]
    pub fn words_at(&self, row: usize) -> *const u8 {
        self.words.wrapping_offset(row as isize * self.row)
    }

    /// A row and the rows after it. Missing rows are replaced by the last one.
    #[inline(always)]
    pub fn some<const P: usize>(&self, row: usize) -> [usize; P] {
        core::array::from_fn(|i| (row + i).min(self.rows - 1))
    }
}

/// Rows of x as float32.
#[derive(Clone, Copy)]
pub struct Factors {
    /// [`padded`] rows.
    pub rows: Rows,
    pub count: usize,
    /// Set if [`reorder`] was called on them, because they are [`ordered`].
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub ordered: bool,
    /// Sums of each row's groups, for elements with biases.
    pub sums: Rows,
}

/// The number of rows of x for which memory must exist, given the number of used rows. The additional rows may have any
/// content.
#[inline(always)]
pub fn padded(rows: usize) -> usize {
    if rows < 2 { rows } else { ROWS }
}

/// Adds the sums of a few rows of elements, and the biases' part: products of the biases with sums of x.
///
/// # Safety
/// The vector's instructions are available, and what elements and x describe is readable.
#[inline(always)]
pub unsafe fn finish<V: Decode, const M: usize, const P: usize>(
    totals: &[[V; M]; P],
    of: Elements,
    x: Factors,
    first: usize,
    to: &mut Products,
) {
    let (rows, n) = (of.some::<P>(first), of.groups);
    let whole = n / V::LANES * V::LANES;
    for i in 0..P.min(of.rows - first) {
        for r in 0..M.min(x.count) {
            let mut total = totals[i][r];
            // SAFETY: by this function's contract.
            unsafe {
                if let Some(biases) = of.biases {
                    let (biases, sums) = (biases.at(rows[i]), x.sums.at(r));
                    let mut at = 0;
                    while at < whole {
                        total = total.mul_acc(V::load(biases.add(at)), V::load(sums.add(at)));
                        at += V::LANES;
                    }
                    if whole < n {
                        let (a, b) = (biases.add(whole), sums.add(whole));
                        let rest = n - whole;
                        total = total.mul_acc(V::load_part(a, rest), V::load_part(b, rest));
                    }
                }
                to[r][first + i] += total.sum();
            }
        }
    }
}

struct Dot<'a, V> {
    format: &'a Format,
    elements: Elements,
    x: Factors,
    to: &'a mut Products,
    vector: PhantomData<V>,
}

impl<V: Decode> Dot<'_, V> {
    /// # Safety
    /// As [`dot`]; there are M rows, and the vector's instructions are available.
    #[inline(always)]
    unsafe fn run<const M: usize, const P: usize, const KIND: u8>(&mut self) {
        let (bits, of, x) = (&self.format.bits, self.elements, self.x);
        let (step, vectors) = (bits.step(V::LANES), self.format.group / V::LANES);
        let bytes = of.groups * self.format.group * bits.size / 8;
        for first in (0..of.rows).step_by(P) {
            let pair = of.some::<P>(first);
            // SAFETY: rows of as many elements and numbers.
            unsafe {
                let rows = pair.map(|row| Row::new(of.words_at(row), bytes, step));
                let mut from = x.rows.data;
                let mut totals = [[V::zero(); M]; P];
                let mut at = 0;
                for g in 0..of.groups {
                    let mut sums = [[V::zero(); M]; P];
                    for _ in 0..vectors {
                        // No closure: it would be compiled without the level's instructions.
                        let mut numbers = [V::zero(); P];
                        for i in 0..P {
                            let from = rows[i].at(at);
                            V::prefetch(from.wrapping_add(AHEAD).cast());
                            numbers[i] = V::decode::<KIND>(from, bits);
                        }
                        for r in 0..M {
                            let x = V::load(from.wrapping_offset(r as isize * x.rows.row));
                            for i in 0..P {
                                sums[i][r] = sums[i][r].mul_acc(numbers[i], x);
                            }
                        }
                        at += step;
                        from = from.add(V::LANES);
                    }
                    for i in 0..P {
                        let scale = V::splat(of.scales.at(pair[i]).add(g));
                        for r in 0..M {
                            totals[i][r] = totals[i][r].mul_acc(sums[i][r], scale);
                        }
                    }
                }
                finish(&totals, of, x, first, self.to);
            }
        }
    }

    /// # Safety
    /// As [`Self::run`].
    #[inline(always)]
    unsafe fn of_kind<const M: usize, const P: usize>(&mut self) {
        // SAFETY: passed on.
        unsafe {
            match self.format.bits.kind {
                Kind::Integer => self.run::<M, P, INTEGER>(),
                Kind::E2m1 => self.run::<M, P, E2M1>(),
                Kind::E4m3 | Kind::E8m0 => self.run::<M, P, E4M3>(),
            }
        }
    }
}

impl<V: Decode> Body for Dot<'_, V> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(mut self, _: I) {
        // SAFETY: by the contract of `dot`, and by the level.
        unsafe {
            match padded(self.x.count) {
                1 => self.of_kind::<1, FOUR>(),
                _ => self.of_kind::<ROWS, PAIR>(),
            }
        }
    }
}

/// Returns true if rows of x must be ordered by [`reorder`], with zeros up to a multiple of [`STRETCH`].
pub fn ordered(level: Level, format: &Format) -> bool {
    cfg!(target_arch = "x86_64") && level >= Level::V4 && format.bits.size == 4
}

#[cfg(target_arch = "x86_64")]
pub use super::nibbles::{STRETCH, reorder};
#[cfg(not(target_arch = "x86_64"))]
pub const STRETCH: usize = 1;
#[cfg(not(target_arch = "x86_64"))]
pub fn reorder(_: &mut [f32]) {}

/// Adds the products of rows of x with rows of elements.
///
/// # Safety
/// All that is described is readable.
pub unsafe fn dot(
    level: Level,
    format: &Format,
    elements: Elements,
    x: Factors,
    to: &mut Products,
) {
    assert!(x.count <= ROWS && (1..=BLOCK).contains(&elements.rows), "a block of another size");
    #[cfg(target_arch = "x86_64")]
    if x.ordered {
        // SAFETY: by this function's contract; only what is to be ordered is.
        return unsafe { super::nibbles::dot(format, elements, x, to) };
    }
    with_vectors!(level, V => Dot::<V> { format, elements, x, to, vector: PhantomData })
}
