//! Decodes elements of few bits to float32 numbers, a vector at a time.

use crate::matmul::simd::{Portable, Simd};

/// The meaning of an element's bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer from 0 on.
    Integer,
    /// Sign, two bits of exponent, one of mantissa.
    E2m1,
    /// Sign, four bits of exponent, three of mantissa.
    E4m3,
    /// Eight bits of exponent.
    E8m0,
}

pub const INTEGER: u8 = Kind::Integer as u8;
pub const E2M1: u8 = Kind::E2m1 as u8;
pub const E4M3: u8 = Kind::E4m3 as u8;
pub const E8M0: u8 = Kind::E8m0 as u8;

/// Largest number of lanes of a vector. This many elements begin at a byte, whatever their number of bits, and fit 16
/// bytes.
pub const MOST: usize = 16;
/// Bytes that are read for a vector, even if its elements take fewer.
pub const READ: usize = 16;

/// The positions of the bits of a vector's elements.
#[derive(Clone, Copy)]
pub struct Bits {
    pub kind: Kind,
    /// Bits of an element.
    pub size: usize,
    /// For each lane, four bytes from the element's first byte on; 0x80 for bytes beyond [`READ`].
    bytes: [u8; 4 * MOST],
    /// For each lane, the element's first bit in these bytes.
    shifts: [u32; MOST],
    mask: u32,
}

impl Bits {
    pub fn new(kind: Kind, size: usize) -> Bits {
        let byte = |i: usize| {
            let at = i / 4 * size / 8 + i % 4;
            if at < READ { at as u8 } else { 0x80 }
        };
        Bits {
            kind,
            size,
            bytes: core::array::from_fn(byte),
            shifts: core::array::from_fn(|lane| (lane * size % 8) as u32),
            mask: (1 << size) - 1,
        }
    }

    /// Bytes of a vector's elements.
    #[inline(always)]
    pub fn step(&self, lanes: usize) -> usize {
        lanes * self.size / 8
    }
}

/// E2M1 numbers without sign.
pub const SIZES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The E2M1 number of the lowest four bits.
#[inline(always)]
fn e2m1(code: u32) -> f32 {
    let size = SIZES[(code & 7) as usize];
    f32::from_bits(size.to_bits() | (code & 8) << 28)
}

/// An E4M3 number.
#[inline(always)]
pub fn e4m3(code: u8) -> f32 {
    let code = u32::from(code);
    // With exponent and mantissa moved to float32's positions, the number is the value times 2^-120, including
    // subnormals.
    let size = f32::from_bits((code & 0x7f) << 20) * f32::from_bits((127 + 120) << 23);
    let size = if code & 0x7f == 0x7f { f32::NAN } else { size };
    f32::from_bits(size.to_bits() | (code & 0x80) << 24)
}

/// 2^-127, which is subnormal in float32.
const E8M0_LEAST: u32 = 1 << 22;

/// A power of two. Code 255 gives infinity.
#[inline(always)]
pub fn e8m0(code: u8) -> f32 {
    f32::from_bits(if code == 0 { E8M0_LEAST } else { u32::from(code) << 23 })
}

/// Vectors that elements are decoded to.
///
/// # Safety
/// As [`Simd`].
#[allow(clippy::missing_safety_doc)]
pub unsafe trait Decode: Simd<E = f32> {
    /// The elements that begin at `from`, where [`READ`] bytes are readable.
    unsafe fn decode<const KIND: u8>(from: *const u8, bits: &Bits) -> Self;
    /// The sum of the lanes.
    unsafe fn sum(self) -> f32;
}

// SAFETY: plain Rust; reads what the trait promises.
unsafe impl<const L: usize> Decode for Portable<f32, L> {
    #[inline(always)]
    unsafe fn decode<const KIND: u8>(from: *const u8, bits: &Bits) -> Self {
        // SAFETY: by the trait's contract.
        let bytes = unsafe { from.cast::<[u8; READ]>().read_unaligned() };
        Portable(core::array::from_fn(|lane| {
            let at = lane * bits.size / 8;
            let word = u32::from(bytes[at]) | u32::from(bytes[(at + 1) % READ]) << 8;
            let code = word >> bits.shifts[lane] & bits.mask;
            match KIND {
                INTEGER => code as f32,
                E2M1 => e2m1(code),
                E8M0 => e8m0(code as u8),
                _ => e4m3(code as u8),
            }
        }))
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        self.0.iter().sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Bits, Decode, E2M1, E4M3, E8M0, E8M0_LEAST, INTEGER, SIZES};
    use crate::matmul::simd::x86::{F32x8, F32x16};
    use core::arch::x86_64::*;

