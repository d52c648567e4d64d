//! Decompositions of the choice between two arrays.

use crate::ops::rules::builders::{bin, un, with_axis};
use crate::ops::rules::decomposition::{
    Candidates, Decompose, bitcast, pairs, same_size, unpaired, wider,
};
use crate::{array::Array, dtype::Dtype, error::Result, ops::select::where_};
use ultramarine_abi::schema::{binary, unary};

/// Candidates for a choice. Elements only move, so it can run in another dtype.
pub(crate) fn candidates(d: &Decompose<'_>, candidates: &mut Candidates) {
    let [condition, x, y] = d.inputs else { return };
    if d.dtype.is_complex() {
        candidates.add(of_pairs(condition, x, y));
    }
    for other in same_size(d.dtype) {
        let picked = where_(condition, bitcast(x, other), bitcast(y, other));
        candidates.add(picked.map(|p| bitcast(&p, d.dtype)));
    }
    if let Some(wide) = wider(d.dtype) {
        candidates
            .add(where_(condition, x.astype(wide), y.astype(wide)).map(|p| p.astype(d.dtype)));
    }
    if d.dtype == Dtype::Bool {
        candidates.add(either(condition, x, y));
    } else {
        candidates.add(masked(condition, x, y));
    }
}

fn of_pairs(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    let condition = with_axis(condition, condition.ndim())?;
    unpaired(&where_(&condition, &pairs(x)?, &pairs(y)?)?)
}

fn either(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    let other = un(unary::LOGICAL_NOT, condition);
    let (x, y) = (bin(binary::LOGICAL_AND, condition, x)?, bin(binary::LOGICAL_AND, &other, y)?);
    bin(binary::LOGICAL_OR, &x, &y)
}

/// `(x & mask) | (y & !mask)` on the bits. The mask is all ones where the condition holds.
fn masked(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    let dtype = match x.itemsize() {
        1 => Dtype::Uint8,
        2 => Dtype::Uint16,
        4 => Dtype::Uint32,
        _ => Dtype::Uint64,
    };
    let mask = un(unary::NEGATIVE, &condition.astype(dtype));
    let x = bin(binary::BITWISE_AND, &bitcast(x, dtype), &mask)?;
    let y_bits = bin(binary::BITWISE_AND, &bitcast(y, dtype), &un(unary::BITWISE_INVERT, &mask))?;
    Ok(bitcast(&bin(binary::BITWISE_OR, &x, &y_bits)?, y.dtype()))
}
