//! Decompositions of functions of one array.

use crate::dtype::{Dtype, Kind};
use crate::ops::rules::builders::{bin, like, un};
use crate::ops::rules::decomposition::{
    Candidates, Decompose, bitcast, complex, int, pairs, parts, signed, unpaired, wider,
};
use crate::ops::{elementwise::unary::node, select::where_};
use crate::{array::Array, error::Result, scalar::Scalar};
use ultramarine_abi::schema::{binary, unary};

/// Candidates for a function with a code of [`unary`].
pub(crate) fn candidates(code: u32, d: &Decompose<'_>, candidates: &mut Candidates) {
    let x = &d.inputs[0];
    // float16 and bfloat16 results must be rounded once, not at each step of an identity.
    if let Some(wide) = wider(x.dtype()).filter(|_| x.dtype() != d.dtype || widens(code, x)) {
        candidates.add(Ok(node(code, &x.astype(wide)).astype(d.dtype)));
        if x.dtype().is_inexact() {
            return;
        }
    }
    match x.dtype().kind() {
        Kind::Bool => truth(code, x, candidates),
        Kind::Signed | Kind::Unsigned => integer(code, x, candidates),
        Kind::Floating => floating(code, x, candidates),
        Kind::Complex => of_parts(code, x, candidates),
        // The call rejects storage dtypes.
        Kind::Storage => {}
    }
}

/// True if a narrow dtype may be computed in a wider one. (It may not if an unsigned result would
/// become negative in the wider dtype.)
fn widens(code: u32, x: &Array) -> bool {
    x.dtype().is_inexact()
        || matches!(
            code,
            unary::ABS | unary::NEGATIVE | unary::SIGN | unary::SQUARE | unary::BITWISE_INVERT
        )
}

fn truth(code: u32, x: &Array, candidates: &mut Candidates) {
    if matches!(code, unary::LOGICAL_NOT | unary::BITWISE_INVERT) {
        let other = unary::LOGICAL_NOT + unary::BITWISE_INVERT - code;
        let yes = Array::scalar(true);
        candidates.add(Ok(un(other, x)));
        candidates.add(bin(binary::NOT_EQUAL, x, &yes));
        candidates.add(bin(binary::BITWISE_XOR, x, &yes));
        candidates.add(where_(x, Array::scalar(false), &yes));
        let byte = bitcast(x, Dtype::Uint8);
        candidates.add(bin(binary::EQUAL, &byte, &int(&byte, 0)));
        candidates
            .add(bin(binary::BITWISE_XOR, &byte, &int(&byte, 1)).map(|b| bitcast(&b, Dtype::Bool)));
    }
}

fn integer(code: u32, x: &Array, candidates: &mut Candidates) {
    if let Some(s) = signed(x.dtype())
        && matches!(code, unary::NEGATIVE | unary::SQUARE | unary::BITWISE_INVERT)
    {
        candidates.add(Ok(bitcast(&un(code, &bitcast(x, s)), x.dtype())));
    }
    match code {
        unary::ABS => candidates.add(positive(x)),
        unary::NEGATIVE => {
            candidates.add(bin(binary::SUBTRACT, &int(x, 0), x));
            candidates.add(bin(binary::MULTIPLY, x, &int(x, -1)));
        }
        unary::SIGN => candidates.add(sign(x)),
        unary::SQUARE => candidates.add(bin(binary::MULTIPLY, x, x)),
        unary::BITWISE_INVERT => {
            candidates.add(bin(binary::BITWISE_XOR, x, &int(x, -1)));
            candidates.add(bin(binary::SUBTRACT, &int(x, -1), x));
        }
        unary::LOGICAL_NOT => candidates.add(bin(binary::EQUAL, x, &int(x, 0))),
        _ => {}
    }
}

/// |x|, for zeros of both signs too: -0.0 <= 0 holds, and 0.0 - -0.0 is 0.0.
fn positive(x: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    where_(&bin(binary::LESS_EQUAL, x, &zero)?, &bin(binary::SUBTRACT, &zero, x)?, x)
}

