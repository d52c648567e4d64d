//! Functions of one array.

use crate::{
    array::Array,
    dtype::{Dtype, Kind},
    error::Result,
    ops::{
        elementwise::unary::node,
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
use ultramarine_abi::schema::{binary, unary};

/// The ways of a function of a code of [`unary`].
pub(crate) fn ways(code: u32, d: &Decompose<'_>, ways: &mut Ways) {
    let x = &d.inputs[0];
    // A half rounds once: not at each step of an identity.
    if let Some(wide) = wider(x.dtype()).filter(|_| x.dtype() != d.dtype || widens(code, x)) {
        ways.add(Ok(node(code, &x.astype(wide)).astype(d.dtype)));
        if x.dtype().is_inexact() {
            return;
        }
    }
    match x.dtype().kind() {
        Kind::Bool => truth(code, x, ways),
        Kind::Signed | Kind::Unsigned => integer(code, x, ways),
        Kind::Floating => floating(code, x, ways),
        Kind::Complex => of_parts(code, x, ways),
        // Refused where the operation is called.
        Kind::Storage => {}
    }
}

/// Whether a narrow dtype may be computed in a wider one. (An integer that is below zero
/// there would not be where it is unsigned.)
fn widens(code: u32, x: &Array) -> bool {
    x.dtype().is_inexact()
        || matches!(
            code,
            unary::ABS | unary::NEGATIVE | unary::SIGN | unary::SQUARE | unary::BITWISE_INVERT
        )
}

fn truth(code: u32, x: &Array, ways: &mut Ways) {
    if matches!(code, unary::LOGICAL_NOT | unary::BITWISE_INVERT) {
        let other = unary::LOGICAL_NOT + unary::BITWISE_INVERT - code;
        let yes = Array::scalar(true);
        ways.add(Ok(un(other, x)));
        ways.add(bin(binary::NOT_EQUAL, x, &yes));
        ways.add(bin(binary::BITWISE_XOR, x, &yes));
        ways.add(where_(x, &Array::scalar(false), &yes));
        let byte = bits(x, Dtype::Uint8);
        ways.add(bin(binary::EQUAL, &byte, &int(&byte, 0)));
        ways.add(bin(binary::BITWISE_XOR, &byte, &int(&byte, 1)).map(|b| bits(&b, Dtype::Bool)));
    }
}

fn integer(code: u32, x: &Array, ways: &mut Ways) {
    if let Some(s) = signed(x.dtype())
        && matches!(code, unary::NEGATIVE | unary::SQUARE | unary::BITWISE_INVERT)
    {
        ways.add(Ok(bits(&un(code, &bits(x, s)), x.dtype())));
    }
    match code {
        unary::ABS => ways.add(positive(x)),
        unary::NEGATIVE => {
            ways.add(bin(binary::SUBTRACT, &int(x, 0), x));
            ways.add(bin(binary::MULTIPLY, x, &int(x, -1)));
        }
        unary::SIGN => ways.add(sign(x)),
        unary::SQUARE => ways.add(bin(binary::MULTIPLY, x, x)),
        unary::BITWISE_INVERT => {
            ways.add(bin(binary::BITWISE_XOR, x, &int(x, -1)));
            ways.add(bin(binary::SUBTRACT, &int(x, -1), x));
        }
        unary::LOGICAL_NOT => ways.add(bin(binary::EQUAL, x, &int(x, 0))),
        _ => {}
    }
}

/// |x|, of zero as well: -0.0 <= 0, and 0.0 - -0.0 is 0.0.
fn positive(x: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    where_(&bin(binary::LESS_EQUAL, x, &zero)?, &bin(binary::SUBTRACT, &zero, x)?, x)
}

fn sign(x: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    let below = match x.dtype().kind() {
        Kind::Unsigned => zero.clone(),
        _ => where_(&bin(binary::LESS, x, &zero)?, &like(x, -1.0), &zero)?,
    };
    where_(&bin(binary::GREATER, x, &zero)?, &like(x, 1.0), &below)
}

fn floating(code: u32, x: &Array, ways: &mut Ways) {
    use unary::*;
    let c = |v: f64| like(x, v);
    match code {
        ABS => {
            ways.add(positive(x));
            let (dtype, mask) = match x.dtype() {
                Dtype::Float64 => (Dtype::Uint64, u64::MAX >> 1),
                _ => (Dtype::Uint32, (u32::MAX >> 1) as u64),
            };
            let mask = Array::scalar(Scalar::from_bits(dtype, mask));
            let cleared = bin(binary::BITWISE_AND, &bits(x, dtype), &mask);
            ways.add(cleared.map(|b| bits(&b, x.dtype())));
        }
        NEGATIVE => {
            ways.add(bin(binary::MULTIPLY, x, &c(-1.0)));
            ways.add(bin(binary::SUBTRACT, &c(-0.0), x));
        }
        SIGN => ways.add(sign(x)),
        SQUARE => ways.add(bin(binary::MULTIPLY, x, x)),
        RSQRT => ways.add(bin(binary::DIVIDE, &c(1.0), &un(SQRT, x))),
        RECIPROCAL => ways.add(bin(binary::DIVIDE, &c(1.0), x)),
        TAN => ways.add(bin(binary::DIVIDE, &un(SIN, x), &un(COS, x))),
        SINH => ways.add(sinh(x)),
        COSH => ways.add(halves_of_exp(x).and_then(|(grown, rest)| grown.add(&rest))),
        TANH => ways.add(tanh(x)),
        SIGMOID => ways.add(sigmoid(x)),
        FLOOR => {
            ways.add(towards(x, binary::LESS, binary::SUBTRACT));
            ways.add(Ok(un(NEGATIVE, &un(CEIL, &un(NEGATIVE, x)))));
        }
        CEIL => {
            ways.add(towards(x, binary::GREATER, binary::ADD));
            ways.add(Ok(un(NEGATIVE, &un(FLOOR, &un(NEGATIVE, x)))));
        }
        TRUNC => {
            let below = bin(binary::LESS, x, &c(0.0));
            ways.add(below.and_then(|b| where_(&b, &un(CEIL, x), &un(FLOOR, x))));
            ways.add(truncated(x));
        }
        ROUND => ways.add(rounded(x)),
        LOGICAL_NOT => ways.add(bin(binary::EQUAL, x, &c(0.0))),
        ISNAN => ways.add(bin(binary::NOT_EQUAL, x, x)),
        ISINF => {
            ways.add(bin(binary::EQUAL, &un(ABS, x), &c(f64::INFINITY)));
            let is = |v: f64| bin(binary::EQUAL, x, &c(v));
            let either = is(f64::INFINITY).and_then(|a| a.logical_or(&is(f64::NEG_INFINITY)?));
            ways.add(either);
        }
        ISFINITE => {
            ways.add(bin(binary::LESS, &un(ABS, x), &c(f64::INFINITY)));
            // The difference is NaN otherwise.
            let zero = bin(binary::SUBTRACT, x, x);
            ways.add(zero.and_then(|z| bin(binary::EQUAL, &z, &c(0.0))));
        }
        _ => {}
    }
}

/// `e^|x| / 2` and `e^-|x| / 2`, the first without overflow before the result's own.
fn halves_of_exp(x: &Array) -> Result<(Array, Array)> {
    let half = like(x, 0.5);
    let root = un(unary::EXP, &un(unary::ABS, x).multiply(&half)?);
    Ok((root.multiply(&half)?.multiply(&root)?, half.divide(&root)?.divide(&root)?))
}

/// Near zero by way of e^x - 1, which keeps the small and the sign of zero.
fn sinh(x: &Array) -> Result<Array> {
    let (zero, one) = (like(x, 0.0), like(x, 1.0));
    let small = un(unary::EXPM1, x);
    let small = small.add(&small.divide(&small.add(&one)?)?)?.multiply(&like(x, 0.5))?;
    let (grown, rest) = halves_of_exp(x)?;
    let large = grown.subtract(&rest)?;
    let large = where_(&x.less(&zero)?, &un(unary::NEGATIVE, &large), &large)?;
    where_(&un(unary::ABS, x).less(&one)?, &small, &large)
}

/// `-t / (t + 2)` with `t = e^(-2 |x|) - 1`, which lies in (-1, 0].
fn tanh(x: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    let t = un(unary::EXPM1, &un(unary::ABS, x).multiply(&like(x, -2.0))?);
    let size = un(unary::NEGATIVE, &t).divide(&t.add(&like(x, 2.0))?)?;
    // A zero keeps its sign.
    let size = where_(&x.equal(&zero)?, x, &size)?;
    where_(&x.less(&zero)?, &un(unary::NEGATIVE, &size), &size)
}

fn sigmoid(x: &Array) -> Result<Array> {
    let one = like(x, 1.0);
    let e = un(unary::EXP, &un(unary::NEGATIVE, &un(unary::ABS, x)));
    let above = one.divide(&one.add(&e)?)?;
    where_(&x.less(&like(x, 0.0))?, &e.multiply(&above)?, &above)
}

/// The integer on one side of x: that towards zero, or one further where x lies beyond it.
fn towards(x: &Array, beyond: u32, step: u32) -> Result<Array> {
    let whole = un(unary::TRUNC, x);
    where_(&bin(beyond, x, &whole)?, &bin(step, &whole, &like(x, 1.0))?, &whole)
}

/// From this size on all numbers are integers.
fn whole_from(x: &Array) -> (Array, Dtype) {
    match x.dtype() {
        Dtype::Float64 => (like(x, 2f64.powi(52)), Dtype::Int64),
        _ => (like(x, 2f64.powi(23)), Dtype::Int32),
    }
}

/// `small` where |x| is below what [`whole_from`] says, with the sign of x where it is
/// zero; else x, NaN too.
fn where_small(x: &Array, small: &Array) -> Result<Array> {
    let zero = like(x, 0.0);
    let small = where_(&small.equal(&zero)?, &x.multiply(&zero)?, small)?;
    where_(&un(unary::ABS, x).less(&whole_from(x).0)?, &small, x)
}

fn truncated(x: &Array) -> Result<Array> {
    where_small(x, &x.astype(whole_from(x).1).astype(x.dtype()))
}

/// Adding the size at which fractions end rounds them, ties to even.
fn rounded(x: &Array) -> Result<Array> {
    let (size, (large, _)) = (un(unary::ABS, x), whole_from(x));
    let size = size.add(&large)?.subtract(&large)?;
    let below = x.less(&like(x, 0.0))?;
    where_small(x, &where_(&below, &un(unary::NEGATIVE, &size), &size)?)
}

/// Of complex numbers what their parts give.
fn of_parts(code: u32, x: &Array, ways: &mut Ways) {
    use unary::*;
    let both = |f: &dyn Fn(&Array) -> Result<Array>| f(&pairs(x)?).and_then(|p| unpaired(&p));
    let joined = |join: u32| -> Result<Array> {
        let (re, im) = parts(x)?;
        bin(join, &node(code, &re), &node(code, &im))
    };
    match code {
        REAL => ways.add(parts(x).map(|p| p.0)),
        IMAG => ways.add(parts(x).map(|p| p.1)),
        NEGATIVE | ROUND => ways.add(both(&|p| Ok(un(code, p)))),
        CONJUGATE => ways.add(parts(x).and_then(|(re, im)| complex(&re, &un(NEGATIVE, &im)))),
        SQUARE => ways.add(bin(binary::MULTIPLY, x, x)),
        ISNAN | ISINF => ways.add(joined(binary::LOGICAL_OR)),
        ISFINITE | LOGICAL_NOT => ways.add(joined(binary::LOGICAL_AND)),
        _ => {}
    }
}
