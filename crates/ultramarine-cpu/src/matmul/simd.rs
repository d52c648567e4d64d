//! Numbers and vectors that the micro-kernels compute with.

use half::{bf16, f16, slice::HalfFloatSliceExt};

/// A type in which products are accumulated: float32, float64, or an unsigned integer (which wraps, and so serves
/// signed integers too).
pub trait Num: Copy + Default + Send + Sync + 'static {
    /// `self + a * b`, fused if `FMA` (then it is one instruction).
    fn mul_acc<const FMA: bool>(self, a: Self, b: Self) -> Self;
    /// `self + a`.
    fn plus(self, a: Self) -> Self;
}

macro_rules! num {
    (float $($t:ty)*) => {$(impl Num for $t {
        #[inline(always)]
        fn mul_acc<const FMA: bool>(self, a: Self, b: Self) -> Self {
            if FMA { a.mul_add(b, self) } else { self + a * b }
        }
        #[inline(always)]
        fn plus(self, a: Self) -> Self {
            self + a
        }
    })*};
    (int $($t:ty)*) => {$(impl Num for $t {
        #[inline(always)]
        fn mul_acc<const FMA: bool>(self, a: Self, b: Self) -> Self {
            self.wrapping_add(a.wrapping_mul(b))
        }
        #[inline(always)]
        fn plus(self, a: Self) -> Self {
            self.wrapping_add(a)
        }
    })*};
}
num!(float f32 f64);
num!(int u32 u64);

/// A type as stored in arrays, with the type in which its products are accumulated.
pub trait Storage: Copy + Default + Send + Sync + 'static {
    /// Accumulates products.
    type Acc: Num;
    /// Exact (modulo the width, for integers).
    fn widen(self) -> Self::Acc;
    /// Rounds to nearest, ties to even. Integers are truncated to their low bits.
    fn narrow(acc: Self::Acc) -> Self;
    /// Narrows a row.
    #[inline(always)]
    fn narrow_row(from: &[Self::Acc], to: &mut [Self]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = Self::narrow(*from);
        }
    }
}

macro_rules! storage {
    ($($t:ty => $acc:ty),*) => {$(impl Storage for $t {
        type Acc = $acc;
        #[inline(always)]
        fn widen(self) -> $acc {
            self as $acc
        }
        #[inline(always)]
        fn narrow(acc: $acc) -> Self {
            acc as $t
        }
    })*};
}
storage!(f32 => f32, f64 => f64, u8 => u32, u16 => u32, u32 => u32, u64 => u64);

impl Storage for bf16 {
    type Acc = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrow(acc: f32) -> Self {
        let bits = acc.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
        // Keep a NaN: rounding could carry it into the sign bit.
        let bits = if acc.is_nan() { bits | 0x0040_0000 } else { rounded };
        bf16::from_bits((bits >> 16) as u16)
    }
}

impl Storage for f16 {
    type Acc = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        // With exponent and fraction moved to float32's positions, the number is the value times 2^-112, including
        // subnormals. Only infinities and NaN need their exponent restored.
        let bits = self.to_bits() as u32;
        let scaled = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
        let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
        f32::from_bits(scaled.to_bits() | special | (bits & 0x8000) << 16)
    }
    #[inline(always)]
    fn narrow(acc: f32) -> Self {
        f16::from_f32(acc)
    }
    #[inline(always)]
    fn narrow_row(from: &[f32], to: &mut [Self]) {
        to.convert_from_f32_slice(from);
    }
}

