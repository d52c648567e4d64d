//! Operations of integers. Operations that do not depend on signedness are compiled once per width,
//! for the unsigned type.

use super::TileFn;
use super::loops::{binary, unary};
use crate::dtype::{Bool, DType};
use crate::level::Level;
use ultramarine_abi::schema::{binary as b, unary as u};

/// Evaluates `$e` with `$t` bound to the unsigned type of the dtype's width.
macro_rules! by_width {
    ($dtype:expr, $t:ident => $e:expr) => {
        match $dtype.size() {
            1 => { type $t = u8; $e }
            2 => { type $t = u16; $e }
            4 => { type $t = u32; $e }
            _ => { type $t = u64; $e }
        }
    };
}

/// Evaluates `$e` with `$t` bound to the dtype's type.
macro_rules! by_type {
    ($dtype:expr, $t:ident => $e:expr) => {
        match $dtype {
            DType::U8 => {
                type $t = u8;
                $e
            }
            DType::U16 => {
                type $t = u16;
                $e
            }
            DType::U32 => {
                type $t = u32;
                $e
            }
            DType::U64 => {
                type $t = u64;
                $e
            }
            _ => by_signed!($dtype, $t => $e),
        }
    };
}

/// Operations that differ for signed types.
macro_rules! by_signed {
    ($dtype:expr, $t:ident => $e:expr) => {
        match $dtype {
            DType::I8 => {
                type $t = i8;
                $e
            }
            DType::I16 => {
                type $t = i16;
                $e
            }
            DType::I32 => {
                type $t = i32;
                $e
            }
            _ => {
                type $t = i64;
                $e
            }
        }
    };
}

/// Division as in Python: the quotient is rounded down, and the remainder has the divisor's sign.
/// Two cases must not trap: for a divisor of zero, the quotient is 0 and the remainder is the
/// dividend; and the smallest value divided by -1 wraps.
trait Division: Sized {
    /// Quotient and remainder.
    fn floor_div_rem(self, y: Self) -> (Self, Self);
}

/// Division in floating point, which vectorises. The quotient is rounded to the nearest integer by
/// a sum whose low bits hold it. If the quotient is one too large, the remainder is negative.
macro_rules! division {
    ($($t:ident $signed:ident $float:ident $magic:literal)*) => {$(
        impl Division for $t {
            #[inline(always)]
            fn floor_div_rem(self, y: Self) -> (Self, Self) {
                let nearest = (self as $float / y as $float + $magic).to_bits() as $t;
                let rest = self.wrapping_sub(nearest.wrapping_mul(y));
                let below = $t::MIN == 0 && (rest as $signed) < 0;
                let differ = $t::MIN != 0 && (rest != 0) & ((rest ^ y) as $signed).is_negative();
                let one = (below | differ) as $t;
                let (q, r) = (nearest.wrapping_sub(one), rest.wrapping_add(one.wrapping_mul(y)));
                if y == 0 { (0, self) } else { (q, r) }
            }
        }
    )*};
}
// 1.5 * 2^23 and 1.5 * 2^52.
division! {
    u8 i8 f32 12_582_912.0
    i8 i8 f32 12_582_912.0
    u16 i16 f32 12_582_912.0
    i16 i16 f32 12_582_912.0
    u32 i32 f64 6_755_399_441_055_744.0
    i32 i32 f64 6_755_399_441_055_744.0
}

impl Division for u64 {
    #[inline(always)]
    fn floor_div_rem(self, y: Self) -> (Self, Self) {
        (self.checked_div(y).unwrap_or(0), self.checked_rem(y).unwrap_or(self))
    }
}

impl Division for i64 {
    #[inline(always)]
    fn floor_div_rem(self, y: Self) -> (Self, Self) {
        if y == 0 {
            return (0, self);
        }
        let (q, r) = (self.wrapping_div(y), self.wrapping_rem(y));
        if r != 0 && (r ^ y) < 0 { (q - 1, r + y) } else { (q, r) }
    }
}

