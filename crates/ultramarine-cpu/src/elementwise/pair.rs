//! A few float32 operations in one pass: `op2(op1(a, b), c)` or `op2(a * b, c * d)`.
//!
//! Sums, differences and products cost less than reading and writing a tile. Consecutive ones are
//! therefore done in one pass. Each is rounded separately, so that the bits equal those of several
//! passes. A constant operand is one vector long, and the result can be streamed past the caches.

use crate::level::Level;
#[cfg(target_arch = "aarch64")]
use core::arch::aarch64 as arch;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64 as arch;

/// An operation on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Arith {
    /// x + y
    Add,
    /// x - y
    Subtract,
    /// y - x
    From,
    /// x * y
    Multiply,
    /// x: no second operation.
    None,
}

impl Arith {
    /// The operation with its operands exchanged.
    pub fn swapped(self) -> Arith {
        match self {
            Arith::Subtract => Arith::From,
            Arith::From => Arith::Subtract,
            same => same,
        }
    }
}

/// Bytes of a constant operand: one element, repeated to fill the widest vector.
pub const CONSTANT: usize = 64;

/// Computes `n` elements. `steps` are 1 for operands of `n` elements and 0 for constants of
/// [`CONSTANT`] bytes. With `stream`, an aligned result bypasses the caches. `dst` may be exactly
/// one of the operands.
pub type PairFn =
    unsafe fn(dst: *mut f32, operands: [*const f32; 4], steps: [usize; 4], n: usize, stream: bool);

/// Vectors of float32.
trait Vector: Copy {
    const LANES: usize;
    /// # Safety
    /// `LANES` elements are readable.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// `LANES` elements are writable.
    unsafe fn store(self, to: *mut f32);
    /// # Safety
    /// `LANES` elements are writable, aligned to the vector.
    unsafe fn stream(self, to: *mut f32);
    /// # Safety
    /// The instruction set is there.
    unsafe fn add(self, other: Self) -> Self;
    /// # Safety
    /// The instruction set is there.
    unsafe fn sub(self, other: Self) -> Self;
    /// # Safety
    /// The instruction set is there.
    unsafe fn mul(self, other: Self) -> Self;
}

