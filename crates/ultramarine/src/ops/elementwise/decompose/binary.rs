//! Decompositions of functions of two arrays.

use crate::dtype::{Dtype, Kind};
use crate::ops::rules::builders::{bin, like, un};
use crate::ops::rules::decomposition::{
    Candidates, Decompose, bitcast, complex, int, pairs, parts, signed, unpaired, wider,
};
use crate::{array::Array, error::Result, ops::select::where_, scalar::Scalar};
use ultramarine_abi::schema::{binary::*, unary};

/// Candidates for a function with a code of [`binary`]. Both operands have the same shape and
/// dtype.
pub(crate) fn candidates(code: u32, d: &Decompose<'_>, candidates: &mut Candidates) {
    let (a, b) = (&d.inputs[0], &d.inputs[1]);
    let dtype = a.dtype();
    // In float16 or bfloat16 the quotient would be rounded before it is floored.
    if let Some(wide) = wider(dtype).filter(|w| !(w.is_inexact() && code == FLOOR_DIVIDE)) {
        candidates.add(bin(code, &a.astype(wide), &b.astype(wide)).map(|r| r.astype(d.dtype)));
    }
    comparisons(code, a, b, candidates);
    match dtype.kind() {
        Kind::Bool => truth(code, a, b, candidates),
        Kind::Signed | Kind::Unsigned => integer(code, a, b, candidates),
        // float16 and bfloat16 results must be rounded only once, so identities with several
        // roundings are excluded.
        Kind::Floating if dtype.size() > 2 || single_rounding(code) => {
            floating(code, a, b, candidates)
        }
        Kind::Floating => {}
        Kind::Complex => of_parts(code, a, b, candidates),
        // The call rejects storage dtypes.
        Kind::Storage => {}
    }
}

/// True if the identities for a code round as rarely as the function itself.
fn single_rounding(code: u32) -> bool {
    matches!(code, ADD | SUBTRACT | MAXIMUM | MINIMUM | FLOOR_DIVIDE)
}

/// Identities that hold for numbers of all kinds, including NaN.
fn comparisons(code: u32, a: &Array, b: &Array, candidates: &mut Candidates) {
    let either = |x: u32, y: u32| bin(LOGICAL_OR, &bin(x, a, b)?, &bin(y, a, b)?);
    let not = |x: u32| bin(x, a, b).map(|r| un(unary::LOGICAL_NOT, &r));
    let ordered = !a.dtype().is_inexact();
    match code {
        EQUAL => {
            candidates.add(not(NOT_EQUAL));
            if !a.dtype().is_complex() {
                let between = bin(LESS_EQUAL, a, b)
                    .and_then(|l| bin(LOGICAL_AND, &l, &bin(GREATER_EQUAL, a, b)?));
                candidates.add(between);
            }
        }
        NOT_EQUAL => candidates.add(not(EQUAL)),
        LESS => candidates.add(bin(GREATER, b, a)),
        GREATER => candidates.add(bin(LESS, b, a)),
        LESS_EQUAL => {
            candidates.add(bin(GREATER_EQUAL, b, a));
            if ordered {
                candidates.add(not(GREATER));
            }
            candidates.add(either(LESS, EQUAL));
        }
        GREATER_EQUAL => {
            candidates.add(bin(LESS_EQUAL, b, a));
            if ordered {
                candidates.add(not(LESS));
            }
            candidates.add(either(GREATER, EQUAL));
        }
        EQUAL_NAN if ordered => candidates.add(bin(EQUAL, a, b)),
        EQUAL_NAN => candidates.add(equal_nan(a, b)),
        MAXIMUM => candidates.add(extreme(GREATER, a, b)),
        MINIMUM => candidates.add(extreme(LESS, a, b)),
        _ => {}
    }
}

fn equal_nan(a: &Array, b: &Array) -> Result<Array> {
    let nan = |x: &Array| bin(NOT_EQUAL, x, x);
    bin(LOGICAL_OR, &bin(EQUAL, a, b)?, &bin(LOGICAL_AND, &nan(a)?, &nan(b)?)?)
}

