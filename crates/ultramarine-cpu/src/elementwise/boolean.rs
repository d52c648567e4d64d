//! Ops of bool: bytes that are 0 or 1.

use super::TileFn;
use super::loops::{binary, unary};
use crate::{dtype::Bool, level::Level};
use ultramarine_abi::schema::{binary as b, unary as u};

pub(super) fn unary(level: Level, code: u32) -> Option<TileFn> {
    Some(match code {
        u::LOGICAL_NOT | u::BITWISE_INVERT => unary!(level, Bool => Bool, |x| Bool(x.0 ^ 1)),
        u::ABS
        | u::SIGN
        | u::SQUARE
        | u::FLOOR
        | u::CEIL
        | u::ROUND
        | u::TRUNC
        | u::CONJUGATE
        | u::REAL => unary!(level, Bool => Bool, |x| x),
        u::ISNAN | u::ISINF | u::IMAG => unary!(level, Bool => Bool, |_x| Bool(0)),
        u::ISFINITE => unary!(level, Bool => Bool, |_x| Bool(1)),
        _ => return None,
    })
}

pub(super) fn binary(level: Level, code: u32) -> Option<TileFn> {
    Some(match code {
        b::ADD | b::MAXIMUM | b::LOGICAL_OR | b::BITWISE_OR => {
            binary!(level, Bool => Bool, |x, y| Bool(x.0 | y.0))
        }
        b::MULTIPLY | b::MINIMUM | b::LOGICAL_AND | b::BITWISE_AND | b::FLOOR_DIVIDE => {
            binary!(level, Bool => Bool, |x, y| Bool(x.0 & y.0))
        }
        b::SUBTRACT | b::NOT_EQUAL | b::BITWISE_XOR => {
            binary!(level, Bool => Bool, |x, y| Bool(x.0 ^ y.0))
        }
        b::EQUAL | b::EQUAL_NAN => binary!(level, Bool => Bool, |x, y| Bool(x.0 ^ y.0 ^ 1)),
        b::LESS => binary!(level, Bool => Bool, |x, y| Bool(!x.0 & y.0)),
        b::GREATER | b::REMAINDER => binary!(level, Bool => Bool, |x, y| Bool(x.0 & !y.0)),
        b::LESS_EQUAL => binary!(level, Bool => Bool, |x, y| Bool((x.0 ^ 1) | y.0)),
        b::GREATER_EQUAL | b::POWER => binary!(level, Bool => Bool, |x, y| Bool(x.0 | (y.0 ^ 1))),
        _ => return None,
    })
}
