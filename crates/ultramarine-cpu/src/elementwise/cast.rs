//! Conversions between dtypes.
//!
//! * To bool: not equal to zero (complex: either part).
//! * Integers wrap. Integers to floating point round to nearest even.
//! * float16 and bfloat16 convert from and to everything through float32 (so
//!   float64 and large integers round twice, as in MLX).
//! * Floating point to integers truncates. Narrow integers take the low bits of
//!   the int32, so -1.0 is 255 as uint8. Out of range of int32 or int64, and for
//!   NaN, the value is the smallest integer (what x86 gives, and MLX on it);
//!   unsigned integers of those widths take `x - 2^(w-1)` that way, with the
//!   highest bit flipped, where x >= 2^(w-1).
//! * Complex to real drops the imaginary part; real to complex has it zero.

use super::{TileFn, half, loops::unary};
use crate::dtype::{Bool, DType, c64};
use crate::level::Level;

/// Truncation to a signed integer. The module's documentation describes values out of range.
trait Truncate {
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_u32(self) -> u32;
    fn to_u64(self) -> u64;
}

macro_rules! truncate {
    ($($t:ident)*) => {$(
        impl Truncate for $t {
            #[inline(always)]
            fn to_i32(self) -> i32 {
                if self < 2_147_483_648.0 && self > -2_147_483_649.0 {
                    // SAFETY: the comparison above ensures that the value is in range, and so not
                    // NaN. The plain saturating conversion does not vectorise.
                    unsafe { self.to_int_unchecked() }
                } else {
                    i32::MIN
                }
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&self) {
                    // SAFETY: as above.
                    unsafe { self.to_int_unchecked() }
                } else {
                    i64::MIN
                }
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                let high = self >= 2_147_483_648.0;
                let low = if high { self - 2_147_483_648.0 } else { self }.to_i32() as u32;
                if high { low ^ (1 << 31) } else { low }
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                let high = self >= 9_223_372_036_854_775_808.0;
                let low = if high { self - 9_223_372_036_854_775_808.0 } else { self };
                let low = low.to_i64() as u64;
                if high { low ^ (1 << 63) } else { low }
            }
        }
    )*};
}
truncate! { f32 f64 }

/// From an integer or bool type.
macro_rules! from_int {
    ($level:expr, $to:expr, $t:ty, |$x:ident| $v:expr) => {
        match $to {
            DType::U8 | DType::I8 => unary!(narrow $level, $t => u8, |$x| $v as u8),
            DType::U16 | DType::I16 => unary!(narrow $level, $t => u16, |$x| $v as u16),
            DType::U32 | DType::I32 => unary!(narrow $level, $t => u32, |$x| $v as u32),
            DType::U64 | DType::I64 => unary!(narrow $level, $t => u64, |$x| $v as u64),
            DType::F32 => unary!($level, $t => f32, |$x| $v as f32),
            DType::F64 => unary!($level, $t => f64, |$x| $v as f64),
            DType::C64 => unary!(narrow $level, $t => c64, |$x| c64 { re: $v as f32, im: 0.0 }),
            DType::Bool => unary!(narrow $level, $t => Bool, |$x| Bool(($v != 0) as u8)),
            DType::F16 | DType::BF16 => half::cast_to($level, from::<$t>(), $to),
        }
    };
}

/// From a floating type.
macro_rules! from_float {
    ($level:expr, $to:expr, $t:ty, |$x:ident| $v:expr, $bool:expr) => {
        match $to {
            DType::U8 | DType::I8 => unary!($level, $t => u8, |$x| $v.to_i32() as u8),
            DType::U16 | DType::I16 => unary!($level, $t => u16, |$x| $v.to_i32() as u16),
            DType::I32 => unary!($level, $t => i32, |$x| $v.to_i32()),
            DType::U32 => unary!($level, $t => u32, |$x| $v.to_u32()),
            DType::I64 => unary!($level, $t => i64, |$x| $v.to_i64()),
            DType::U64 => unary!($level, $t => u64, |$x| $v.to_u64()),
            DType::F32 => unary!($level, $t => f32, |$x| $v as f32),
            DType::F64 => unary!($level, $t => f64, |$x| $v as f64),
            DType::C64 => unary!(narrow $level, $t => c64, |$x| c64 { re: $v as f32, im: 0.0 }),
            DType::Bool => unary!($level, $t => Bool, |$x| Bool($bool as u8)),
            DType::F16 | DType::BF16 => half::cast_to($level, from::<$t>(), $to),
        }
    };
}

fn from<T: crate::dtype::Element>() -> DType {
    T::DTYPE
}

/// A copy of elements of `size` bytes.
fn copy(size: usize) -> TileFn {
    /// # Safety
    /// As for [`TileFn`].
    unsafe fn entry<const SIZE: usize>(
        dst: *mut u8,
        a: *const u8,
        _: *const u8,
        _: *const u8,
        n: usize,
    ) {
        // SAFETY: n elements each; `copy` allows dst to be a.
        unsafe { std::ptr::copy(a, dst, n * SIZE) }
    }
    match size {
        1 => entry::<1>,
        2 => entry::<2>,
        4 => entry::<4>,
        _ => entry::<8>,
    }
}

/// The function that converts `from` to `to`.
pub(super) fn function(level: Level, from_dtype: DType, to: DType) -> Option<TileFn> {
    let both_int = from_dtype.is_int() && to.is_int();
    if from_dtype == to || both_int && from_dtype.size() == to.size() {
        return Some(copy(to.size()));
    }
    // Narrowing integers does not depend on signedness.
    let narrowing = both_int && from_dtype.size() > to.size() || to == DType::Bool;
    let from_dtype = match from_dtype {
        DType::I16 if narrowing => DType::U16,
        DType::I32 if narrowing => DType::U32,
        DType::I64 if narrowing => DType::U64,
        DType::I8 if narrowing => DType::U8,
        other => other,
    };
    Some(match from_dtype {
        DType::Bool => from_int!(level, to, Bool, |x| x.0),
        DType::U8 => from_int!(level, to, u8, |x| x),
        DType::U16 => from_int!(level, to, u16, |x| x),
        DType::U32 => from_int!(level, to, u32, |x| x),
        DType::U64 => from_int!(level, to, u64, |x| x),
        DType::I8 => from_int!(level, to, i8, |x| x),
        DType::I16 => from_int!(level, to, i16, |x| x),
        DType::I32 => from_int!(level, to, i32, |x| x),
        DType::I64 => from_int!(level, to, i64, |x| x),
        DType::F32 => from_float!(level, to, f32, |x| x, x != 0.0),
        DType::F64 => from_float!(level, to, f64, |x| x, x != 0.0),
        DType::C64 => from_float!(level, to, c64, |x| x.re, (x.re != 0.0) | (x.im != 0.0)),
        DType::F16 | DType::BF16 => half::cast_from(level, from_dtype, to),
    })
}
