//! 16-bit floats, whose arithmetic is done in float32.

use crate::dtype::Number;
use half::{bf16, f16, slice::HalfFloatSliceExt};

/// float16 or bfloat16. If a sum, product or quotient is computed in float32 and then rounded, it
/// is the result that IEEE 754 requires, because float32 has more than twice as many digits.
pub trait Half: Number {
    /// Converts to float32, exactly.
    ///
    /// # Panics
    /// If `to` has another length than `from`.
    fn widen(from: &[Self], to: &mut [f32]);
    /// Rounds to the nearest numbers of this type, ties to even.
    ///
    /// # Panics
    /// If `to` has another length than `from`.
    fn narrow(from: &[f32], to: &mut [Self]);
    /// Rounds float32 numbers to the nearest numbers of this type. They stay float32.
    fn round(values: &mut [f32]);
    /// Rounds a float32 to the nearest number of this type.
    fn of(value: f32) -> Self;
    /// Converts to float32, exactly.
    fn wide(self) -> f32;
}

impl Half for f16 {
    fn widen(from: &[Self], to: &mut [f32]) {
        assert_eq!(from.len(), to.len(), "slices of one length");
        #[cfg(target_arch = "x86_64")]
        if x86::there() {
            // SAFETY: the features are there.
            return unsafe { x86::widen(from, to) };
        }
        from.convert_to_f32_slice(to);
    }

    fn narrow(from: &[f32], to: &mut [Self]) {
        assert_eq!(from.len(), to.len(), "slices of one length");
        #[cfg(target_arch = "x86_64")]
        if x86::there() {
            // SAFETY: the features are there.
            return unsafe { x86::narrow(from, to) };
        }
        to.convert_from_f32_slice(from);
    }

    fn round(values: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if x86::there() {
            // SAFETY: the features are there.
            return unsafe { x86::round(values) };
        }
        values.iter_mut().for_each(|v| *v = f16::from_f32(*v).to_f32());
    }

    fn of(value: f32) -> Self {
        f16::from_f32(value)
    }

    fn wide(self) -> f32 {
        self.to_f32()
    }
}

/// Declares functions that are also compiled for wider vectors.
macro_rules! vectorized {
    ($(fn $name:ident($($a:ident: $t:ty),*) $body:block)*) => {$(
        fn $name($($a: $t),*) {
            #[inline(always)]
            fn plain($($a: $t),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($a: $t),*) {
                    plain($($a),*);
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature is there.
                    return unsafe { wide($($a),*) };
                }
            }
            plain($($a),*);
        }
    )*};
}

vectorized! {
    fn widen_upper(from: &[bf16], to: &mut [f32]) {
        for (from, to) in from.iter().zip(to) {
            *to = f32::from_bits(u32::from(from.to_bits()) << 16);
        }
    }

    fn narrow_upper(from: &[f32], to: &mut [bf16]) {
        for (from, to) in from.iter().zip(to) {
            *to = bf16::from_bits(upper(*from) as u16);
        }
    }

    fn round_upper(values: &mut [f32]) {
        for value in values {
            *value = f32::from_bits(upper(*value) << 16);
        }
    }
}

/// Returns the upper half of a float32, rounded to nearest, ties to even. NaN stays NaN. It has no
/// branch, so that loops are vectorised.
#[inline(always)]
fn upper(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    // Keep the upper bits of the NaN's payload, and set the quiet bit.
    let kept = bits | 0x0040_0000;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { kept } else { rounded }) >> 16
}

impl Half for bf16 {
    fn widen(from: &[Self], to: &mut [f32]) {
        widen_upper(from, to);
    }

    fn narrow(from: &[f32], to: &mut [Self]) {
        narrow_upper(from, to);
    }

    fn round(values: &mut [f32]) {
        round_upper(values);
    }

    #[inline(always)]
    fn of(value: f32) -> Self {
        bf16::from_bits(upper(value) as u16)
    }

    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

/// Versions that convert eight numbers at once.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use half::f16;
    use std::arch::x86_64::{
        __m128i, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;

    pub fn there() -> bool {
        is_x86_feature_detected!("avx") && is_x86_feature_detected!("f16c")
    }

    #[target_feature(enable = "avx,f16c")]
    pub fn widen(from: &[f16], to: &mut [f32]) {
        let (eights, rest) = from.as_chunks::<8>();
        let (into, last) = to.as_chunks_mut::<8>();
        for (from, to) in eights.iter().zip(into) {
            // SAFETY: eight of each.
            unsafe {
                let bits = _mm_loadu_si128(from.as_ptr().cast::<__m128i>());
                _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(bits));
            }
        }
        rest.iter().zip(last).for_each(|(from, to)| *to = from.to_f32());
    }

    #[target_feature(enable = "avx,f16c")]
    pub fn narrow(from: &[f32], to: &mut [f16]) {
        let (eights, rest) = from.as_chunks::<8>();
        let (into, last) = to.as_chunks_mut::<8>();
        for (from, to) in eights.iter().zip(into) {
            // SAFETY: eight of each.
            unsafe {
                let bits = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(from.as_ptr()));
                _mm_storeu_si128(to.as_mut_ptr().cast::<__m128i>(), bits);
            }
        }
        rest.iter().zip(last).for_each(|(from, to)| *to = f16::from_f32(*from));
    }

    #[target_feature(enable = "avx,f16c")]
    pub fn round(values: &mut [f32]) {
        let (eights, rest) = values.as_chunks_mut::<8>();
        for values in eights {
            // SAFETY: eight of them.
            unsafe {
                let bits = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(values.as_ptr()));
                _mm256_storeu_ps(values.as_mut_ptr(), _mm256_cvtph_ps(bits));
            }
        }
        rest.iter_mut().for_each(|v| *v = f16::from_f32(*v).to_f32());
    }
}
