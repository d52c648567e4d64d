//! Helpers for the vmap rules: they bring the mapped axis of all operands to the same place.

use crate::ops::rules::shapeless::{SymbolicSize, broadcast_by};
use crate::ops::{Op, Vmap};
use crate::{array::Array, error::Result, shape::Shape};
use smallvec::SmallVec;

/// The array with axis `axis` moved to the front.
pub(crate) fn to_front(a: &Array, axis: usize) -> Result<Array> {
    a.moveaxis(axis as isize, 0)
}

/// An operand with the mapped axis first. The axis is moved there, or if the operand is not mapped, the operand is
/// broadcast along it.
pub(crate) fn batched(a: &Array, axis: Option<usize>, size: usize) -> Result<Array> {
    match axis {
        Some(axis) => to_front(a, axis),
        None => {
            let mut shape = Shape::from_elem(size, 1);
            shape.extend_from_slice(a.shape());
            a.broadcast_to(&shape)
        }
    }
}

/// All operands with the mapped axis first.
pub(crate) fn all_batched(v: &Vmap<'_>) -> Result<SmallVec<[Array; 3]>> {
    let mapped = v.axes.iter().position(Option::is_some);
    let first = mapped.map(|k| batched(&v.inputs[k], v.axes[k], v.size)).transpose()?;
    let operand = |a: &Array, axis: Option<usize>| match (&first, axis) {
        // The mapped operands give the axis its size.
        (Some(first), None) => {
            let sizes = std::iter::once(SymbolicSize::partner(0))
                .chain((0..a.ndim()).map(SymbolicSize::own));
            broadcast_by(a, sizes.collect(), &[first])
        }
        _ => batched(a, axis, v.size),
    };
    v.inputs.iter().zip(v.axes).map(|(a, axis)| operand(a, *axis)).collect()
}

/// The mapped result's shape when the mapped axis is first.
pub(crate) fn batched_shape(v: &Vmap<'_>) -> Shape {
    let mut shape = Shape::from_elem(v.size, 1);
    shape.extend_from_slice(v.shape);
    shape
}

/// The vmap rule of operations whose operands and result have the same shape.
pub(crate) fn elementwise(op: impl Into<Op>, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
    if v.axes.iter().all(|a| a.is_some() && *a == v.axes[0]) && !v.inputs.is_empty() {
        let inputs: SmallVec<[&Array; 3]> = v.inputs.iter().collect();
        let shape = Shape::from_slice(v.inputs[0].shape());
        return Ok((Array::try_of(op, &inputs, shape, v.dtype)?, v.axes[0]));
    }
    let operands = all_batched(v)?;
    let inputs: SmallVec<[&Array; 3]> = operands.iter().collect();
    Ok((Array::try_of(op, &inputs, batched_shape(v), v.dtype)?, Some(0)))
}

/// The results of an operation whose operands and results all begin with the same axis: the mapped axis is merged into
/// it.
pub(crate) fn joined(
    v: &Vmap<'_>,
    of: impl Fn(&[Array]) -> Result<Vec<Array>>,
) -> Result<Vec<(Array, Option<usize>)>> {
    if v.axes.iter().all(Option::is_none) {
        return Ok(of(v.inputs)?.into_iter().map(|a| (a, None)).collect());
    }
    let join = |a: &Array| {
        let mut shape = Shape::from_slice(&a.shape()[1..]);
        shape[0] *= v.size;
        a.reshape(&shape)
    };
    let operands = all_batched(v)?.iter().map(join).collect::<Result<Vec<Array>>>()?;
    let split = |a: Array| {
        let mut shape = Shape::from_slice(a.shape());
        shape[0] /= v.size;
        shape.insert(0, v.size);
        Ok((a.reshape(&shape)?, Some(0)))
    };
    of(&operands)?.into_iter().map(split).collect()
}