/// A vector register (or a few) of numbers.
///
/// # Safety
/// The methods may only run where the instructions of the implementing type are
/// available. Pointers are valid for `LANES` numbers (the partial methods: for
/// `n < LANES`), at any alignment of a number.
#[allow(clippy::missing_safety_doc)]
pub unsafe trait Simd: Copy {
    /// Lane type.
    type E: Num;
    /// Number of lanes.
    const LANES: usize;
    unsafe fn zero() -> Self;
    unsafe fn load(from: *const Self::E) -> Self;
    unsafe fn splat(from: *const Self::E) -> Self;
    unsafe fn store(self, to: *mut Self::E);
    /// `self + a * b`.
    unsafe fn mul_acc(self, a: Self, b: Self) -> Self;
    unsafe fn plus(self, a: Self) -> Self;
    /// Adds to row `i` of `acc` the products of `b` with the number at `a + i`.
    #[inline(always)]
    unsafe fn add_outer<const MR: usize, const NV: usize>(
        acc: &mut [[Self; NV]; MR],
        a: *const Self::E,
        b: &[Self; NV],
    ) {
        for i in 0..MR {
            // SAFETY: `MR` numbers are readable.
            let number = unsafe { Self::splat(a.add(i)) };
            for v in 0..NV {
                // SAFETY: by the trait's contract.
                acc[i][v] = unsafe { acc[i][v].mul_acc(number, b[v]) };
            }
        }
    }
    unsafe fn prefetch(_at: *const Self::E) {}
    /// Prefetches to the L2 cache only.
    unsafe fn prefetch_far(_at: *const Self::E) {}
    #[inline(always)]
    unsafe fn load_part(from: *const Self::E, n: usize) -> Self {
        // SAFETY: `n` numbers are readable; the buffer holds LANES <= 64.
        unsafe {
            let mut buffer = [Self::E::default(); 64];
            core::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), n);
            Self::load(buffer.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut Self::E, n: usize) {
        // SAFETY: `n` numbers are writable; the buffer holds LANES <= 64.
        unsafe {
            let mut buffer = [Self::E::default(); 64];
            self.store(buffer.as_mut_ptr());
            core::ptr::copy_nonoverlapping(buffer.as_ptr(), to, n);
        }
    }
}

/// Lanes as an array. The compiler turns them into the vectors of the level for which the code is compiled.
#[derive(Clone, Copy)]
pub struct Portable<E, const L: usize>(pub(crate) [E; L]);

// SAFETY: plain Rust; pointers are used as the trait promises.
unsafe impl<E: Num, const L: usize> Simd for Portable<E, L> {
    type E = E;
    const LANES: usize = L;
    #[inline(always)]
    unsafe fn zero() -> Self {
        Portable([E::default(); L])
    }
    #[inline(always)]
    unsafe fn load(from: *const E) -> Self {
        // SAFETY: L numbers are readable.
        Portable(unsafe { from.cast::<[E; L]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn splat(from: *const E) -> Self {
        // SAFETY: a number is readable.
        Portable([unsafe { from.read() }; L])
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut E) {
        // SAFETY: L numbers are writable.
        unsafe { to.cast::<[E; L]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn mul_acc(mut self, a: Self, b: Self) -> Self {
        for i in 0..L {
            self.0[i] = self.0[i].mul_acc::<{ cfg!(target_arch = "aarch64") }>(a.0[i], b.0[i]);
        }
        self
    }
    #[inline(always)]
    unsafe fn plus(mut self, a: Self) -> Self {
        for i in 0..L {
            self.0[i] = self.0[i].plus(a.0[i]);
        }
        self
    }
}

/// Prefetches a line to the L1 cache, if possible; any address is allowed.
#[inline(always)]
pub fn prefetch(_at: *const u8) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) _at.addr(), options(nomem, nostack, preserves_flags))
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_at as *const i8)
    }
}

/// Vectors by x86 intrinsics.
#[cfg(target_arch = "x86_64")]
pub mod x86 {
    use super::{Num, Simd};
    use core::arch::x86_64::*;
    use core::marker::PhantomData;

