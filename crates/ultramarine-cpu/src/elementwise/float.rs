//! Ops of float32 and float64.

use super::loops::{binary, marked, rare, unary};
use super::{TileFn, erf32, exp32, float64, log32, pow32, remainder, trig32};
use crate::{dtype::Bool, level::Level};
use ultramarine_abi::schema::{binary as b, unary as u};

/// Operations that both types define in the same way.
macro_rules! common_unary {
    ($level:expr, $code:expr, $t:ident) => {
        match $code {
            u::ABS => unary!($level, $t => $t, |x| x.abs()),
            u::NEGATIVE => unary!($level, $t => $t, |x| -x),
            u::SIGN => unary!($level, $t => $t, |x| {
                let sign = if x > 0.0 { 1.0 } else { 0.0 };
                if x < 0.0 { -1.0 } else { sign }
            }),
            u::CONJUGATE | u::REAL => unary!(once, $t => $t, |x| x),
            u::IMAG => unary!(once, $t => $t, |_x| 0.0),
            u::SQUARE => unary!($level, $t => $t, |x| x * x),
            u::SQRT => unary!($level, $t => $t, |x| x.sqrt()),
            u::RSQRT => unary!($level, $t => $t, |x| 1.0 / x.sqrt()),
            u::RECIPROCAL => unary!($level, $t => $t, |x| 1.0 / x),
            u::FLOOR => unary!($level, $t => $t, |x| x.floor()),
            u::CEIL => unary!($level, $t => $t, |x| x.ceil()),
            u::ROUND => unary!($level, $t => $t, |x| x.round_ties_even()),
            u::TRUNC => unary!($level, $t => $t, |x| x.trunc()),
            u::LOGICAL_NOT => unary!($level, $t => Bool, |x| Bool((x == 0.0) as u8)),
            u::ISNAN => unary!($level, $t => Bool, |x| Bool(x.is_nan() as u8)),
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
            b::MAXIMUM => binary!($level, $t => $t, |x, y| if x > y || x.is_nan() { x } else { y }),
            b::MINIMUM => binary!($level, $t => $t, |x, y| if x < y || x.is_nan() { x } else { y }),
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
                Bool(((x == y) | (x.is_nan() & y.is_nan())) as u8)
            }),
            _ => return None,
        }
    };
}

/// Functions of float32 that vectorise, by module and name.
macro_rules! math_unary {
    ($level:expr, $code:expr, { $($op:ident $module:ident::$name:ident,)* }) => {
        match $code {
            $(u::$op => unary!($level, f32 => f32, |I, x| $module::$name::<I>(x)),)*
            u::SIN => rare!($level, f32, trig32::sin, trig32::is_large, f64::sin),
            u::COS => rare!($level, f32, trig32::cos, trig32::is_large, f64::cos),
            u::TAN => rare!($level, f32, trig32::tan, trig32::is_large, f64::tan),
            _ => common_unary!($level, $code, f32),
        }
    };
}

pub(super) fn unary_f32(level: Level, code: u32) -> Option<TileFn> {
    Some(math_unary!(level, code, {
        EXP exp32::exp,
        EXPM1 exp32::expm1,
        LOG log32::log,
        LOG2 log32::log2,
        LOG10 log32::log10,
        LOG1P log32::log1p,
        ARCSIN trig32::arcsin,
        ARCCOS trig32::arccos,
        ARCTAN trig32::arctan,
        SINH exp32::sinh,
        COSH exp32::cosh,
        TANH exp32::tanh,
        ARCSINH log32::arcsinh,
        ARCCOSH log32::arccosh,
        ARCTANH log32::arctanh,
        ERF erf32::erf,
        ERFINV erf32::erfinv,
        SIGMOID exp32::sigmoid,
    }))
}

/// Functions of float64 that vectorise.
macro_rules! float64_unary {
    ($level:expr, $code:expr, { $($op:ident $name:ident,)* }) => {
        match $code {
            $(u::$op => unary!($level, f64 => f64, |I, x| float64::$name::<I>(x)),)*
            u::SIN => rare!($level, f64, float64::sin, float64::is_large, f64::sin),
            u::COS => rare!($level, f64, float64::cos, float64::is_large, f64::cos),
            u::TAN => rare!($level, f64, float64::tan, float64::is_large, f64::tan),
            _ => common_unary!($level, $code, f64),
        }
    };
}

pub(super) fn unary_f64(level: Level, code: u32) -> Option<TileFn> {
    Some(float64_unary!(level, code, {
        EXP exp,
        EXPM1 expm1,
        LOG log,
        LOG2 log2,
        LOG10 log10,
        LOG1P log1p,
        ARCSIN arcsin,
        ARCCOS arccos,
        ARCTAN arctan,
        SINH sinh,
        COSH cosh,
        TANH tanh,
        ARCSINH arcsinh,
        ARCCOSH arccosh,
        ARCTANH arctanh,
        ERF erf,
        ERFINV erfinv,
        SIGMOID sigmoid,
    }))
}

pub(super) fn binary_f32(level: Level, code: u32) -> Option<TileFn> {
    Some(match code {
        b::REMAINDER => marked!(level, f32, remainder::quick_f32, remainder::slow_f32),
        b::POWER => binary!(level, f32 => f32, |I, x, y| pow32::power::<I>(x, y)),
        b::LOGADDEXP => binary!(level, f32 => f32, |I, x, y| log32::logaddexp::<I>(x, y)),
        b::ARCTAN2 => binary!(level, f32 => f32, |I, x, y| trig32::arctan2::<I>(x, y)),
        _ => common_binary!(level, code, f32),
    })
}

pub(super) fn binary_f64(level: Level, code: u32) -> Option<TileFn> {
    Some(match code {
        b::REMAINDER => marked!(level, f64, remainder::quick_f64, remainder::slow_f64),
        b::POWER => binary!(level, f64 => f64, |I, x, y| float64::power::<I>(x, y)),
        b::LOGADDEXP => binary!(level, f64 => f64, |I, x, y| float64::logaddexp::<I>(x, y)),
        b::ARCTAN2 => binary!(level, f64 => f64, |I, x, y| float64::arctan2::<I>(x, y)),
        _ => common_binary!(level, code, f64),
    })
}
