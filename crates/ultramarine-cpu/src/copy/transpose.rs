//! Copies transposed rectangles by square blocks in registers. Every cache line of the source is read once, and every
//! line of the target is written once (if a vector is a line).
//!
//! A block of `n` vectors of `n` elements is transposed by log2(n) rounds of
//! interleaving vector `i` with vector `i + n/2`: each round moves the top bit of
//! an element's row number to the bottom of its column number.

use super::strided::Rect;
use crate::level::{self, Body, Isa, Level};

/// Smallest number of rows and columns for which blocks are worthwhile.
pub const LEAST: usize = 8;

/// Bytes of the rows and columns of a patch, which is finished before the next one begins. A patch touches few enough
/// pages for the first-level TLB.
const PATCH: usize = 256;

/// Side of the square tiles that are best for copying rectangles with crossing layouts.
pub const fn side(size: usize) -> usize {
    let side = PATCH / size;
    if side < 64 { 64 } else { side }
}

/// Copies a rectangle whose source has adjacent columns into one with adjacent row elements.
///
/// # Safety
/// As [`super::strided::copy`]; `to.columns` and `from.rows` are an element's size.
pub unsafe fn copy<T: Element>(
    level: Level,
    to: Rect,
    from: Rect,
    rows: usize,
    columns: usize,
    stream: bool,
) {
    level::at(level, Blocks::<T> { to, from, rows, columns, stream, element: [] })
}

struct Blocks<T> {
    to: Rect,
    from: Rect,
    rows: usize,
    columns: usize,
    stream: bool,
    element: [T; 0],
}

impl<T: Element> Body for Blocks<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let _ = self.element;
        match I::LEVEL {
            #[cfg(target_arch = "x86_64")]
            Level::V4 | Level::Amx => self.patches::<T::V4>(),
            #[cfg(target_arch = "x86_64")]
            Level::V3 => self.patches::<T::V3>(),
            _ => self.patches::<T::Baseline>(),
        }
    }
}

impl<T: Element> Blocks<T> {
    #[inline(always)]
    fn patches<V: Vector>(&self) {
        // Partial lines would be written to memory one by one.
        let line = self.stream
            && size_of::<V>() == 64
            && (self.to.data as usize | self.to.rows as usize).is_multiple_of(size_of::<V>());
        let patch = side(size_of::<T>());
        for r in (0..self.rows).step_by(patch) {
            for c in (0..self.columns).step_by(patch) {
                let (nr, nc) = (patch.min(self.rows - r), patch.min(self.columns - c));
                if line {
                    self.patch::<V, true>(r, c, nr, nc);
                } else {
                    self.patch::<V, false>(r, c, nr, nc);
                }
            }
        }
    }

    #[inline(always)]
    fn target(&self, r: usize, c: usize) -> *mut T {
        let row = self.to.data.wrapping_offset(r as isize * self.to.rows);
        row.wrapping_add(c * size_of::<T>()) as *mut T
    }

    #[inline(always)]
    fn source(&self, r: usize, c: usize) -> *const T {
        let column = self.from.data.wrapping_offset(c as isize * self.from.columns);
        column.wrapping_add(r * size_of::<T>()) as *const T
    }

    #[inline(always)]
    fn patch<V: Vector, const STREAM: bool>(&self, r0: usize, c0: usize, nr: usize, nc: usize) {
        let side = V::LANES;
        let (whole_r, whole_c) = (nr / side * side, nc / side * side);
        for r in (r0..r0 + whole_r).step_by(side) {
            for c in (c0..c0 + whole_c).step_by(side) {
                // SAFETY: a block of side * side elements within the rectangles; the
                // vector's features are those of the level; lines are aligned if
                // they are streamed.
                unsafe {
                    V::block::<STREAM>(
                        self.target(r, c) as *mut u8,
                        self.to.rows,
                        self.source(r, c) as *const u8,
                        self.from.columns,
                    )
                };
            }
        }
        let rest = |rows: core::ops::Range<usize>, columns: core::ops::Range<usize>| {
            for c in columns {
                for r in rows.clone() {
                    // SAFETY: within the rectangles.
                    unsafe { *self.target(r, c) = *self.source(r, c) };
                }
            }
        };
        rest(r0..r0 + whole_r, c0 + whole_c..c0 + nc);
        rest(r0 + whole_r..r0 + nr, c0..c0 + nc);
    }
}

/// A vector of elements of one size.
pub trait Vector: Copy {
    /// Elements; the side of a block.
    const LANES: usize;

    /// Transposes a block of `LANES` vectors.
    ///
    /// # Safety
    /// Both blocks are valid; `to` is aligned to the vector if `STREAM`; the
    /// machine has the vector's instructions.
    unsafe fn block<const STREAM: bool>(
        to: *mut u8,
        to_row: isize,
        from: *const u8,
        from_row: isize,
    );
}

/// An unsigned integer of the size of an element, with its vectors.
pub trait Element: Copy + Default + 'static {
    /// Vector of a level.
    type Baseline: Vector;
    /// Vector of a level.
    #[cfg(target_arch = "x86_64")]
    type V3: Vector;
    /// Vector of a level.
    #[cfg(target_arch = "x86_64")]
    type V4: Vector;
}