/// `a` where the comparison `beyond` holds for `a` and `b`, or where `a` is NaN; else `b`.
fn extreme(beyond: u32, a: &Array, b: &Array) -> Result<Array> {
    let mut first = bin(beyond, a, b)?;
    if a.dtype().is_inexact() {
        first = bin(LOGICAL_OR, &first, &bin(NOT_EQUAL, a, a)?)?;
    }
    where_(&first, a, b)
}

fn truth(code: u32, a: &Array, b: &Array, candidates: &mut Candidates) {
    let (yes, no) = (Array::scalar(true), Array::scalar(false));
    let not = |x: &Array| un(unary::LOGICAL_NOT, x);
    // Functions that are the same operation for bool, or the same operation on the complement of
    // one operand.
    let names: &[u32] = match code {
        LOGICAL_AND | BITWISE_AND | MULTIPLY | MINIMUM | FLOOR_DIVIDE => {
            &[LOGICAL_AND, BITWISE_AND, MULTIPLY, MINIMUM]
        }
        LOGICAL_OR | BITWISE_OR | ADD | MAXIMUM => &[LOGICAL_OR, BITWISE_OR, MAXIMUM, ADD],
        NOT_EQUAL | BITWISE_XOR | SUBTRACT => &[NOT_EQUAL, BITWISE_XOR],
        _ => &[],
    };
    names.iter().filter(|n| **n != code).for_each(|n| candidates.add(bin(*n, a, b)));
    match code {
        LOGICAL_AND => candidates.add(where_(a, b, &no)),
        LOGICAL_OR => candidates.add(where_(a, &yes, b)),
        NOT_EQUAL => candidates.add(where_(a, not(b), b)),
        LESS => candidates.add(bin(LOGICAL_AND, &not(a), b)),
        GREATER | REMAINDER => candidates.add(bin(LOGICAL_AND, a, &not(b))),
        LESS_EQUAL => candidates.add(bin(LOGICAL_OR, &not(a), b)),
        GREATER_EQUAL | POWER => candidates.add(bin(LOGICAL_OR, a, &not(b))),
        EQUAL => candidates.add(bin(BITWISE_XOR, a, b).map(|x| not(&x))),
        _ => {}
    }
    let byte = match names {
        [LOGICAL_AND, ..] => BITWISE_AND,
        [LOGICAL_OR, ..] => BITWISE_OR,
        [NOT_EQUAL, ..] => BITWISE_XOR,
        _ => return,
    };
    let of = |x: &Array| bitcast(x, Dtype::Uint8);
    candidates.add(bin(byte, &of(a), &of(b)).map(|r| bitcast(&r, Dtype::Bool)));
}

fn integer(code: u32, a: &Array, b: &Array, candidates: &mut Candidates) {
    let dtype = a.dtype();
    match code {
        ADD => candidates.add(bin(SUBTRACT, a, &un(unary::NEGATIVE, b))),
        SUBTRACT => candidates.add(bin(ADD, a, &un(unary::NEGATIVE, b))),
        REMAINDER => {
            let whole = bin(FLOOR_DIVIDE, a, b).and_then(|q| bin(MULTIPLY, &q, b));
            candidates.add(whole.and_then(|w| bin(SUBTRACT, a, &w)));
        }
        FLOOR_DIVIDE => candidates.add(divided(a, b)),
        BITWISE_AND | BITWISE_OR => {
            let other = BITWISE_AND + BITWISE_OR - code;
            let sum = bin(ADD, a, b).and_then(|s| bin(SUBTRACT, &s, &bin(other, a, b)?));
            candidates.add(sum);
        }
        BITWISE_XOR => {
            let both = bin(BITWISE_AND, a, b);
            candidates.add(both.and_then(|c| bin(SUBTRACT, &bin(BITWISE_OR, a, b)?, &c)));
        }
        LOGICAL_AND | LOGICAL_OR => {
            candidates.add(bin(code, &a.astype(Dtype::Bool), &b.astype(Dtype::Bool)));
        }
        _ => {}
    }
    let Some(s) = signed(dtype) else { return };
    let (x, y) = (bitcast(a, s), bitcast(b, s));
    match code {
        // Results are bitwise identical for signed and unsigned integers.
        ADD | SUBTRACT | MULTIPLY | BITWISE_AND | BITWISE_OR | BITWISE_XOR | LEFT_SHIFT => {
            candidates.add(bin(code, &x, &y).map(|r| bitcast(&r, dtype)));
        }
        EQUAL | NOT_EQUAL => candidates.add(bin(code, &x, &y)),
        // Flipping the highest bit makes signed and unsigned order the same.
        LESS | LESS_EQUAL | GREATER | GREATER_EQUAL => {
            let high = Array::scalar(Scalar::from_bits(s, 1 << (8 * s.size() - 1)));
            let flip = |x: &Array| bin(ADD, x, &high);
            candidates.add(flip(&x).and_then(|x| bin(code, &x, &flip(&y)?)));
        }
        _ => {}
    }
}

