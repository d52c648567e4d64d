//! Operations of complex64. All but the simplest are evaluated in float64, which cannot overflow
//! for float32 inputs, and are rounded once. Branch cuts and signs of zeros are those of C99.

use super::loops::{Binary, Unary, binary, binary_fn, unary, unary_fn};
use super::{TileFn, complex64_lanes as l, complex64_math as m};
use crate::dtype::{Bool, c64};
use crate::level::{Isa, Level};
use std::f64::consts::{LN_2, LN_10};
use ultramarine_abi::schema::{binary as b, unary as u};

#[inline(always)]
fn is_nan(z: c64) -> bool {
    z.re.is_nan() | z.im.is_nan()
}

/// Compares by real part, then by imaginary part. False if a part that decides is NaN.
#[inline(always)]
fn less(x: c64, y: c64) -> bool {
    (x.re < y.re) | ((x.re == y.re) & (x.im < y.im))
}

#[inline(always)]
fn less_equal(x: c64, y: c64) -> bool {
    (x.re < y.re) | ((x.re == y.re) & (x.im <= y.im))
}

#[inline(always)]
fn equal(x: c64, y: c64) -> bool {
    (x.re == y.re) & (x.im == y.im)
}

#[inline(always)]
fn multiply(x: c64, y: c64) -> c64 {
    c64 { re: x.re * y.re - x.im * y.im, im: x.re * y.im + x.im * y.re }
}

/// Functions of one complex number, by name.
macro_rules! library {
    ($code:expr, { $($op:ident $f:ident,)* }, $else:expr) => {
        match $code {
            $(u::$op => unary!(once, c64 => c64, |z| m::$f(z.into()).into()),)*
            _ => $else,
        }
    };
}

/// A vectorised function that leaves the elements for which `$is_rare` holds to the scalar
/// function.
macro_rules! lanes {
    ($level:expr, |$i:ident, $z:ident| $f:expr, $is_rare:path, $slow:ident) => {{
        struct Op;
        impl Unary for Op {
            type A = c64;
            type D = c64;
            const RARE: bool = true;
            #[inline(always)]
            fn f<$i: Isa>($z: c64) -> c64 {
                $f
            }
            #[inline(always)]
            fn is_rare(z: c64) -> bool {
                $is_rare(z)
            }
            #[inline(never)]
            fn rare(z: c64) -> c64 {
                m::$slow(z.into()).into()
            }
        }
        unary_fn::levels::<Op>($level)
    }};
}

pub(super) fn unary(level: Level, code: u32) -> Option<TileFn> {
    Some(library!(code, {
        RSQRT rsqrt,
        SIGN sign,
        LOG1P log1p,
        ARCSIN arcsin,
        ARCCOS arccos,
        ARCTAN arctan,
        ARCSINH arcsinh,
        ARCCOSH arccosh,
        ARCTANH arctanh,
    }, match code {
        u::SQRT => lanes!(level, |_I, z| l::sqrt(z), l::is_special, sqrt),
        u::RECIPROCAL => lanes!(level, |_I, z| {
            m::quotient(c64 { re: 1.0, im: 0.0 }.into(), z.into()).into()
        }, l::is_special, reciprocal),
        u::EXP => lanes!(level, |I, z| l::exp::<I>(z), l::is_large, exp),
        u::LOG => lanes!(level, |I, z| l::log::<I>(z, 1.0), l::is_special, log),
        u::LOG2 => lanes!(level, |I, z| l::log::<I>(z, 1.0 / LN_2), l::is_special, log2),
        u::LOG10 => lanes!(level, |I, z| l::log::<I>(z, 1.0 / LN_10), l::is_special, log10),
        u::SIN => lanes!(level, |I, z| l::sin::<I>(z), l::is_large_turned, sin),
        u::COS => lanes!(level, |I, z| l::cos::<I>(z), l::is_large_turned, cos),
        u::TAN => lanes!(level, |I, z| l::tan::<I>(z), l::is_large_turned, tan),
        u::SINH => lanes!(level, |I, z| l::sinh::<I>(z), l::is_large, sinh),
        u::COSH => lanes!(level, |I, z| l::cosh::<I>(z), l::is_large, cosh),
        u::TANH => lanes!(level, |I, z| l::tanh::<I>(z), l::is_large, tanh),
        u::ABS => unary!(level, c64 => f32, |z| {
            let (re, im) = (z.re as f64, z.im as f64);
            let infinite = (z.re.abs() == f32::INFINITY) | (z.im.abs() == f32::INFINITY);
            if infinite { f32::INFINITY } else { (re * re + im * im).sqrt() as f32 }
        }),
        u::NEGATIVE => unary!(narrow level, c64 => c64, |z| c64 { re: -z.re, im: -z.im }),
        u::CONJUGATE => unary!(narrow level, c64 => c64, |z| c64 { re: z.re, im: -z.im }),
        u::SQUARE => unary!(level, c64 => c64, |z| multiply(z, z)),
        u::REAL => unary!(narrow level, c64 => f32, |z| z.re),
        u::IMAG => unary!(narrow level, c64 => f32, |z| z.im),
        u::ROUND => unary!(narrow level, c64 => c64, |z| {
            c64 { re: z.re.round_ties_even(), im: z.im.round_ties_even() }
        }),
        u::LOGICAL_NOT => unary!(narrow level, c64 => Bool, |z| {
            Bool(((z.re == 0.0) & (z.im == 0.0)) as u8)
        }),
        u::ISNAN => unary!(narrow level, c64 => Bool, |z| Bool(is_nan(z) as u8)),
        u::ISINF => unary!(narrow level, c64 => Bool, |z| {
            Bool(((z.re.abs() == f32::INFINITY) | (z.im.abs() == f32::INFINITY)) as u8)
        }),
        u::ISFINITE => unary!(narrow level, c64 => Bool, |z| {
            Bool(((z.re.abs() < f32::INFINITY) & (z.im.abs() < f32::INFINITY)) as u8)
        }),
        _ => return None,
    }))
}