/// Vectors of a register with its instructions: loads, stores, stores past the caches, and the interleaved lower and upper halves of
/// two.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! vectors {
    ($($name:ident: $register:ident, $lanes:literal, $rounds:literal, $load:ident, $store:ident, $stream:ident,
        |$a:ident, $b:ident| $low:expr, $high:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub struct $name(#[allow(dead_code)] $register);
        impl Vector for $name {
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn block<const STREAM: bool>(
                to: *mut u8,
                to_row: isize,
                from: *const u8,
                from_row: isize,
            ) {
                // SAFETY: by the contract of `Vector::block`.
                unsafe {
                    let mut x: [$register; $lanes] = core::array::from_fn(|i| {
                        $load(from.wrapping_offset(i as isize * from_row) as *const _)
                    });
                    for _ in 0..$rounds {
                        let old = x;
                        for i in 0..$lanes / 2 {
                            let ($a, $b) = (old[i], old[i + $lanes / 2]);
                            x[2 * i] = $low;
                            x[2 * i + 1] = $high;
                        }
                    }
                    for (i, v) in x.into_iter().enumerate() {
                        let place = to.wrapping_offset(i as isize * to_row);
                        if STREAM {
                            $stream(place as *mut _, v);
                        } else {
                            $store(place as *mut _, v);
                        }
                    }
                }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Element, Vector};
    use core::arch::x86_64::*;

    /// Indices that interleave the lower or upper halves of two vectors of `N`.
    macro_rules! interleave {
        ($t:ty, $n:literal, $from:expr) => {{
            const INDEX: [$t; $n] = {
                let mut index = [0; $n];
                let mut i = 0;
                while i < $n {
                    index[i] = ($from + i / 2 + i % 2 * $n) as $t;
                    i += 1;
                }
                index
            };
            _mm512_loadu_si512(INDEX.as_ptr() as *const __m512i)
        }};
    }

    vectors! {
        X8: __m128i, 16, 4, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128,
            |a, b| _mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b);
        X16: __m128i, 8, 3, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128,
            |a, b| _mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b);
        X32: __m128i, 4, 2, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128,
            |a, b| _mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b);
        X64: __m128i, 2, 1, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128,
            |a, b| _mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b);
        Y32: __m256i, 8, 3, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256,
            |a, b| _mm256_permute2x128_si256::<0x20>(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)),
            _mm256_permute2x128_si256::<0x31>(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        Y64: __m256i, 4, 2, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256,
            |a, b| _mm256_permute2x128_si256::<0x20>(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)),
            _mm256_permute2x128_si256::<0x31>(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
        Z16: __m512i, 32, 5, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512,
            |a, b| _mm512_permutex2var_epi16(a, interleave!(u16, 32, 0), b),
            _mm512_permutex2var_epi16(a, interleave!(u16, 32, 16), b);
        Z32: __m512i, 16, 4, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512,
            |a, b| _mm512_permutex2var_epi32(a, interleave!(u32, 16, 0), b),
            _mm512_permutex2var_epi32(a, interleave!(u32, 16, 8), b);
        Z64: __m512i, 8, 3, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512,
            |a, b| _mm512_permutex2var_epi64(a, interleave!(u64, 8, 0), b),
            _mm512_permutex2var_epi64(a, interleave!(u64, 8, 4), b);
    }

    macro_rules! elements {
        ($($t:ty: $baseline:ty, $v3:ty, $v4:ty;)*) => {$(
            impl Element for $t {
                type Baseline = $baseline;
                type V3 = $v3;
                type V4 = $v4;
            }
        )*};
    }
    elements! { u8: X8, X8, X8; u16: X16, X16, Z16; u32: X32, Y32, Z32; u64: X64, Y64, Z64; }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{Element, Vector};
    use core::arch::aarch64::*;

    vectors! {
        Q8: uint8x16_t, 16, 4, vld1q_u8, vst1q_u8, vst1q_u8, |a, b| vzip1q_u8(a, b), vzip2q_u8(a, b);
        Q16: uint16x8_t, 8, 3, vld1q_u16, vst1q_u16, vst1q_u16, |a, b| vzip1q_u16(a, b), vzip2q_u16(a, b);
        Q32: uint32x4_t, 4, 2, vld1q_u32, vst1q_u32, vst1q_u32, |a, b| vzip1q_u32(a, b), vzip2q_u32(a, b);
        Q64: uint64x2_t, 2, 1, vld1q_u64, vst1q_u64, vst1q_u64, |a, b| vzip1q_u64(a, b), vzip2q_u64(a, b);
    }

    macro_rules! elements {
        ($($t:ty: $baseline:ty;)*) => {$(
            impl Element for $t {
                type Baseline = $baseline;
            }
        )*};
    }
    elements! { u8: Q8; u16: Q16; u32: Q32; u64: Q64; }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod portable {
    use super::{Element, Vector};

    impl<T: Copy> Vector for [T; 8] {
        const LANES: usize = 8;
        #[inline(always)]
        unsafe fn block<const STREAM: bool>(
            to: *mut u8,
            to_row: isize,
            from: *const u8,
            from_row: isize,
        ) {
            for c in 0..8 {
                for r in 0..8 {
                    // SAFETY: by the contract of `Vector::block`.
                    unsafe {
                        *(to.wrapping_offset(r * to_row) as *mut T).add(c) =
                            *(from.wrapping_offset(c as isize * from_row) as *const T)
                                .add(r as usize);
                    }
                }
            }
        }
    }
    macro_rules! elements {
        ($($t:ty)*) => {$(
            impl Element for $t {
                type Baseline = [$t; 8];
            }
        )*};
    }
    elements! { u8 u16 u32 u64 }
}
