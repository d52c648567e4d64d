//! Rows of elements written out as numbers.

use super::decode::{Bits, Decode, E2M1, E4M3, E8M0, INTEGER, Kind, MOST, Row};
use crate::level::{self, Body, Isa, Level};
use crate::matmul::simd::Storage;
use core::marker::PhantomData;

/// Runs a body for the vectors of a level.
macro_rules! with_vectors {
    ($level:expr, $vector:ident => $body:expr) => {
        match $level {
            #[cfg(target_arch = "x86_64")]
            Level::V4 | Level::Amx => {
                type $vector = crate::matmul::simd::x86::F32x16;
                // SAFETY: a level is only made where its features were found.
                unsafe { level::v4($body) }
            }
            #[cfg(target_arch = "x86_64")]
            Level::V3 => {
                type $vector = crate::matmul::simd::x86::F32x8;
                // SAFETY: as above.
                unsafe { level::v3($body) }
            }
            _ => {
                #[cfg(target_arch = "aarch64")]
                type $vector = crate::matmul::neon::F32x8;
                #[cfg(not(target_arch = "aarch64"))]
                type $vector = crate::matmul::simd::Portable<f32, 8>;
                level::at(Level::Baseline, $body)
            }
        }
    };
}
pub(super) use with_vectors;

/// Elements of a row, to be decoded without their scales.
struct Codes<'a, V> {
    bits: &'a Bits,
    from: *const u8,
    to: &'a mut [f32],
    vector: PhantomData<V>,
}

impl<V: Decode> Codes<'_, V> {
    /// # Safety
    /// As [`codes`]; the vector's instructions are available.
    #[inline(always)]
    unsafe fn run<const KIND: u8>(self) {
        let (bits, n) = (self.bits, self.to.len());
        let step = bits.step(V::LANES);
        // SAFETY: the bytes of whole vectors; a group is some.
        unsafe {
            let row = Row::new(self.from, n * bits.size / 8, step);
            for i in 0..n / V::LANES {
                let numbers = V::decode::<KIND>(row.at(i * step), bits);
                numbers.store(self.to.as_mut_ptr().add(i * V::LANES));
            }
        }
    }
}

impl<V: Decode> Body for Codes<'_, V> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        // SAFETY: by the contract of `codes`, and by the level.
        unsafe {
            match self.bits.kind {
                Kind::Integer => self.run::<INTEGER>(),
                Kind::E2m1 => self.run::<E2M1>(),
                Kind::E4m3 => self.run::<E4M3>(),
                Kind::E8m0 => self.run::<E8M0>(),
            }
        }
    }
}

/// Decodes elements from a byte on, as many as there is room for, a multiple of [`MOST`].
///
/// # Safety
/// There are as many.
pub unsafe fn codes(level: Level, bits: &Bits, from: *const u8, to: &mut [f32]) {
    debug_assert!(to.len().is_multiple_of(MOST));
    with_vectors!(level, V => Codes::<V> { bits, from, to, vector: PhantomData })
}

/// Scale times code plus bias, in what products of `S` are computed in.
pub struct Scaled<'a, S: Storage> {
    pub codes: &'a [f32],
    pub group: usize,
    pub scales: &'a [S::Acc],
    /// Empty for none.
    pub biases: &'a [S::Acc],
    pub to: &'a mut [S::Acc],
}

impl<S: Storage<Acc: From<f32>>> Body for Scaled<'_, S> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let groups = self.codes.chunks_exact(self.group).zip(self.to.chunks_exact_mut(self.group));
        for (g, (codes, to)) in groups.enumerate() {
            let scale = self.scales[g];
            let bias = self.biases.get(g).copied().unwrap_or_default();
            for (to, code) in to.iter_mut().zip(codes) {
                *to = crate::matmul::mul_acc::<S::Acc, I>(bias, (*code).into(), scale);
            }
        }
    }
}