fn sign(x: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    let below = match x.dtype().kind() {
        Kind::Unsigned => zero.clone(),
        _ => where_(&bin(binary::LESS, x, &zero)?, like(x, -1.0), &zero)?,
    };
    where_(&bin(binary::GREATER, x, &zero)?, like(x, 1.0), &below)
}

fn floating(code: u32, x: &Array, candidates: &mut Candidates) {
    use unary::*;
    let c = |v: f64| like(x, v);
    match code {
        ABS => {
            candidates.add(positive(x));
            let (dtype, mask) = match x.dtype() {
                Dtype::Float64 => (Dtype::Uint64, u64::MAX >> 1),
                _ => (Dtype::Uint32, (u32::MAX >> 1) as u64),
            };
            let mask = Array::scalar(Scalar::from_bits(dtype, mask));
            let cleared = bin(binary::BITWISE_AND, &bitcast(x, dtype), &mask);
            candidates.add(cleared.map(|b| bitcast(&b, x.dtype())));
        }
        NEGATIVE => {
            candidates.add(bin(binary::MULTIPLY, x, &c(-1.0)));
            candidates.add(bin(binary::SUBTRACT, &c(-0.0), x));
        }
        SIGN => candidates.add(sign(x)),
        SQUARE => candidates.add(bin(binary::MULTIPLY, x, x)),
        RSQRT => candidates.add(bin(binary::DIVIDE, &c(1.0), &un(SQRT, x))),
        RECIPROCAL => candidates.add(bin(binary::DIVIDE, &c(1.0), x)),
        TAN => candidates.add(bin(binary::DIVIDE, &un(SIN, x), &un(COS, x))),
        SINH => candidates.add(sinh(x)),
        COSH => candidates.add(halves_of_exp(x).and_then(|(grown, rest)| grown.add(&rest))),
        TANH => candidates.add(tanh(x)),
        SIGMOID => candidates.add(sigmoid(x)),
        FLOOR => {
            candidates.add(towards(x, binary::LESS, binary::SUBTRACT));
            candidates.add(Ok(un(NEGATIVE, &un(CEIL, &un(NEGATIVE, x)))));
        }
        CEIL => {
            candidates.add(towards(x, binary::GREATER, binary::ADD));
            candidates.add(Ok(un(NEGATIVE, &un(FLOOR, &un(NEGATIVE, x)))));
        }
        TRUNC => {
            let below = bin(binary::LESS, x, &c(0.0));
            candidates.add(below.and_then(|b| where_(&b, un(CEIL, x), un(FLOOR, x))));
            candidates.add(truncated(x));
        }
        ROUND => candidates.add(rounded(x)),
        LOGICAL_NOT => candidates.add(bin(binary::EQUAL, x, &c(0.0))),
        ISNAN => candidates.add(bin(binary::NOT_EQUAL, x, x)),
        ISINF => {
            candidates.add(bin(binary::EQUAL, &un(ABS, x), &c(f64::INFINITY)));
            let is = |v: f64| bin(binary::EQUAL, x, &c(v));
            let either = is(f64::INFINITY).and_then(|a| a.logical_or(&is(f64::NEG_INFINITY)?));
            candidates.add(either);
        }
        ISFINITE => {
            candidates.add(bin(binary::LESS, &un(ABS, x), &c(f64::INFINITY)));
            // For infinity and NaN the difference is NaN.
            let zero = bin(binary::SUBTRACT, x, x);
            candidates.add(zero.and_then(|z| bin(binary::EQUAL, &z, &c(0.0))));
        }
        _ => {}
    }
}

/// `e^|x| / 2` and `e^-|x| / 2`. The first overflows only where the result does.
fn halves_of_exp(x: &Array) -> Result<(Array, Array)> {
    let half = like(x, 0.5);
    let root = un(unary::EXP, &un(unary::ABS, x).multiply(&half)?);
    Ok((root.multiply(&half)?.multiply(&root)?, half.divide(&root)?.divide(&root)?))
}

