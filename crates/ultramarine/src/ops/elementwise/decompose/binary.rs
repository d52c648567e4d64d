//! Functions of two arrays.

use crate::{
    array::Array,
    dtype::{Dtype, Kind},
    error::Result,
    ops::{
        rules::{
            builders::{bin, like, un},
            decomposition::{
                Decompose, Ways, bits, complex, int, pairs, parts, signed, unpaired, wider,
            },
        },
        select::where_,
    },
    scalar::Scalar,
};
use ultramarine_abi::schema::{binary::*, unary};

/// The ways of a function of a code of [`binary`]; the operands have one shape and dtype.
pub(crate) fn ways(code: u32, d: &Decompose<'_>, ways: &mut Ways) {
    let (a, b) = (&d.inputs[0], &d.inputs[1]);
    let dtype = a.dtype();
    // A floored quotient of halves is rounded before it is floored.
    if let Some(wide) = wider(dtype).filter(|w| !(w.is_inexact() && code == FLOOR_DIVIDE)) {
        ways.add(bin(code, &a.astype(wide), &b.astype(wide)).map(|r| r.astype(d.dtype)));
    }
    comparisons(code, a, b, ways);
    match dtype.kind() {
        Kind::Bool => truth(code, a, b, ways),
        Kind::Signed | Kind::Unsigned => integer(code, a, b, ways),
        // Halves round once: an identity of several roundings is none of theirs.
        Kind::Floating if dtype.size() > 2 || single_rounding(code) => floating(code, a, b, ways),
        Kind::Floating => {}
        Kind::Complex => of_parts(code, a, b, ways),
        // Refused where the operation is called.
        Kind::Storage => {}
    }
}

/// Whether the identities of a code round no more than the function.
fn single_rounding(code: u32) -> bool {
    matches!(code, ADD | SUBTRACT | MAXIMUM | MINIMUM | FLOOR_DIVIDE)
}

/// What holds for numbers of all kinds, NaN included.
fn comparisons(code: u32, a: &Array, b: &Array, ways: &mut Ways) {
    let either = |x: u32, y: u32| bin(LOGICAL_OR, &bin(x, a, b)?, &bin(y, a, b)?);
    let not = |x: u32| bin(x, a, b).map(|r| un(unary::LOGICAL_NOT, &r));
    let ordered = !a.dtype().is_inexact();
    match code {
        EQUAL => {
            ways.add(not(NOT_EQUAL));
            if !a.dtype().is_complex() {
                let between = bin(LESS_EQUAL, a, b)
                    .and_then(|l| bin(LOGICAL_AND, &l, &bin(GREATER_EQUAL, a, b)?));
                ways.add(between);
            }
        }
        NOT_EQUAL => ways.add(not(EQUAL)),
        LESS => ways.add(bin(GREATER, b, a)),
        GREATER => ways.add(bin(LESS, b, a)),
        LESS_EQUAL => {
            ways.add(bin(GREATER_EQUAL, b, a));
            if ordered {
                ways.add(not(GREATER));
            }
            ways.add(either(LESS, EQUAL));
        }
        GREATER_EQUAL => {
            ways.add(bin(LESS_EQUAL, b, a));
            if ordered {
                ways.add(not(LESS));
            }
            ways.add(either(GREATER, EQUAL));
        }
        EQUAL_NAN if ordered => ways.add(bin(EQUAL, a, b)),
        EQUAL_NAN => ways.add(equal_nan(a, b)),
        MAXIMUM => ways.add(extreme(GREATER, a, b)),
        MINIMUM => ways.add(extreme(LESS, a, b)),
        _ => {}
    }
}

fn equal_nan(a: &Array, b: &Array) -> Result<Array> {
    let nan = |x: &Array| bin(NOT_EQUAL, x, x);
    bin(LOGICAL_OR, &bin(EQUAL, a, b)?, &bin(LOGICAL_AND, &nan(a)?, &nan(b)?)?)
}

/// `a` where it is beyond `b` or NaN, else `b`.
fn extreme(beyond: u32, a: &Array, b: &Array) -> Result<Array> {
    let mut first = bin(beyond, a, b)?;
    if a.dtype().is_inexact() {
        first = bin(LOGICAL_OR, &first, &bin(NOT_EQUAL, a, a)?)?;
    }
    where_(&first, a, b)
}