    /// Exponent that E4M3 bits in float32's places lack.
    const E4M3_BIAS: i32 = 120 << 23;
    /// The smallest normal E4M3 number. Subnormal numbers get its exponent, and the value that this adds is subtracted,
    /// because processors are slow with subnormal numbers.
    const E4M3_NORMAL: f32 = 0.015625;

    // SAFETY: AVX-512 (F, BW, DQ, VL) is the trait's condition on callers.
    unsafe impl Decode for F32x16 {
        #[inline(always)]
        unsafe fn decode<const KIND: u8>(from: *const u8, bits: &Bits) -> Self {
            // SAFETY: by the trait's contract; the tables have a vector's size.
            unsafe {
                let bytes = _mm_loadu_si128(from.cast());
                let codes = if KIND == E4M3 || KIND == E8M0 {
                    _mm512_cvtepu8_epi32(bytes)
                } else {
                    let places = _mm512_loadu_si512(bits.bytes.as_ptr().cast());
                    let words = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), places);
                    _mm512_srlv_epi32(words, _mm512_loadu_si512(bits.shifts.as_ptr().cast()))
                };
                F32x16(match KIND {
                    INTEGER => {
                        let mask = _mm512_set1_epi32(bits.mask as i32);
                        _mm512_cvtepi32_ps(_mm512_and_si512(codes, mask))
                    }
                    E2M1 => {
                        // The lowest four bits count.
                        let half = _mm256_loadu_ps(SIZES.as_ptr());
                        let minus = _mm256_xor_ps(half, _mm256_set1_ps(-0.0));
                        let table = _mm512_insertf32x8::<1>(_mm512_castps256_ps512(half), minus);
                        _mm512_permutexvar_ps(codes, table)
                    }
                    E8M0 => {
                        let zero = _mm512_testn_epi32_mask(codes, codes);
                        let least = _mm512_set1_epi32(E8M0_LEAST as i32);
                        let number = _mm512_slli_epi32::<23>(codes);
                        _mm512_castsi512_ps(_mm512_mask_blend_epi32(zero, number, least))
                    }
                    _ => {
                        let size = _mm512_and_si512(codes, _mm512_set1_epi32(0x7f));
                        let small = _mm512_cmplt_epi32_mask(size, _mm512_set1_epi32(8));
                        let none = _mm512_cmpeq_epi32_mask(size, _mm512_set1_epi32(0x7f));
                        let number = _mm512_add_epi32(
                            _mm512_slli_epi32::<20>(size),
                            _mm512_mask_blend_epi32(
                                small,
                                _mm512_set1_epi32(E4M3_BIAS),
                                _mm512_set1_epi32(E4M3_BIAS + (1 << 23)),
                            ),
                        );
                        let number = _mm512_castsi512_ps(number);
                        let number =
                            _mm512_mask_sub_ps(number, small, number, _mm512_set1_ps(E4M3_NORMAL));
                        let sign = _mm512_slli_epi32::<24>(_mm512_andnot_si512(
                            _mm512_set1_epi32(0x7f),
                            codes,
                        ));
                        let number = _mm512_mask_blend_ps(none, number, _mm512_set1_ps(f32::NAN));
                        _mm512_or_ps(number, _mm512_castsi512_ps(sign))
                    }
                })
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: by the trait's contract.
            unsafe { _mm512_reduce_add_ps(self.0) }
        }
    }

    // SAFETY: AVX2 and FMA are the trait's condition on callers.
    unsafe impl Decode for F32x8 {
        #[inline(always)]
        unsafe fn decode<const KIND: u8>(from: *const u8, bits: &Bits) -> Self {
            // SAFETY: by the trait's contract; the tables have two vectors' size.
            unsafe {
                let bytes = _mm_loadu_si128(from.cast());
                let codes = if KIND == E4M3 || KIND == E8M0 {
                    _mm256_cvtepu8_epi32(bytes)
                } else {
                    let places = _mm256_loadu_si256(bits.bytes.as_ptr().cast());
                    let words = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), places);
                    let shifts = _mm256_loadu_si256(bits.shifts.as_ptr().cast());
                    let codes = _mm256_srlv_epi32(words, shifts);
                    _mm256_and_si256(codes, _mm256_set1_epi32(bits.mask as i32))
                };
                F32x8(match KIND {
                    INTEGER => _mm256_cvtepi32_ps(codes),
                    E2M1 => {
                        // The lowest three bits count.
                        let size = _mm256_permutevar8x32_ps(_mm256_loadu_ps(SIZES.as_ptr()), codes);
                        let sign = _mm256_andnot_si256(_mm256_set1_epi32(7), codes);
                        _mm256_or_ps(size, _mm256_castsi256_ps(_mm256_slli_epi32::<28>(sign)))
                    }
                    E8M0 => {
                        let zero = _mm256_cmpeq_epi32(codes, _mm256_setzero_si256());
                        let least = _mm256_set1_epi32(E8M0_LEAST as i32);
                        let number = _mm256_slli_epi32::<23>(codes);
                        _mm256_castsi256_ps(_mm256_blendv_epi8(number, least, zero))
                    }
                    _ => {
                        let size = _mm256_and_si256(codes, _mm256_set1_epi32(0x7f));
                        let small = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), size);
                        let none = _mm256_cmpeq_epi32(size, _mm256_set1_epi32(0x7f));
                        let more = _mm256_and_si256(small, _mm256_set1_epi32(1 << 23));
                        let bias = _mm256_add_epi32(_mm256_set1_epi32(E4M3_BIAS), more);
                        let number = _mm256_add_epi32(_mm256_slli_epi32::<20>(size), bias);
                        let less =
                            _mm256_and_ps(_mm256_castsi256_ps(small), _mm256_set1_ps(E4M3_NORMAL));
                        let number = _mm256_sub_ps(_mm256_castsi256_ps(number), less);
                        let sign = _mm256_slli_epi32::<24>(_mm256_andnot_si256(
                            _mm256_set1_epi32(0x7f),
                            codes,
                        ));
                        let number = _mm256_blendv_ps(
                            number,
                            _mm256_set1_ps(f32::NAN),
                            _mm256_castsi256_ps(none),
                        );
                        _mm256_or_ps(number, _mm256_castsi256_ps(sign))
                    }
                })
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: by the trait's contract.
            unsafe {
                let half =
                    _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
                _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)))
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{Bits, Decode, E2M1, E8M0, INTEGER, e4m3, e8m0};
    use crate::matmul::neon::F32x8;
    use core::arch::aarch64::*;

    // SAFETY: every AArch64 that this is compiled for has NEON.
    unsafe impl Decode for F32x8 {
        #[inline(always)]
        unsafe fn decode<const KIND: u8>(from: *const u8, bits: &Bits) -> Self {
            // SAFETY: by the trait's contract; the tables have four registers' size, of which two are read.
            unsafe {
                let bytes = vld1q_u8(from);
                F32x8(core::array::from_fn(|half| {
                    let places = vld1q_u8(bits.bytes.as_ptr().add(16 * half));
                    let words = vreinterpretq_u32_u8(vqtbl1q_u8(bytes, places));
                    let shifts = vld1q_u32(bits.shifts.as_ptr().add(4 * half));
                    // A left shift by a negative count is a right shift.
                    let codes = vshlq_u32(words, vnegq_s32(vreinterpretq_s32_u32(shifts)));
                    let codes = vandq_u32(codes, vdupq_n_u32(bits.mask));
                    if KIND == INTEGER {
                        return vcvtq_f32_u32(codes);
                    }
                    let mut lanes = [0; 4];
                    vst1q_u32(lanes.as_mut_ptr(), codes);
                    let numbers = lanes.map(|code| match KIND {
                        E2M1 => e2m1(code),
                        E8M0 => e8m0(code as u8),
                        _ => e4m3(code as u8),
                    });
                    vld1q_f32(numbers.as_ptr())
                }))
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: NEON is there.
            unsafe { vaddvq_f32(vaddq_f32(self.0[0], self.0[1])) }
        }
    }

    /// Decodes an E2M1 number without a table. With exponent and mantissa moved to float32's positions, the number is
    /// the value times 2^-126, including subnormals, which are not slower on these processors.
    #[inline(always)]
    fn e2m1(code: u32) -> f32 {
        let size = f32::from_bits((code & 7) << 22) * f32::from_bits((127 + 126) << 23);
        f32::from_bits(size.to_bits() | (code & 8) << 28)
    }
}

/// A row's bytes. A whole vector can be read at every position; the end of the row is read from a copy.
pub struct Row {
    data: *const u8,
    /// From this offset on, the copy is read.
    tail: usize,
    copy: [u8; 2 * READ],
}

impl Row {
    /// The bytes from `data` on, of whole vectors of `step` bytes each.
    ///
    /// # Safety
    /// There are `bytes` of them.
    #[inline(always)]
    pub unsafe fn new(data: *const u8, bytes: usize, step: usize) -> Row {
        // The first vector that reads beyond the end.
        let tail = if bytes < READ { 0 } else { (bytes - READ) / step * step + step };
        let mut copy = [0; 2 * READ];
        if tail < bytes {
            // SAFETY: less than READ bytes from the tail on.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    data.wrapping_add(tail),
                    copy.as_mut_ptr(),
                    bytes - tail,
                )
            };
        }
        Row { data, tail, copy }
    }

    /// Where the vector at a byte is read.
    #[inline(always)]
    pub fn at(&self, byte: usize) -> *const u8 {
        match byte < self.tail {
            true => self.data.wrapping_add(byte),
            false => self.copy.as_ptr().wrapping_add(byte - self.tail),
        }
    }
}
