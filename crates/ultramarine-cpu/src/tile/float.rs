//! Ops of float32 and float64.

use super::{
    TileFn, exp32 as m32,
    loops::{binary, unary},
};
use crate::{dtype::Bool, level::Level};
use ultramarine_abi::schema::{binary as b, unary as u};

/// Ops that both types have in the same words.
macro_rules! common_unary {
    ($level:expr, $code:expr, $t:ident) => {
        match $code {
            u::ABS => unary!($level, $t => $t, |x| x.abs()),
            u::NEGATIVE => unary!($level, $t => $t, |x| -x),
            u::SQUARE => unary!($level, $t => $t, |x| x * x),
            u::SQRT => unary!($level, $t => $t, |x| x.sqrt()),
            u::RSQRT => unary!($level, $t => $t, |x| 1.0 / x.sqrt()),
            u::RECIPROCAL => unary!($level, $t => $t, |x| 1.0 / x),
            u::FLOOR => unary!($level, $t => $t, |x| x.floor()),
            u::CEIL => unary!($level, $t => $t, |x| x.ceil()),
            u::ROUND => unary!($level, $t => $t, |x| x.round_ties_even()),
            u::TRUNC => unary!($level, $t => $t, |x| x.trunc()),
            u::LOGICAL_NOT => unary!($level, $t => Bool, |x| Bool((x == 0.0) as u8)),
            u::ISNAN => unary!($level, $t => Bool, |x| Bool((x != x) as u8)),
            u::ISINF => unary!($level, $t => Bool, |x| Bool((x.abs() == $t::INFINITY) as u8)),
            u::ISFINITE => unary!($level, $t => Bool, |x| Bool((x.abs() < $t::INFINITY) as u8)),
            _ => return None,
        }
    };
}

macro_rules! common_binary {
    ($level:expr, $code:expr, $t:ident) => {
        match $code {
            b::ADD => binary!($level, $t => $t, |x, y| x + y),
            b::SUBTRACT => binary!($level, $t => $t, |x, y| x - y),
            b::MULTIPLY => binary!($level, $t => $t, |x, y| x * y),
            b::DIVIDE => binary!($level, $t => $t, |x, y| x / y),
            b::FLOOR_DIVIDE => binary!($level, $t => $t, |x, y| (x / y).floor()),
            b::REMAINDER => binary!(once, $t => $t, |x, y| {
                let r = x % y;
                if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
            }),
            b::MAXIMUM => binary!($level, $t => $t, |x, y| if x > y || x != x { x } else { y }),
            b::MINIMUM => binary!($level, $t => $t, |x, y| if x < y || x != x { x } else { y }),
            b::EQUAL => binary!($level, $t => Bool, |x, y| Bool((x == y) as u8)),
            b::NOT_EQUAL => binary!($level, $t => Bool, |x, y| Bool((x != y) as u8)),
            b::LESS => binary!($level, $t => Bool, |x, y| Bool((x < y) as u8)),
            b::LESS_EQUAL => binary!($level, $t => Bool, |x, y| Bool((x <= y) as u8)),
            b::GREATER => binary!($level, $t => Bool, |x, y| Bool((x > y) as u8)),
            b::GREATER_EQUAL => binary!($level, $t => Bool, |x, y| Bool((x >= y) as u8)),
            b::LOGICAL_AND => binary!($level, $t => Bool, |x, y| {
                Bool(((x != 0.0) & (y != 0.0)) as u8)
            }),
            b::LOGICAL_OR => binary!($level, $t => Bool, |x, y| {
                Bool(((x != 0.0) | (y != 0.0)) as u8)
            }),
            b::EQUAL_NAN => binary!($level, $t => Bool, |x, y| {
                Bool(((x == y) | ((x != x) & (y != y))) as u8)
            }),
            _ => return None,
        }
    };
}

pub(super) fn unary_f32(level: Level, code: u32) -> Option<TileFn> {
    Some(match code {
        u::EXP => unary!(level, f32 => f32, |I, x| m32::exp::<I>(x)),
        u::TANH => unary!(level, f32 => f32, |I, x| m32::tanh::<I>(x)),
        _ => common_unary!(level, code, f32),
    })
}

pub(super) fn unary_f64(level: Level, code: u32) -> Option<TileFn> {
    Some(match code {
        u::EXP => unary!(once, f64 => f64, |x| x.exp()),
        u::TANH => unary!(once, f64 => f64, |x| x.tanh()),
        _ => common_unary!(level, code, f64),
    })
}

pub(super) fn binary_f32(level: Level, code: u32) -> Option<TileFn> {
    Some(common_binary!(level, code, f32))
}

pub(super) fn binary_f64(level: Level, code: u32) -> Option<TileFn> {
    Some(common_binary!(level, code, f64))
}