    macro_rules! simd {
        ($name:ident $v:ident $e:ident x $lanes:literal: $zero:ident $load:ident $store:ident $set:ident
         $fma:ident $add:ident $(mask $mask:ident $mload:ident $mstore:ident)?) => {
            #[doc = concat!(stringify!($lanes), " lanes of ", stringify!($e), ".")]
            #[derive(Clone, Copy)]
            pub struct $name(pub(crate) $v);
            // SAFETY: the intrinsics' features are the trait's condition on callers.
            unsafe impl Simd for $name {
                type E = $e;
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: by the trait's contract.
                    Self(unsafe { $zero() })
                }
                #[inline(always)]
                unsafe fn load(from: *const $e) -> Self {
                    // SAFETY: by the trait's contract.
                    Self(unsafe { $load(from) })
                }
                #[inline(always)]
                unsafe fn splat(from: *const $e) -> Self {
                    // SAFETY: by the trait's contract.
                    Self(unsafe { $set(*from) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $e) {
                    // SAFETY: by the trait's contract.
                    unsafe { $store(to, self.0) }
                }
                #[inline(always)]
                unsafe fn mul_acc(self, a: Self, b: Self) -> Self {
                    // SAFETY: by the trait's contract.
                    Self(unsafe { $fma(a.0, b.0, self.0) })
                }
                #[inline(always)]
                unsafe fn plus(self, a: Self) -> Self {
                    // SAFETY: by the trait's contract.
                    Self(unsafe { $add(self.0, a.0) })
                }
                #[inline(always)]
                unsafe fn prefetch(at: *const $e) {
                    // SAFETY: a prefetch of any address is harmless.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(at as *const i8) }
                }
                #[inline(always)]
                unsafe fn prefetch_far(at: *const $e) {
                    // SAFETY: a prefetch of any address is harmless.
                    unsafe { _mm_prefetch::<_MM_HINT_T1>(at as *const i8) }
                }
                $(
                #[inline(always)]
                unsafe fn load_part(from: *const $e, n: usize) -> Self {
                    // SAFETY: by the trait's contract; masked lanes are not read.
                    Self(unsafe { $mload(((1u32 << n) - 1) as $mask, from) })
                }
                #[inline(always)]
                unsafe fn store_part(self, to: *mut $e, n: usize) {
                    // SAFETY: by the trait's contract; masked lanes are not written.
                    unsafe { $mstore(to, ((1u32 << n) - 1) as $mask, self.0) }
                }
                )?
            }
        };
    }
    simd!(F32x16 __m512 f32 x 16: _mm512_setzero_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps
        _mm512_fmadd_ps _mm512_add_ps mask __mmask16 _mm512_maskz_loadu_ps _mm512_mask_storeu_ps);
    simd!(F64x8 __m512d f64 x 8: _mm512_setzero_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd
        _mm512_fmadd_pd _mm512_add_pd mask __mmask8 _mm512_maskz_loadu_pd _mm512_mask_storeu_pd);
    simd!(F32x8 __m256 f32 x 8: _mm256_setzero_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps
        _mm256_fmadd_ps _mm256_add_ps);
    simd!(F64x4 __m256d f64 x 4: _mm256_setzero_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd
        _mm256_fmadd_pd _mm256_add_pd);

    /// Instructions that add the products of two groups of elements to a lane.
    ///
    /// # Safety
    /// As [`Simd`].
    #[allow(clippy::missing_safety_doc)]
    pub unsafe trait Dot: Copy {
        /// The type of a sum.
        type E: Num;
        unsafe fn dot(sum: __m512, a: __m512, b: __m512) -> __m512;
        unsafe fn plus(a: __m512, b: __m512) -> __m512;
    }

    macro_rules! dot {
        ($(#[$doc:meta])* $name:ident $e:ty: $dot:expr, $plus:expr) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $name;
            // SAFETY: the intrinsics' features are the trait's condition on callers.
            unsafe impl Dot for $name {
                type E = $e;
                #[inline(always)]
                unsafe fn dot(sum: __m512, a: __m512, b: __m512) -> __m512 {
                    // SAFETY: by the trait's contract; vectors of 64 bytes have any bits.
                    unsafe { ($dot)(sum, a, b) }
                }
                #[inline(always)]
                unsafe fn plus(a: __m512, b: __m512) -> __m512 {
                    // SAFETY: as above.
                    unsafe { ($plus)(a, b) }
                }
            }
        };
    }
    dot!(
        /// Pairs of bfloat16, rounded to float32 after each product; subnormal numbers count as zeros.
        PairsOfBf16 f32:
        |sum, a: __m512, b: __m512| {
            let bits = |x| core::mem::transmute::<__m512, __m512bh>(x);
            _mm512_dpbf16_ps(sum, bits(a), bits(b))
        },
        |a, b| _mm512_add_ps(a, b)
    );
    dot!(
        /// Pairs of 16-bit integers. The low 16 bits of a sum are those of signed and of unsigned ones.
        PairsOfWords u32:
        |sum, a, b| words(_mm512_dpwssd_epi32(bits(sum), bits(a), bits(b))),
        |a, b| words(_mm512_add_epi32(bits(a), bits(b)))
    );
    dot!(
        /// Fours of 8-bit integers. The low 8 bits of a sum are those of signed and of unsigned ones.
        FoursOfBytes u32:
        |sum, a, b| words(_mm512_dpbusd_epi32(bits(sum), bits(a), bits(b))),
        |a, b| words(_mm512_add_epi32(bits(a), bits(b)))
    );

    /// # Safety
    /// AVX-512 is available.
    #[inline(always)]
    unsafe fn bits(x: __m512) -> __m512i {
        // SAFETY: by this function's contract.
        unsafe { _mm512_castps_si512(x) }
    }

    /// # Safety
    /// AVX-512 is available.
    #[inline(always)]
    unsafe fn words(x: __m512i) -> __m512 {
        // SAFETY: by this function's contract.
        unsafe { _mm512_castsi512_ps(x) }
    }

    /// 16 groups of elements, or sums of their products.
    #[derive(Clone, Copy)]
    pub struct Groups<D>(__m512, PhantomData<D>);

    impl<D> Groups<D> {
        #[inline(always)]
        fn of(F32x16(bits): F32x16) -> Self {
            Self(bits, PhantomData)
        }
    }

    // SAFETY: loads and stores are those of `F32x16`, whatever the bits; the rest is the instruction's.
    unsafe impl<D: Dot> Simd for Groups<D> {
        type E = D::E;
        const LANES: usize = 16;
        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: by the trait's contract.
            Self::of(unsafe { F32x16::zero() })
        }
        #[inline(always)]
        unsafe fn load(from: *const D::E) -> Self {
            // SAFETY: by the trait's contract.
            Self::of(unsafe { F32x16::load(from.cast()) })
        }
        #[inline(always)]
        unsafe fn splat(from: *const D::E) -> Self {
            // SAFETY: by the trait's contract.
            Self::of(unsafe { F32x16::splat(from.cast()) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut D::E) {
            // SAFETY: by the trait's contract.
            unsafe { F32x16(self.0).store(to.cast()) }
        }
        #[inline(always)]
        unsafe fn mul_acc(self, a: Self, b: Self) -> Self {
            // SAFETY: by the trait's contract.
            Self(unsafe { D::dot(self.0, a.0, b.0) }, PhantomData)
        }
        #[inline(always)]
        unsafe fn plus(self, a: Self) -> Self {
            // SAFETY: by the trait's contract.
            Self(unsafe { D::plus(self.0, a.0) }, PhantomData)
        }
        #[inline(always)]
        unsafe fn prefetch(at: *const D::E) {
            // SAFETY: a prefetch of any address is harmless.
            unsafe { F32x16::prefetch(at.cast()) }
        }
        #[inline(always)]
        unsafe fn prefetch_far(at: *const D::E) {
            // SAFETY: a prefetch of any address is harmless.
            unsafe { F32x16::prefetch_far(at.cast()) }
        }
        #[inline(always)]
        unsafe fn load_part(from: *const D::E, n: usize) -> Self {
            // SAFETY: by the trait's contract.
            Self::of(unsafe { F32x16::load_part(from.cast(), n) })
        }
        #[inline(always)]
        unsafe fn store_part(self, to: *mut D::E, n: usize) {
            // SAFETY: by the trait's contract.
            unsafe { F32x16(self.0).store_part(to.cast(), n) }
        }
    }
}
