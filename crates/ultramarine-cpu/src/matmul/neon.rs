//! Vectors of NEON, of two registers each: a tile of 6 rows by two vectors takes 24 of the 32 registers, and its operands the rest.

use super::simd::{Simd, prefetch};
use core::arch::aarch64::*;

macro_rules! simd {
    ($name:ident $v:ident $e:ident x $lanes:literal: $set:ident $load:ident $store:ident $fma:ident $add:ident
     $fma_lane:ident $($lane:literal)*) => {
        #[doc = concat!(stringify!($lanes), " lanes of ", stringify!($e), ".")]
        #[derive(Clone, Copy)]
        pub struct $name(pub(crate) [$v; 2]);

        impl $name {
            /// Lanes of a register.
            const HALF: usize = $lanes / 2;
        }

        // SAFETY: every AArch64 that this is compiled for has NEON; pointers are used as the trait promises.
        unsafe impl Simd for $name {
            type E = $e;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: NEON is there.
                Self([unsafe { $set(0.0) }; 2])
            }
            #[inline(always)]
            unsafe fn load(from: *const $e) -> Self {
                // SAFETY: by the trait's contract.
                Self(unsafe { [$load(from), $load(from.add(Self::HALF))] })
            }
            #[inline(always)]
            unsafe fn splat(from: *const $e) -> Self {
                // SAFETY: by the trait's contract.
                Self([unsafe { $set(*from) }; 2])
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $e) {
                // SAFETY: by the trait's contract.
                unsafe {
                    $store(to, self.0[0]);
                    $store(to.add(Self::HALF), self.0[1]);
                }
            }
            #[inline(always)]
            unsafe fn mul_acc(self, a: Self, b: Self) -> Self {
                // SAFETY: NEON is there.
                Self(unsafe { [$fma(self.0[0], a.0[0], b.0[0]), $fma(self.0[1], a.0[1], b.0[1])] })
            }
            #[inline(always)]
            unsafe fn plus(self, a: Self) -> Self {
                // SAFETY: NEON is there.
                Self(unsafe { [$add(self.0[0], a.0[0]), $add(self.0[1], a.0[1])] })
            }
            /// A whole register of `a` is loaded once, and its lanes are the products' operands.
            #[inline(always)]
            unsafe fn add_outer<const MR: usize, const NV: usize>(
                acc: &mut [[Self; NV]; MR],
                a: *const $e,
                b: &[Self; NV],
            ) {
                let mut i = 0;
                while i + Self::HALF <= MR {
                    // SAFETY: by the trait's contract: the register's numbers are among the MR.
                    let part = unsafe { $load(a.add(i)) };
                    $(
                        for v in 0..NV {
                            let sum = &mut acc[i + $lane][v].0;
                            for half in 0..2 {
                                // SAFETY: NEON is there.
                                sum[half] = unsafe { $fma_lane::<$lane>(sum[half], b[v].0[half], part) };
                            }
                        }
                    )*
                    i += Self::HALF;
                }
                while i < MR {
                    // SAFETY: by the trait's contract.
                    let number = unsafe { Self::splat(a.add(i)) };
                    for v in 0..NV {
                        // SAFETY: by the trait's contract.
                        acc[i][v] = unsafe { acc[i][v].mul_acc(number, b[v]) };
                    }
                    i += 1;
                }
            }
            #[inline(always)]
            unsafe fn prefetch(at: *const $e) {
                prefetch(at.cast());
            }
            #[inline(always)]
            unsafe fn prefetch_far(at: *const $e) {
                // SAFETY: a prefetch of any address is harmless.
                unsafe {
                    core::arch::asm!("prfm pldl2keep, [{}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
                }
            }
        }
    };
}
simd!(F32x8 float32x4_t f32 x 8: vdupq_n_f32 vld1q_f32 vst1q_f32 vfmaq_f32 vaddq_f32 vfmaq_laneq_f32 0 1 2 3);
simd!(F64x4 float64x2_t f64 x 4: vdupq_n_f64 vld1q_f64 vst1q_f64 vfmaq_f64 vaddq_f64 vfmaq_laneq_f64 0 1);