fn truth(code: u32, a: &Array, b: &Array, ways: &mut Ways) {
    let (yes, no) = (Array::scalar(true), Array::scalar(false));
    let not = |x: &Array| un(unary::LOGICAL_NOT, x);
    // Functions that are one and the same, or the same of the other's complement.
    let names: &[u32] = match code {
        LOGICAL_AND | BITWISE_AND | MULTIPLY | MINIMUM | FLOOR_DIVIDE => {
            &[LOGICAL_AND, BITWISE_AND, MULTIPLY, MINIMUM]
        }
        LOGICAL_OR | BITWISE_OR | ADD | MAXIMUM => &[LOGICAL_OR, BITWISE_OR, MAXIMUM, ADD],
        NOT_EQUAL | BITWISE_XOR | SUBTRACT => &[NOT_EQUAL, BITWISE_XOR],
        _ => &[],
    };
    names.iter().filter(|n| **n != code).for_each(|n| ways.add(bin(*n, a, b)));
    match code {
        LOGICAL_AND => ways.add(where_(a, b, &no)),
        LOGICAL_OR => ways.add(where_(a, &yes, b)),
        NOT_EQUAL => ways.add(where_(a, &not(b), b)),
        LESS => ways.add(bin(LOGICAL_AND, &not(a), b)),
        GREATER | REMAINDER => ways.add(bin(LOGICAL_AND, a, &not(b))),
        LESS_EQUAL => ways.add(bin(LOGICAL_OR, &not(a), b)),
        GREATER_EQUAL | POWER => ways.add(bin(LOGICAL_OR, a, &not(b))),
        EQUAL => ways.add(bin(BITWISE_XOR, a, b).map(|x| not(&x))),
        _ => {}
    }
    let byte = match names {
        [LOGICAL_AND, ..] => BITWISE_AND,
        [LOGICAL_OR, ..] => BITWISE_OR,
        [NOT_EQUAL, ..] => BITWISE_XOR,
        _ => return,
    };
    let of = |x: &Array| bits(x, Dtype::Uint8);
    ways.add(bin(byte, &of(a), &of(b)).map(|r| bits(&r, Dtype::Bool)));
}

fn integer(code: u32, a: &Array, b: &Array, ways: &mut Ways) {
    let dtype = a.dtype();
    match code {
        ADD => ways.add(bin(SUBTRACT, a, &un(unary::NEGATIVE, b))),
        SUBTRACT => ways.add(bin(ADD, a, &un(unary::NEGATIVE, b))),
        REMAINDER => {
            let whole = bin(FLOOR_DIVIDE, a, b).and_then(|q| bin(MULTIPLY, &q, b));
            ways.add(whole.and_then(|w| bin(SUBTRACT, a, &w)));
        }
        FLOOR_DIVIDE => ways.add(divided(a, b)),
        BITWISE_AND | BITWISE_OR => {
            let other = BITWISE_AND + BITWISE_OR - code;
            let sum = bin(ADD, a, b).and_then(|s| bin(SUBTRACT, &s, &bin(other, a, b)?));
            ways.add(sum);
        }
        BITWISE_XOR => {
            let both = bin(BITWISE_AND, a, b);
            ways.add(both.and_then(|c| bin(SUBTRACT, &bin(BITWISE_OR, a, b)?, &c)));
        }
        LOGICAL_AND | LOGICAL_OR => {
            ways.add(bin(code, &a.astype(Dtype::Bool), &b.astype(Dtype::Bool)));
        }
        _ => {}
    }
    let Some(s) = signed(dtype) else { return };
    let (x, y) = (bits(a, s), bits(b, s));
    match code {
        // The same bits for either sign.
        ADD | SUBTRACT | MULTIPLY | BITWISE_AND | BITWISE_OR | BITWISE_XOR | LEFT_SHIFT => {
            ways.add(bin(code, &x, &y).map(|r| bits(&r, dtype)));
        }
        EQUAL | NOT_EQUAL => ways.add(bin(code, &x, &y)),
        // The same order, once the lowest number is the lowest.
        LESS | LESS_EQUAL | GREATER | GREATER_EQUAL => {
            let high = Array::scalar(Scalar::from_bits(s, 1 << (8 * s.size() - 1)));
            let flip = |x: &Array| bin(ADD, x, &high);
            ways.add(flip(&x).and_then(|x| bin(code, &x, &flip(&y)?)));
        }
        _ => {}
    }
}