/// A single element, for the remainder at the ends, and for machines without vector code here.
impl Vector for f32 {
    const LANES: usize = 1;
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: by the trait's contract.
        unsafe { *from }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: by the trait's contract.
        unsafe { *to = self }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut f32) {
        // SAFETY: by the trait's contract.
        unsafe { *to = self }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self - other
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self * other
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! vector {
    ($t:ident $lanes:literal $load:ident $store:ident $stream:ident $add:ident $sub:ident $mul:ident) => {
        impl Vector for arch::$t {
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: by the trait's contract.
                unsafe { arch::$load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: by the trait's contract.
                unsafe { arch::$store(to, self) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut f32) {
                // SAFETY: by the trait's contract; the caller's loop ends with a fence.
                unsafe { arch::$stream(to, self) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: by the trait's contract.
                unsafe { arch::$add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: by the trait's contract.
                unsafe { arch::$sub(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: by the trait's contract.
                unsafe { arch::$mul(self, other) }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
vector!(__m128 4 _mm_loadu_ps _mm_storeu_ps _mm_stream_ps _mm_add_ps _mm_sub_ps _mm_mul_ps);
#[cfg(target_arch = "x86_64")]
vector!(__m256 8 _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps);
#[cfg(target_arch = "x86_64")]
vector!(__m512 16 _mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps);
// NEON's non-temporal stores come in pairs, for which there is no intrinsic.
#[cfg(target_arch = "aarch64")]
vector!(float32x4_t 4 vld1q_f32 vst1q_f32 vst1q_f32 vaddq_f32 vsubq_f32 vmulq_f32);

/// # Safety
/// The instruction set of `V` is there.
#[inline(always)]
unsafe fn arith<V: Vector, const OP: u8>(x: V, y: V) -> V {
    // SAFETY: by this function's contract.
    unsafe {
        match OP {
            0 => x.add(y),
            1 => x.sub(y),
            2 => y.sub(x),
            3 => x.mul(y),
            _ => x,
        }
    }
}

/// The operands and how far a step of one element takes each.
type Operands = ([*const f32; 4], [usize; 4]);

/// The vector of elements from `i` on.
///
/// # Safety
/// As [`PairFn`], with `i + V::LANES <= n`; the instruction set of `V` is there.
#[inline(always)]
unsafe fn at<V: Vector, const OP1: u8, const OP2: u8, const BOTH: bool>(
    (from, steps): &Operands,
    i: usize,
) -> V {
    // SAFETY: by this function's contract; a constant is read from its start.
    unsafe {
        let load = |k: usize| V::load(from[k].add(i * steps[k]));
        let first = arith::<V, OP1>(load(0), load(1));
        if OP2 == Arith::None as u8 {
            first
        } else if BOTH {
            arith::<V, OP2>(first, load(2).mul(load(3)))
        } else {
            arith::<V, OP2>(first, load(2))
        }
    }
}

/// # Safety
/// As [`PairFn`]; the instruction set of `V` is there.
#[inline(always)]
unsafe fn pass<V: Vector, const OP1: u8, const OP2: u8, const BOTH: bool>(
    dst: *mut f32,
    operands: &Operands,
    n: usize,
    stream: bool,
) {
    // SAFETY: indices stay below n; streaming starts where the address is aligned.
    unsafe {
        let mut i = 0;
        if stream {
            let bytes = V::LANES * size_of::<f32>();
            let lead = dst.align_offset(bytes).min(n);
            while i < lead {
                at::<f32, OP1, OP2, BOTH>(operands, i).store(dst.add(i));
                i += 1;
            }
            while i + 2 * V::LANES <= n {
                let x = at::<V, OP1, OP2, BOTH>(operands, i);
                let y = at::<V, OP1, OP2, BOTH>(operands, i + V::LANES);
                x.stream(dst.add(i));
                y.stream(dst.add(i + V::LANES));
                i += 2 * V::LANES;
            }
        } else {
            while i + 4 * V::LANES <= n {
                // All vectors are loaded before they are stored, so in place works.
                for k in 0..4 {
                    let x = at::<V, OP1, OP2, BOTH>(operands, i + k * V::LANES);
                    x.store(dst.add(i + k * V::LANES));
                }
                i += 4 * V::LANES;
            }
        }
        while i + V::LANES <= n {
            at::<V, OP1, OP2, BOTH>(operands, i).store(dst.add(i));
            i += V::LANES;
        }
        while i < n {
            at::<f32, OP1, OP2, BOTH>(operands, i).store(dst.add(i));
            i += 1;
        }
    }
}

macro_rules! compiled {
    ($name:ident, $vector:ty $(, $feature:literal)?) => {
        /// # Safety
        /// As [`PairFn`]; the instruction set of the level is there.
        $(#[target_feature(enable = $feature)])?
        unsafe fn $name<const OP1: u8, const OP2: u8, const BOTH: bool>(
            dst: *mut f32,
            operands: [*const f32; 4],
            steps: [usize; 4],
            n: usize,
            stream: bool,
        ) {
            // SAFETY: passed on from the caller.
            unsafe { pass::<$vector, OP1, OP2, BOTH>(dst, &(operands, steps), n, stream) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
compiled!(v4, arch::__m512, "avx512f,avx512vl,avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled!(v3, arch::__m256, "avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled!(baseline, arch::__m128);
#[cfg(target_arch = "aarch64")]
compiled!(baseline, arch::float32x4_t);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compiled!(baseline, f32);

macro_rules! table {
    ($f:ident, $first:expr, $second:expr, $($one:literal)*) => {
        match $first as u8 {
            $($one => table!(@ $f, $one, $second, 0 1 2 3 4),)*
            _ => return None,
        }
    };
    (@ $f:ident, $one:literal, $second:expr, $($two:literal)*) => {
        match $second as u8 {
            $($two => $f::<$one, $two, false> as PairFn,)*
            _ => return None,
        }
    };
}

/// The function for two operations; `first` must be one.
pub fn lookup(level: Level, first: Arith, second: Arith) -> Option<PairFn> {
    Some(match level {
        #[cfg(target_arch = "x86_64")]
        Level::V4 | Level::Amx => table!(v4, first, second, 0 1 2 3),
        #[cfg(target_arch = "x86_64")]
        Level::V3 => table!(v3, first, second, 0 1 2 3),
        _ => table!(baseline, first, second, 0 1 2 3),
    })
}

/// The function for the sum or difference of two products.
pub fn products(level: Level, second: Arith) -> Option<PairFn> {
    const MULTIPLY: u8 = Arith::Multiply as u8;
    macro_rules! of {
        ($f:ident) => {
            match second {
                Arith::Add => $f::<MULTIPLY, 0, true> as PairFn,
                Arith::Subtract => $f::<MULTIPLY, 1, true> as PairFn,
                Arith::From => $f::<MULTIPLY, 2, true> as PairFn,
                _ => return None,
            }
        };
    }
    Some(match level {
        #[cfg(target_arch = "x86_64")]
        Level::V4 | Level::Amx => of!(v4),
        #[cfg(target_arch = "x86_64")]
        Level::V3 => of!(v3),
        _ => of!(baseline),
    })
}
