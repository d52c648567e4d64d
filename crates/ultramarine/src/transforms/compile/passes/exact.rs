//! Removes operations that change no bit, and merges conversions that are equivalent to a single
//! one.
//!
//! The result must be exact for every value. Therefore a multiplication of floats by one stays,
//! because it quiets a signalling NaN. An addition of zero to floats stays, because -0.0 + 0.0 is
//! 0.0.

use super::{Graph, escaping};
use crate::dtype::{Dtype, Kind};
use crate::ops::elementwise::{binary::Binary, unary::Unary};
use crate::ops::{copy::cast::Cast, select::Select};
use crate::{scalar::Scalar, transforms::compile::graph::Step};
use ultramarine_abi::schema::{binary, unary};

/// Removes operations that have no effect. Results keep separate memory, because a result may be
/// exported and then written to.
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

/// Returns the signedness and the number of value bits of an integer or bool dtype, and `None` for
/// other dtypes.
fn integer_bits(dtype: Dtype) -> Option<(bool, usize)> {
    let bits = 8 * dtype.size();
    match dtype.kind() {
        Kind::Bool => Some((false, 1)),
        Kind::Unsigned => Some((false, bits)),
        Kind::Signed => Some((true, bits - 1)),
        _ => None,
    }
}

/// Returns true if every value of `from` is a value of `to`.
pub(super) fn widens(from: Dtype, to: Dtype) -> bool {
    if from == to {
        return true;
    }
    // Number of significant bits of a float, with the leading bit.
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

/// A conversion after a conversion without loss is equivalent to a conversion from the first dtype.
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
        // For floats this holds only for conversions to bool, because other conversions quiet a
        // signalling NaN.
        if to == Dtype::Bool {
            step.operands[0] = source;
        }
        return None;
    };
    if from == to {
        return Some(source);
    }
    let whole = |d: Dtype| integer_bits(d).is_some();
    // If a value does not fit, floats and integers are converted to an integer in different ways.
    let alike = whole(by) || !whole(to) || to == Dtype::Bool;
    // A long integer that is converted to a half through another dtype may be rounded twice instead
    // of once.
    let once = !matches!(to, Dtype::Float16 | Dtype::Bfloat16) || bits <= 16;
    if alike && once {
        step.operands[0] = source;
    }
    None
}

/// Removes pairs of operations that undo each other: two negations, or two logical nots.
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

/// Removes operations of integers with a neutral element.
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