/// The floored quotient of integers of at most 32 bits, computed in floating point. An inexact
/// quotient is so far from the next integer that rounding cannot reach that integer.
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
    // The smallest integer divided by -1 wraps when the quotient is narrowed.
    let whole = un(unary::FLOOR, &quotient).astype(wide).astype(a.dtype());
    where_(&zero, int(a, 0), &whole)
}

fn floating(code: u32, a: &Array, b: &Array, candidates: &mut Candidates) {
    match code {
        ADD => candidates.add(bin(SUBTRACT, a, &un(unary::NEGATIVE, b))),
        SUBTRACT => candidates.add(bin(ADD, a, &un(unary::NEGATIVE, b))),
        FLOOR_DIVIDE => candidates.add(bin(DIVIDE, a, b).map(|q| un(unary::FLOOR, &q))),
        LOGADDEXP => candidates.add(logaddexp(a, b)),
        LOGICAL_AND | LOGICAL_OR => {
            candidates.add(bin(code, &a.astype(Dtype::Bool), &b.astype(Dtype::Bool)));
        }
        _ => {}
    }
}

/// `high + ln(1 + e^(low - high))`. It is the larger operand if that is infinite, or if the smaller
/// operand is -infinity.
fn logaddexp(a: &Array, b: &Array) -> Result<Array> {
    let (high, low) = (bin(MAXIMUM, a, b)?, bin(MINIMUM, a, b)?);
    let rest = un(unary::LOG1P, &un(unary::EXP, &bin(SUBTRACT, &low, &high)?));
    let whole = bin(EQUAL, &high, &like(a, f64::INFINITY))?;
    let alone = bin(EQUAL, &low, &like(a, f64::NEG_INFINITY))?;
    where_(&bin(LOGICAL_OR, &whole, &alone)?, &high, &bin(ADD, &high, &rest)?)
}

fn of_parts(code: u32, a: &Array, b: &Array, candidates: &mut Candidates) {
    match code {
        ADD | SUBTRACT => {
            let both = pairs(a).and_then(|p| bin(code, &p, &pairs(b)?));
            candidates.add(both.and_then(|p| unpaired(&p)));
        }
        MULTIPLY => candidates.add(product(a, b)),
        EQUAL | LESS | LESS_EQUAL => candidates.add(compared(code, a, b)),
        LOGICAL_AND | LOGICAL_OR => {
            candidates.add(bin(code, &a.astype(Dtype::Bool), &b.astype(Dtype::Bool)));
        }
        _ => {}
    }
}

fn product(a: &Array, b: &Array) -> Result<Array> {
    let ((ar, ai), (br, bi)) = (parts(a)?, parts(b)?);
    let re = bin(SUBTRACT, &bin(MULTIPLY, &ar, &br)?, &bin(MULTIPLY, &ai, &bi)?)?;
    complex(&re, &bin(ADD, &bin(MULTIPLY, &ar, &bi)?, &bin(MULTIPLY, &ai, &br)?)?)
}

/// Compares the real parts, and where they are equal the imaginary parts.
fn compared(code: u32, a: &Array, b: &Array) -> Result<Array> {
    let ((ar, ai), (br, bi)) = (parts(a)?, parts(b)?);
    let equal = bin(LOGICAL_AND, &bin(EQUAL, &ar, &br)?, &bin(code, &ai, &bi)?)?;
    if code == EQUAL { Ok(equal) } else { bin(LOGICAL_OR, &bin(LESS, &ar, &br)?, &equal) }
}
