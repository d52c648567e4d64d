//! Vectors of keys, and the operations that sorting needs.

use core::arch::x86_64::*;

/// A key that is sorted in vectors of [`Lane::N`].
///
/// # Safety
/// The methods may only run if AVX-512 (x86-64-v4) is available. Pointers are valid for the stated
/// number of keys.
#[allow(clippy::missing_safety_doc, missing_docs)]
pub unsafe trait Lane: Copy + Ord + Send + Sync + 'static {
    /// A vector.
    type V: Copy;
    /// Keys in a vector: 8 or 16.
    const N: usize;
    /// The largest key.
    const MAX: Self;
    /// Every lane.
    const ALL: u32 = (1 << Self::N) - 1;

    unsafe fn splat(self) -> Self::V;
    unsafe fn load(from: *const Self) -> Self::V;
    unsafe fn store(to: *mut Self, v: Self::V);
    /// The first `n` keys, then [`Lane::MAX`].
    unsafe fn load_some(from: *const Self, n: usize) -> Self::V;
    /// The first `n` keys.
    unsafe fn store_some(to: *mut Self, v: Self::V, n: usize);
    unsafe fn lower(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn higher(a: Self::V, b: Self::V) -> Self::V;
    /// Lane `i` of the result is lane `i ^ X`.
    unsafe fn across<const X: i64>(v: Self::V) -> Self::V;
    /// The larger keys in the lanes whose index has bit `BIT` set, the smaller keys in the others.
    unsafe fn parted<const BIT: usize>(a: Self::V, b: Self::V) -> Self::V;
    /// Lanes of `a` and `b`, alternating.
    unsafe fn riffle(a: Self::V, b: Self::V) -> (Self::V, Self::V);
    /// Lanes in which `a <= b`.
    unsafe fn at_most(a: Self::V, b: Self::V) -> u32;
    /// Lanes in which `a < b`.
    unsafe fn below(a: Self::V, b: Self::V) -> u32;
    /// The lanes of `front` first, then the others.
    unsafe fn split(v: Self::V, front: u32) -> Self::V;
    /// Stores the lanes of a mask consecutively.
    unsafe fn pack(to: *mut Self, v: Self::V, lanes: u32);
}

/// Lane indices, twice: from `N - n` on they rotate lanes up by `n`.
static ROTATION32: [u32; 32] = {
    let mut rotation = [0; 32];
    let mut i = 0;
    while i < 32 {
        rotation[i] = i as u32 % 16;
        i += 1;
    }
    rotation
};
static ROTATION64: [u64; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7];

/// Lanes whose index has a bit of `bit`.
const fn upper(bit: usize) -> u32 {
    let (mut mask, mut i) = (0, 0);
    while i < 16 {
        if i & bit != 0 {
            mask |= 1 << i;
        }
        i += 1;
    }
    mask
}

