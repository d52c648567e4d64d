//! The matrices that the items of a gathered product use: those chosen by indices, or all in order.

use crate::error::{Result, ensure};
use crate::ops::index::scatter::scatter;
use crate::ops::rules::batching::batched;
use crate::ops::rules::builders::{bin, compute_dtype, like};
use crate::ops::select::where_;
use crate::ops::sort::search::Side;
use crate::ops::{Vmap, attributes};
use crate::shape::{self, Shape};
use crate::{array::Array, dtype::Dtype, scalar::Scalar};
use std::ops::Range;
use ultramarine_abi::schema::{binary, scatter as kind};

attributes! {
    /// The factors whose matrices are chosen by indices. The indices are the last operands: int32, `(items)`. The
    /// matrices of the other factors are taken in order.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Picks {
        pub lhs: bool,
        pub rhs: bool,
    }
}

/// Indices of both factors' matrices. A factor whose matrices are taken in order has none.
#[derive(Clone, Default)]
pub(crate) struct Indices {
    pub lhs: Option<Array>,
    pub rhs: Option<Array>,
}

impl Indices {
    /// Flat indices for each item, and the shape of the items. Missing indices count all matrices of the factor's batch
    /// dimensions; indices of both factors are broadcast with each other.
    pub fn new(
        op: &str,
        batches: [&[usize]; 2],
        given: [Option<&Array>; 2],
    ) -> Result<(Indices, Shape)> {
        for indices in given.into_iter().flatten() {
            ensure!(
                indices.dtype().is_integer(),
                op,
                "Got indices with invalid dtype. Indices must be integral but have type {}. Convert them with astype(int32).",
                indices.dtype()
            );
        }
        let shapes = [0, 1].map(|i| given[i].map_or(batches[i], Array::shape));
        let items = shape::broadcast(op, shapes[0], shapes[1])?;
        let of = |i: usize| -> Result<Option<Array>> {
            let indices = match given[i] {
                None if batches[i] == &items[..] => return Ok(None),
                None => {
                    let count: usize = batches[i].iter().product();
                    Array::arange(0.0, count as f64, 1.0, Dtype::Int32)?.reshape(batches[i])?
                }
                Some(indices) => narrow(indices)?,
            };
            Ok(Some(indices.broadcast_to(&items)?.reshape(&[shape::size(&items)])?))
        };
        Ok((Indices { lhs: of(0)?, rhs: of(1)? }, items))
    }

    /// Returns which of the indices are given.
    pub fn picks(&self) -> Picks {
        Picks { lhs: self.lhs.is_some(), rhs: self.rhs.is_some() }
    }

    /// Iterates over the given indices.
    pub fn iter(&self) -> impl Iterator<Item = &Array> {
        [&self.lhs, &self.rhs].into_iter().flatten()
    }
}

/// Indices as int32. Indices far out of bounds stay out of bounds.
pub(super) fn narrow(indices: &Array) -> Result<Array> {
    let bound = |v: i64| Array::scalar(Scalar::from_i64(indices.dtype(), v));
    let (low, high) = (bound(i32::MIN.into()), bound(i32::MAX.into()));
    let held = match indices.dtype() {
        Dtype::Int64 => indices.clip(Some(&low), Some(&high))?,
        Dtype::Uint32 | Dtype::Uint64 => indices.clip(None, Some(&high))?,
        _ => indices.clone(),
    };
    Ok(held.astype(Dtype::Int32))
}

/// Converts indices from the end to indices from the start, and clamps those out of bounds.
fn held(indices: &Array, count: usize) -> Result<Array> {
    let below = bin(binary::LESS, indices, &like(indices, 0.0))?;
    let counted = bin(binary::ADD, indices, &like(indices, count as f64))?;
    let indices = where_(&below, &counted, indices)?;
    indices.clip(Some(&like(&indices, 0.0)), Some(&like(&indices, count as f64 - 1.0)))
}

/// The matrices that the indices choose, or all matrices without indices.
pub(crate) fn taken(matrices: &Array, indices: Option<&Array>) -> Result<Array> {
    indices.map_or(Ok(matrices.clone()), |indices| matrices.take(indices, Some(0)))
}

impl Picks {
    /// Returns the indices among the operands. They are the last ones.
    pub fn of(self, operands: &[Array]) -> Indices {
        let mut last = operands[operands.len() - self.count()..].iter();
        let mut next = |there: bool| if there { last.next().cloned() } else { None };
        Indices { lhs: next(self.lhs), rhs: next(self.rhs) }
    }

    /// Returns the number of operands that are indices.
    pub fn count(self) -> usize {
        usize::from(self.lhs) + usize::from(self.rhs)
    }

    /// Returns the names of the operands that are indices, as in the contract's table.
    pub fn names(self) -> &'static [&'static str] {
        match (self.lhs, self.rhs) {
            (true, true) => &["lhs_indices", "rhs_indices"],
            (true, false) => &["lhs_indices"],
            (false, true) => &["rhs_indices"],
            (false, false) => &[],
        }
    }

    /// Returns true if the last operands can be the indices of factors with `matrices` matrices. Indices have to be
    /// 1-d, of one length. A factor without indices has to have as many matrices as there are items.
    pub fn admit(self, shapes: &[&[usize]], matrices: [usize; 2]) -> bool {
        let Some(first) = shapes.len().checked_sub(self.count()) else { return false };
        let lines = shapes[first..].iter().all(|s| s.len() == 1);
        let items = || self.items(shapes);
        let taken = |(picked, count): (bool, usize)| picked || count == items();
        lines
            && shapes[first..].iter().all(|s| s[0] == items())
            && [self.lhs, self.rhs].into_iter().zip(matrices).all(taken)
    }

    /// Returns the number of items, from the operands' shapes.
    pub fn items(self, shapes: &[&[usize]]) -> usize {
        match self.count() {
            // No indices: matrices are taken in order.
            0 => shapes[0][0],
            count => shapes[shapes.len() - count][0],
        }
    }
}