pub(super) fn binary(level: Level, code: u32) -> Option<TileFn> {
    Some(match code {
        b::ADD => binary!(narrow level, c64 => c64, |x, y| {
            c64 { re: x.re + y.re, im: x.im + y.im }
        }),
        b::SUBTRACT => binary!(narrow level, c64 => c64, |x, y| {
            c64 { re: x.re - y.re, im: x.im - y.im }
        }),
        b::MULTIPLY => binary!(level, c64 => c64, |x, y| multiply(x, y)),
        // MLX does not floor complex quotients.
        b::DIVIDE | b::FLOOR_DIVIDE => {
            struct Op;
            impl Binary for Op {
                type A = c64;
                type D = c64;
                const RARE: bool = true;
                #[inline(always)]
                fn f<I: Isa>(x: c64, y: c64) -> c64 {
                    m::quotient(x.into(), y.into()).into()
                }
                #[inline(always)]
                fn is_rare(z: c64) -> bool {
                    z.re.is_nan() & z.im.is_nan()
                }
                #[inline(never)]
                fn rare(x: c64, y: c64) -> c64 {
                    m::divide(x.into(), y.into()).into()
                }
            }
            binary_fn::levels::<Op>(level)
        }
        b::POWER => binary!(once, c64 => c64, |x, y| m::power(x.into(), y.into()).into()),
        b::LOGADDEXP => binary!(once, c64 => c64, |x, y| {
            let (high, low) = if less(y, x) { (x, y) } else { (y, x) };
            m::logaddexp(high.into(), low.into()).into()
        }),
        b::MAXIMUM => binary!(narrow level, c64 => c64, |x, y| {
            if less(y, x) | is_nan(x) { x } else { y }
        }),
        b::MINIMUM => binary!(narrow level, c64 => c64, |x, y| {
            if less(x, y) | is_nan(x) { x } else { y }
        }),
        b::EQUAL => binary!(narrow level, c64 => Bool, |x, y| Bool(equal(x, y) as u8)),
        b::NOT_EQUAL => binary!(narrow level, c64 => Bool, |x, y| Bool(!equal(x, y) as u8)),
        b::EQUAL_NAN => binary!(narrow level, c64 => Bool, |x, y| {
            Bool((equal(x, y) | (is_nan(x) & is_nan(y))) as u8)
        }),
        b::LESS => binary!(narrow level, c64 => Bool, |x, y| Bool(less(x, y) as u8)),
        b::LESS_EQUAL => binary!(narrow level, c64 => Bool, |x, y| Bool(less_equal(x, y) as u8)),
        b::GREATER => binary!(narrow level, c64 => Bool, |x, y| Bool(less(y, x) as u8)),
        b::GREATER_EQUAL => binary!(narrow level, c64 => Bool, |x, y| Bool(less_equal(y, x) as u8)),
        b::LOGICAL_AND => binary!(narrow level, c64 => Bool, |x, y| {
            let (x, y) = ((x.re != 0.0) | (x.im != 0.0), (y.re != 0.0) | (y.im != 0.0));
            Bool((x & y) as u8)
        }),
        b::LOGICAL_OR => binary!(narrow level, c64 => Bool, |x, y| {
            let (x, y) = ((x.re != 0.0) | (x.im != 0.0), (y.re != 0.0) | (y.im != 0.0));
            Bool((x | y) as u8)
        }),
        _ => return None,
    })
}