/// The quotient rounded down of integers of at most 32 bits, in floating point: it is far
/// enough from the next integer that its rounding does not reach it.
fn divided(a: &Array, b: &Array) -> Result<Array> {
    let (float, wide) = match a.dtype().size() {
        1 | 2 => (Dtype::Float32, Dtype::Int32),
        4 => (Dtype::Float64, Dtype::Int64),
        n => {
            let text = format!("no exact quotient of {n} bytes");
            return Err(crate::Error::value("floor_divide", text));
        }
    };
    let zero = bin(EQUAL, b, &int(b, 0))?;
    let quotient = bin(DIVIDE, &a.astype(float), &b.astype(float))?;
    // The smallest over -1 wraps when it is narrowed.
    let whole = un(unary::FLOOR, &quotient).astype(wide).astype(a.dtype());
    where_(&zero, &int(a, 0), &whole)
}

fn floating(code: u32, a: &Array, b: &Array, ways: &mut Ways) {
    match code {
        ADD => ways.add(bin(SUBTRACT, a, &un(unary::NEGATIVE, b))),
        SUBTRACT => ways.add(bin(ADD, a, &un(unary::NEGATIVE, b))),
        FLOOR_DIVIDE => ways.add(bin(DIVIDE, a, b).map(|q| un(unary::FLOOR, &q))),
        LOGADDEXP => ways.add(logaddexp(a, b)),
        LOGICAL_AND | LOGICAL_OR => {
            ways.add(bin(code, &a.astype(Dtype::Bool), &b.astype(Dtype::Bool)));
        }
        _ => {}
    }
}

/// `high + ln(1 + e^(low - high))`; the larger where that is infinite, or the smaller -inf.
fn logaddexp(a: &Array, b: &Array) -> Result<Array> {
    let (high, low) = (bin(MAXIMUM, a, b)?, bin(MINIMUM, a, b)?);
    let rest = un(unary::LOG1P, &un(unary::EXP, &bin(SUBTRACT, &low, &high)?));
    let whole = bin(EQUAL, &high, &like(a, f64::INFINITY))?;
    let alone = bin(EQUAL, &low, &like(a, f64::NEG_INFINITY))?;
    where_(&bin(LOGICAL_OR, &whole, &alone)?, &high, &bin(ADD, &high, &rest)?)
}

fn of_parts(code: u32, a: &Array, b: &Array, ways: &mut Ways) {
    match code {
        ADD | SUBTRACT => {
            let both = pairs(a).and_then(|p| bin(code, &p, &pairs(b)?));
            ways.add(both.and_then(|p| unpaired(&p)));
        }
        MULTIPLY => ways.add(product(a, b)),
        EQUAL | LESS | LESS_EQUAL => ways.add(compared(code, a, b)),
        LOGICAL_AND | LOGICAL_OR => {
            ways.add(bin(code, &a.astype(Dtype::Bool), &b.astype(Dtype::Bool)));
        }
        _ => {}
    }
}

fn product(a: &Array, b: &Array) -> Result<Array> {
    let ((ar, ai), (br, bi)) = (parts(a)?, parts(b)?);
    let re = bin(SUBTRACT, &bin(MULTIPLY, &ar, &br)?, &bin(MULTIPLY, &ai, &bi)?)?;
    complex(&re, &bin(ADD, &bin(MULTIPLY, &ar, &bi)?, &bin(MULTIPLY, &ai, &br)?)?)
}

/// By the real parts; where they are equal, by the imaginary ones.
fn compared(code: u32, a: &Array, b: &Array) -> Result<Array> {
    let ((ar, ai), (br, bi)) = (parts(a)?, parts(b)?);
    let equal = bin(LOGICAL_AND, &bin(EQUAL, &ar, &br)?, &bin(code, &ai, &bi)?)?;
    if code == EQUAL { Ok(equal) } else { bin(LOGICAL_OR, &bin(LESS, &ar, &br)?, &equal) }
}
