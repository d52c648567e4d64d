//! Ops of the integers. What does not depend on the sign is compiled once per
//! width, for the unsigned type.

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

/// Division as in Python: rounded down, the remainder has the divisor's sign. By
/// zero the quotient is 0 and the remainder the dividend, and the smallest value by -1
/// wraps: neither may trap.
trait Division {
    fn floor_div(self, y: Self) -> Self;
    fn floor_rem(self, y: Self) -> Self;
}

macro_rules! division {
    ($($unsigned:ident $signed:ident)*) => {$(
        impl Division for $unsigned {
            #[inline(always)]
            fn floor_div(self, y: Self) -> Self {
                if y == 0 { 0 } else { self / y }
            }
            #[inline(always)]
            fn floor_rem(self, y: Self) -> Self {
                if y == 0 { self } else { self % y }
            }
        }
        impl Division for $signed {
            #[inline(always)]
            fn floor_div(self, y: Self) -> Self {
                if y == 0 {
                    return 0;
                }
                let (q, r) = (self.wrapping_div(y), self.wrapping_rem(y));
                if r != 0 && (r ^ y) < 0 { q - 1 } else { q }
            }
            #[inline(always)]
            fn floor_rem(self, y: Self) -> Self {
                if y == 0 {
                    return self;
                }
                let r = self.wrapping_rem(y);
                if r != 0 && (r ^ y) < 0 { r + y } else { r }
            }
        }
    )*};
}
division! { u8 i8 u16 i16 u32 i32 u64 i64 }

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
        // A negative count is a large one.
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
        b::FLOOR_DIVIDE => by_type!(dtype, T => binary!(once, T => T, |x, y| x.floor_div(y))),
        b::REMAINDER => by_type!(dtype, T => binary!(once, T => T, |x, y| x.floor_rem(y))),
        b::POWER if signed(dtype) => by_signed!(dtype, T => binary!(once, T => T, |x, y| {
            if y < 0 { 0 } else { power!(T, x, y) }
        })),
        b::POWER => by_width!(dtype, T => binary!(once, T => T, |x, y| power!(T, x, y))),
        _ => return None,
    })
}