/// x^y by squaring, modulo the width.
macro_rules! power {
    ($t:ident, $x:expr, $y:expr) => {{
        let (mut base, mut e, mut product) = ($x, $y, 1 as $t);
        while e != 0 {
            if e & 1 == 1 {
                product = product.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            e >>= 1;
        }
        product
    }};
}

fn signed(dtype: DType) -> bool {
    dtype >= DType::I8
}

pub(super) fn unary(level: Level, code: u32, dtype: DType) -> Option<TileFn> {
    Some(match code {
        u::ABS if signed(dtype) => {
            by_signed!(dtype, T => unary!(narrow level, T => T, |x| x.wrapping_abs()))
        }
        u::SIGN if signed(dtype) => {
            by_signed!(dtype, T => unary!(narrow level, T => T, |x| x.signum()))
        }
        u::SIGN => by_width!(dtype, T => unary!(narrow level, T => T, |x| (x != 0) as T)),
        u::NEGATIVE => by_width!(dtype, T => unary!(narrow level, T => T, |x| x.wrapping_neg())),
        u::SQUARE => by_width!(dtype, T => unary!(narrow level, T => T, |x| x.wrapping_mul(x))),
        u::BITWISE_INVERT => by_width!(dtype, T => unary!(narrow level, T => T, |x| !x)),
        u::ABS | u::FLOOR | u::CEIL | u::ROUND | u::TRUNC | u::CONJUGATE | u::REAL => {
            by_width!(dtype, T => unary!(narrow level, T => T, |x| x))
        }
        u::IMAG => by_width!(dtype, T => unary!(once, T => T, |_x| 0)),
        u::LOGICAL_NOT => {
            by_width!(dtype, T => unary!(narrow level, T => Bool, |x| Bool((x == 0) as u8)))
        }
        u::ISNAN | u::ISINF => {
            by_width!(dtype, T => unary!(once, T => Bool, |_x| Bool(0)))
        }
        u::ISFINITE => by_width!(dtype, T => unary!(once, T => Bool, |_x| Bool(1))),
        _ => return None,
    })
}

pub(super) fn binary(level: Level, code: u32, dtype: DType) -> Option<TileFn> {
    // 64-bit division is scalar; vector code would have to extract the elements.
    let divided = if dtype.size() == 8 { Level::Baseline } else { level };
    Some(match code {
        b::ADD => by_width!(dtype, T => binary!(narrow level, T => T, |x, y| x.wrapping_add(y))),
        b::SUBTRACT => {
            by_width!(dtype, T => binary!(narrow level, T => T, |x, y| x.wrapping_sub(y)))
        }
        b::MULTIPLY => {
            by_width!(dtype, T => binary!(narrow level, T => T, |x, y| x.wrapping_mul(y)))
        }
        b::BITWISE_AND => by_width!(dtype, T => binary!(narrow level, T => T, |x, y| x & y)),
        b::BITWISE_OR => by_width!(dtype, T => binary!(narrow level, T => T, |x, y| x | y)),
        b::BITWISE_XOR => by_width!(dtype, T => binary!(narrow level, T => T, |x, y| x ^ y)),
        // A negative count is treated as a large one.
        b::LEFT_SHIFT => by_width!(dtype, T => binary!(narrow level, T => T, |x, y| {
            let bits = T::BITS as T;
            if y < bits { x << (y & (bits - 1)) } else { 0 }
        })),
        b::RIGHT_SHIFT if signed(dtype) => {
            by_signed!(dtype, T => binary!(narrow level, T => T, |x, y| {
                let last = (T::BITS - 1) as T;
                x >> if (0..=last).contains(&y) { y } else { last }
            }))
        }
        b::RIGHT_SHIFT => by_width!(dtype, T => binary!(narrow level, T => T, |x, y| {
            let bits = T::BITS as T;
            if y < bits { x >> (y & (bits - 1)) } else { 0 }
        })),
        b::EQUAL | b::EQUAL_NAN => {
            by_width!(dtype, T => binary!(narrow level, T => Bool, |x, y| Bool((x == y) as u8)))
        }
        b::NOT_EQUAL => {
            by_width!(dtype, T => binary!(narrow level, T => Bool, |x, y| Bool((x != y) as u8)))
        }
        b::LOGICAL_AND => by_width!(dtype, T => binary!(narrow level, T => Bool, |x, y| {
            Bool((x != 0) as u8 & (y != 0) as u8)
        })),
        b::LOGICAL_OR => {
            by_width!(dtype, T => binary!(narrow level, T => Bool, |x, y| Bool(((x | y) != 0) as u8)))
        }
        b::LESS => {
            by_type!(dtype, T => binary!(narrow level, T => Bool, |x, y| Bool((x < y) as u8)))
        }
        b::LESS_EQUAL => {
            by_type!(dtype, T => binary!(narrow level, T => Bool, |x, y| Bool((x <= y) as u8)))
        }
        b::GREATER => {
            by_type!(dtype, T => binary!(narrow level, T => Bool, |x, y| Bool((x > y) as u8)))
        }
        b::GREATER_EQUAL => {
            by_type!(dtype, T => binary!(narrow level, T => Bool, |x, y| Bool((x >= y) as u8)))
        }
        b::MAXIMUM => by_type!(dtype, T => binary!(narrow level, T => T, |x, y| x.max(y))),
        b::MINIMUM => by_type!(dtype, T => binary!(narrow level, T => T, |x, y| x.min(y))),
        b::FLOOR_DIVIDE => {
            by_type!(dtype, T => binary!(divided, T => T, |x, y| x.floor_div_rem(y).0))
        }
        b::REMAINDER => {
            by_type!(dtype, T => binary!(divided, T => T, |x, y| x.floor_div_rem(y).1))
        }
        b::POWER if signed(dtype) => by_signed!(dtype, T => binary!(once, T => T, |x, y| {
            if y < 0 { 0 } else { power!(T, x, y) }
        })),
        b::POWER => by_width!(dtype, T => binary!(once, T => T, |x, y| power!(T, x, y))),
        _ => return None,
    })
}
