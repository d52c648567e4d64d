//! Operations that change no bit, and conversions that are one: merged.
//!
//! Exact means exact for every value. So floats are multiplied by one as they were, which quiets a signalling NaN, and
//! zero is added to them, for -0.0 + 0.0 is 0.0.

use super::{Graph, escaping};
use crate::dtype::{Dtype, Kind};
use crate::ops::elementwise::{binary::Binary, unary::Unary};
use crate::ops::{copy::cast::Cast, select::Select};
use crate::{scalar::Scalar, transforms::compile::graph::Step};
use ultramarine_abi::schema::{binary, unary};

/// Leaves out what does nothing. Results keep memory of their own: one may be exported, and written to.
pub(super) fn merge(graph: &mut Graph) {
    let escapes = escaping(graph);
    let mut number = 0;
    graph.rewrite(|steps, step| {
        let escapes = escapes[number];
        number += 1;
        let op = step.op()?;
        let (unary, binary) = (op.get::<Unary>(), op.get::<Binary>());
        let same = match (unary.map(|u| u.code), binary.map(|b| b.code)) {
            (Some(code), _) => inverse(steps, step, code),
            (_, Some(code)) => neutral(steps, step, code),
            _ if op.is::<Cast>() => cast(steps, step),
            _ if op.is::<Select>() && step.operands[1] == step.operands[2] => {
                Some(step.operands[1])
            }
            _ => None,
        };
        same.filter(|_| !escapes)
    });
}

fn on_one_stream(a: &Step, b: &Step) -> bool {
    a.place.stream == b.place.stream
}

/// Bits of the integers that a dtype holds exactly: with a sign or without, or as a float.
fn integer_bits(dtype: Dtype) -> Option<(bool, usize)> {
    let bits = 8 * dtype.size();
    match dtype.kind() {
        Kind::Bool => Some((false, 1)),
        Kind::Unsigned => Some((false, bits)),
        Kind::Signed => Some((true, bits - 1)),
        _ => None,
    }
}

/// True if every value of `from` is a value of `to`.
pub(super) fn widens(from: Dtype, to: Dtype) -> bool {
    if from == to {
        return true;
    }
    // Significant bits of a float, its leading one included.
    let digits = |d| match d {
        Dtype::Bfloat16 => Some(8),
        Dtype::Float16 => Some(11),
        Dtype::Float32 | Dtype::Complex64 => Some(24),
        Dtype::Float64 => Some(53),
        _ => None,
    };
    match (integer_bits(from), integer_bits(to)) {
        (Some((signed, n)), Some((to_signed, m))) => n <= m && (to_signed || !signed),
        (Some((_, n)), None) => digits(to).is_some_and(|m| n <= m),
        (None, Some(_)) => false,
        _ => matches!(
            (from, to),
            (Dtype::Float16 | Dtype::Bfloat16, Dtype::Float32 | Dtype::Float64)
                | (Dtype::Float32, Dtype::Float64)
        ),
    }
}

/// A conversion of a conversion that lost nothing is one from the first dtype.
fn cast(steps: &[Step], step: &mut Step) -> Option<u32> {
    let inner = &steps[step.operands[0] as usize];
    if inner.get::<Cast>().is_none() || !on_one_stream(inner, step) {
        return None;
    }
    let source = inner.operands[0];
    let (from, by, to) = (steps[source as usize].dtype, inner.dtype, step.dtype);
    if [from, by, to].iter().any(|d| d.is_storage()) || !widens(from, by) {
        return None;
    }
    let Some((_, bits)) = integer_bits(from) else {
        // Of floats only what is zero stays the same for all: a signalling NaN comes back quiet.
        if to == Dtype::Bool {
            step.operands[0] = source;
        }
        return None;
    };
    if from == to {
        return Some(source);
    }
    let whole = |d: Dtype| integer_bits(d).is_some();
    // A float becomes an integer in another way than an integer does where it does not fit.
    let alike = whole(by) || !whole(to) || to == Dtype::Bool;
    // Long integers may be rounded twice on their way to a half, or once.
    let once = !matches!(to, Dtype::Float16 | Dtype::Bfloat16) || bits <= 16;
    if alike && once {
        step.operands[0] = source;
    }
    None
}

/// Operations that undo themselves: two negations, two times not.
fn inverse(steps: &[Step], step: &Step, code: u32) -> Option<u32> {
    let inner = &steps[step.operands[0] as usize];
    let before: &Unary = inner.get()?;
    if before.code != code || !on_one_stream(inner, step) || inner.dtype != step.dtype {
        return None;
    }
    match code {
        unary::NEGATIVE | unary::BITWISE_INVERT if integer_bits(step.dtype).is_some() => {
            Some(inner.operands[0])
        }
        unary::LOGICAL_NOT if steps[inner.operands[0] as usize].dtype == Dtype::Bool => {
            Some(inner.operands[0])
        }
        unary::ABS | unary::FLOOR | unary::CEIL | unary::ROUND => Some(step.operands[0]),
        _ => None,
    }
}

/// Integers beside what leaves them as they are.
fn neutral(steps: &[Step], step: &Step, code: u32) -> Option<u32> {
    let [a, b] = step.operands[..] else { return None };
    integer_bits(step.dtype)?;
    let is = |i: u32, n: i64| {
        steps[i as usize].constant().is_some_and(|v| v == Scalar::from_i64(step.dtype, n))
    };
    let left = match code {
        _ if step.dtype == Dtype::Bool => false,
        binary::ADD | binary::SUBTRACT | binary::BITWISE_OR | binary::BITWISE_XOR => is(b, 0),
        binary::LEFT_SHIFT | binary::RIGHT_SHIFT => is(b, 0),
        binary::MULTIPLY => is(b, 1),
        _ => false,
    };
    let right = match code {
        _ if step.dtype == Dtype::Bool => false,
        binary::ADD | binary::BITWISE_OR | binary::BITWISE_XOR => is(a, 0),
        binary::MULTIPLY => is(a, 1),
        _ => false,
    };
    let same =
        |i: u32| steps[i as usize].dtype == step.dtype && steps[i as usize].shape == step.shape;
    match (left, right) {
        (true, _) if same(a) => Some(a),
        (_, true) if same(b) => Some(b),
        _ => None,
    }
}