/// Sums the results of the items into the matrices of a factor: into those that `lhs` chose, or into all in order.
pub(crate) fn summed(items: Array, lhs: Option<&Array>, count: usize) -> Result<Array> {
    let Some(lhs) = lhs else { return Ok(items) };
    let [m, k] = [items.shape()[1], items.shape()[2]];
    // float16 and bfloat16 are summed in float32.
    let inner = compute_dtype(items.dtype());
    let source = Array::full(&[count, m, k], Scalar::from_i64(inner, 0))?;
    let updates = items.astype(inner).reshape(&[items.shape()[0], 1, m, k])?;
    let sum = scatter(&source, &[held(lhs, count)?], &updates, &[0], kind::SUM)?;
    Ok(sum.astype(items.dtype()))
}

/// The gradient of gathered products with respect to the second factor, `(count, k, n)`. For each matrix it is the sum,
/// over the items that used the matrix, of the transposed left matrix times the item's cotangent; the cotangents are
/// `(items, m, n)`.
pub(crate) fn gradient_by_second(
    left: &Array,
    cotangent: &Array,
    indices: &Indices,
    count: usize,
) -> Result<Array> {
    let Some(rhs) = &indices.rhs else {
        let left = taken(left, indices.lhs.as_ref())?;
        return left.transpose_axes([0, 2, 1])?.matmul(cotangent);
    };
    // Sort the items by matrix, so that the rows of each matrix's items are one segment.
    let rhs = held(rhs, count)?;
    let order = rhs.argsort(Some(0))?;
    let sorted = rhs.take(&order, Some(0))?;
    let lhs = match &indices.lhs {
        Some(lhs) => lhs.take(&order, Some(0))?,
        None => order.clone(),
    };
    let rows = |a: &Array, chosen: &Array| -> Result<Array> {
        let [m, size] = [a.shape()[1], a.shape()[2]];
        a.take(chosen, Some(0))?.reshape(&[order.size() * m, size])
    };
    let (left, right) = (rows(left, &lhs)?, rows(cotangent, &order)?);
    let each = Array::arange(0.0, count as f64, 1.0, Dtype::Int32)?;
    let ends = [Side::Left, Side::Right].map(|side| sorted.searchsorted(&each, side));
    let [starts, ends] = ends;
    let segments = crate::stack(&[starts?, ends?], 1)?.astype(Dtype::Int32);
    let segments = bin(binary::MULTIPLY, &segments, &like(&segments, cotangent.shape()[1] as f64))?;
    super::segmented::product(&left.transpose_axes([1, 0])?, &right, &segments)
}

/// The batching rule of gathered products, each of whose factors is a range of operands. The mapped axis is joined to
/// the factors' matrices, and the indices are shifted by the position along that axis. `of` gets the operands without
/// indices, and the indices.
pub(crate) fn mapped(
    v: &Vmap<'_>,
    picks: Picks,
    second: Range<usize>,
    of: impl Fn(&[Array], &Indices) -> Result<Array>,
) -> Result<(Array, Option<usize>)> {
    let shapes: Vec<Shape> = (v.inputs.iter().zip(v.axes))
        .map(|(a, axis)| {
            let mut shape = Shape::from_slice(a.shape());
            if let Some(axis) = axis {
                shape.remove(*axis);
            }
            shape
        })
        .collect();
    let of_one: Vec<&[usize]> = shapes.iter().map(|s| &s[..]).collect();
    let items = picks.items(&of_one);
    let factors = [0..1, second];
    let is_mapped = |range: &Range<usize>| v.axes[range.clone()].iter().any(Option::is_some);
    let mut operands = Vec::new();
    for range in &factors {
        for i in range.clone() {
            let operand = &v.inputs[i];
            if !is_mapped(range) {
                operands.push(operand.clone());
                continue;
            }
            let operand = batched(operand, v.axes[i], v.size)?;
            let mut shape = Shape::from_slice(&operand.shape()[1..]);
            shape[0] *= v.size;
            operands.push(operand.reshape(&shape)?);
        }
    }
    let first_index = v.inputs.len() - picks.count();
    let index = |there: bool, at: usize, range: &Range<usize>| -> Result<Option<Array>> {
        let matrices = shapes[range.start][0];
        let (own, mapped) = match there {
            true => (held(&v.inputs[at], matrices)?, v.axes[at]),
            false => (Array::arange(0.0, items as f64, 1.0, Dtype::Int32)?, None),
        };
        let own = batched(&own, mapped, v.size)?;
        let own = match is_mapped(range) {
            true => {
                let each = Array::arange(0.0, v.size as f64, 1.0, Dtype::Int32)?;
                let offset = bin(binary::MULTIPLY, &each, &like(&each, matrices as f64))?;
                bin(binary::ADD, &own, &offset.reshape(&[v.size, 1])?)?
            }
            false => own,
        };
        Ok(Some(own.reshape(&[v.size * items])?))
    };
    let indices = Indices {
        lhs: index(picks.lhs, first_index, &factors[0])?,
        rhs: index(picks.rhs, first_index + usize::from(picks.lhs), &factors[1])?,
    };
    let out = of(&operands, &indices)?;
    let [_, m, n] = [0, 1, 2].map(|i| out.shape()[i]);
    Ok((out.reshape(&[v.size, items, m, n])?, Some(0)))
}