/// Near zero it is computed from e^x - 1, which keeps small values and the sign of zero.
fn sinh(x: &Array) -> Result<Array> {
    let (zero, one) = (like(x, 0.0), like(x, 1.0));
    let small = un(unary::EXPM1, x);
    let small = small.add(&small.divide(&small.add(&one)?)?)?.multiply(like(x, 0.5))?;
    let (grown, rest) = halves_of_exp(x)?;
    let large = grown.subtract(&rest)?;
    let large = where_(&x.less(&zero)?, un(unary::NEGATIVE, &large), &large)?;
    where_(&un(unary::ABS, x).less(&one)?, &small, &large)
}

/// `-t / (t + 2)` with `t = e^(-2 |x|) - 1`, which lies in (-1, 0].
fn tanh(x: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    let t = un(unary::EXPM1, &un(unary::ABS, x).multiply(like(x, -2.0))?);
    let size = un(unary::NEGATIVE, &t).divide(&t.add(like(x, 2.0))?)?;
    // Keep the sign of a zero.
    let size = where_(&x.equal(&zero)?, x, &size)?;
    where_(&x.less(&zero)?, un(unary::NEGATIVE, &size), &size)
}

fn sigmoid(x: &Array) -> Result<Array> {
    let one = like(x, 1.0);
    let e = un(unary::EXP, &un(unary::NEGATIVE, &un(unary::ABS, x)));
    let above = one.divide(&one.add(&e)?)?;
    where_(&x.less(like(x, 0.0))?, &e.multiply(&above)?, &above)
}

/// The integer on one side of x: x truncated towards zero, and one step further if x lies beyond
/// that.
fn towards(x: &Array, beyond: u32, step: u32) -> Result<Array> {
    let whole = un(unary::TRUNC, x);
    where_(&bin(beyond, x, &whole)?, &bin(step, &whole, &like(x, 1.0))?, &whole)
}

/// From this magnitude on, all floating-point numbers are integers.
fn whole_from(x: &Array) -> (Array, Dtype) {
    match x.dtype() {
        Dtype::Float64 => (like(x, 2f64.powi(52)), Dtype::Int64),
        _ => (like(x, 2f64.powi(23)), Dtype::Int32),
    }
}

/// `small` where |x| is below the limit of [`whole_from`], with the sign of x if `small` is zero.
/// Elsewhere x, also for NaN.
fn where_small(x: &Array, small: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    let small = where_(&small.equal(&zero)?, &x.multiply(&zero)?, small)?;
    where_(&un(unary::ABS, x).less(&whole_from(x).0)?, &small, x)
}

fn truncated(x: &Array) -> Result<Array> {
    where_small(x, &x.astype(whole_from(x).1).astype(x.dtype()))
}

/// Rounds by adding the magnitude at which fractions end; ties go to even.
fn rounded(x: &Array) -> Result<Array> {
    let (size, (large, _)) = (un(unary::ABS, x), whole_from(x));
    let size = size.add(&large)?.subtract(&large)?;
    let below = x.less(like(x, 0.0))?;
    where_small(x, &where_(&below, un(unary::NEGATIVE, &size), &size)?)
}

/// Computes functions of complex numbers from their real and imaginary parts.
fn of_parts(code: u32, x: &Array, candidates: &mut Candidates) {
    use unary::*;
    let both = |f: &dyn Fn(&Array) -> Result<Array>| f(&pairs(x)?).and_then(|p| unpaired(&p));
    let joined = |join: u32| -> Result<Array> {
        let (re, im) = parts(x)?;
        bin(join, &node(code, &re), &node(code, &im))
    };
    match code {
        REAL => candidates.add(parts(x).map(|p| p.0)),
        IMAG => candidates.add(parts(x).map(|p| p.1)),
        NEGATIVE | ROUND => candidates.add(both(&|p| Ok(un(code, p)))),
        CONJUGATE => candidates.add(parts(x).and_then(|(re, im)| complex(&re, &un(NEGATIVE, &im)))),
        SQUARE => candidates.add(bin(binary::MULTIPLY, x, x)),
        ISNAN | ISINF => candidates.add(joined(binary::LOGICAL_OR)),
        ISFINITE | LOGICAL_NOT => candidates.add(joined(binary::LOGICAL_AND)),
        _ => {}
    }
}