/// Calls of instructions, whose safety is the trait's.
macro_rules! lane {
    ($key:ty, $mask:ty, $n:expr, $indices:expr, $low:expr, $high:expr, $rotation:ident;
     $splat:ident $loadu:ident $storeu:ident $loads:ident $stores:ident $min:ident $max:ident
     $max_in:ident $permute:ident $permute2:ident $le:ident $lt:ident $compress:ident
     $compress_in:ident $pack:ident) => {
        // SAFETY: the methods do what the trait says, with instructions that it asks for.
        unsafe impl Lane for $key {
            type V = __m512i;
            const N: usize = $n;
            const MAX: Self = <$key>::MAX;

            #[inline(always)]
            unsafe fn splat(self) -> __m512i {
                // SAFETY: by the trait's contract, as in all that follows.
                unsafe { $splat(self as _) }
            }
            #[inline(always)]
            unsafe fn load(from: *const Self) -> __m512i {
                // SAFETY: as above.
                unsafe { $loadu(from.cast()) }
            }
            #[inline(always)]
            unsafe fn store(to: *mut Self, v: __m512i) {
                // SAFETY: as above.
                unsafe { $storeu(to.cast(), v) }
            }
            #[inline(always)]
            unsafe fn load_some(from: *const Self, n: usize) -> __m512i {
                // SAFETY: as above; masked lanes are not touched.
                unsafe { $loads(_mm512_set1_epi32(-1), ((1u32 << n) - 1) as $mask, from.cast()) }
            }
            #[inline(always)]
            unsafe fn store_some(to: *mut Self, v: __m512i, n: usize) {
                // SAFETY: as above.
                unsafe { $stores(to.cast(), ((1u32 << n) - 1) as $mask, v) }
            }
            #[inline(always)]
            unsafe fn lower(a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: as above.
                unsafe { $min(a, b) }
            }
            #[inline(always)]
            unsafe fn higher(a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: as above.
                unsafe { $max(a, b) }
            }
            #[inline(always)]
            unsafe fn across<const X: i64>(v: __m512i) -> __m512i {
                // SAFETY: as above.
                unsafe {
                    let x = const { $indices.map_xor(X) };
                    $permute(core::mem::transmute::<[$key; $n], __m512i>(x), v)
                }
            }
            #[inline(always)]
            unsafe fn parted<const BIT: usize>(a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: as above.
                unsafe { $max_in($min(a, b), const { upper(BIT) } as $mask, a, b) }
            }
            #[inline(always)]
            unsafe fn riffle(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
                // SAFETY: as above; the arrays have the size of a vector.
                unsafe {
                    let low = core::mem::transmute::<[$key; $n], __m512i>($low);
                    let high = core::mem::transmute::<[$key; $n], __m512i>($high);
                    ($permute2(a, low, b), $permute2(a, high, b))
                }
            }
            #[inline(always)]
            unsafe fn at_most(a: __m512i, b: __m512i) -> u32 {
                // SAFETY: as above.
                unsafe { $le(a, b) as u32 }
            }
            #[inline(always)]
            unsafe fn below(a: __m512i, b: __m512i) -> u32 {
                // SAFETY: as above.
                unsafe { $lt(a, b) as u32 }
            }
            #[inline(always)]
            unsafe fn split(v: __m512i, front: u32) -> __m512i {
                // SAFETY: as above; a mask has at most `N` lanes.
                unsafe {
                    let back = $compress(!front as $mask, v);
                    let rotation = $rotation.as_ptr().add(Self::N - front.count_ones() as usize);
                    let back = $permute($loadu(rotation.cast()), back);
                    $compress_in(back, front as $mask, v)
                }
            }
            #[inline(always)]
            unsafe fn pack(to: *mut Self, v: __m512i, lanes: u32) {
                // SAFETY: as above.
                unsafe { $pack(to.cast(), lanes as $mask, v) }
            }
        }
    };
}

/// The lane indices of a vector.
struct Indices<T>(T);
impl Indices<[u32; 16]> {
    const fn map_xor(self, x: i64) -> [u32; 16] {
        let (mut to, mut i) = (self.0, 0);
        while i < 16 {
            to[i] ^= x as u32;
            i += 1;
        }
        to
    }
}
impl Indices<[u64; 8]> {
    const fn map_xor(self, x: i64) -> [u64; 8] {
        let (mut to, mut i) = (self.0, 0);
        while i < 8 {
            to[i] ^= x as u64;
            i += 1;
        }
        to
    }
}

lane! {
    u32, u16, 16,
    Indices([0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
    [0u32, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23],
    [8u32, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31], ROTATION32;
    _mm512_set1_epi32 _mm512_loadu_epi32 _mm512_storeu_epi32
    _mm512_mask_loadu_epi32 _mm512_mask_storeu_epi32 _mm512_min_epu32 _mm512_max_epu32
    _mm512_mask_max_epu32 _mm512_permutexvar_epi32 _mm512_permutex2var_epi32
    _mm512_cmple_epu32_mask _mm512_cmplt_epu32_mask _mm512_maskz_compress_epi32
    _mm512_mask_compress_epi32 _mm512_mask_compressstoreu_epi32
}
lane! {
    u64, u8, 8,
    Indices([0u64, 1, 2, 3, 4, 5, 6, 7]),
    [0u64, 8, 1, 9, 2, 10, 3, 11],
    [4u64, 12, 5, 13, 6, 14, 7, 15], ROTATION64;
    _mm512_set1_epi64 _mm512_loadu_epi64 _mm512_storeu_epi64
    _mm512_mask_loadu_epi64 _mm512_mask_storeu_epi64 _mm512_min_epu64 _mm512_max_epu64
    _mm512_mask_max_epu64 _mm512_permutexvar_epi64 _mm512_permutex2var_epi64
    _mm512_cmple_epu64_mask _mm512_cmplt_epu64_mask _mm512_maskz_compress_epi64
    _mm512_mask_compress_epi64 _mm512_mask_compressstoreu_epi64
}
