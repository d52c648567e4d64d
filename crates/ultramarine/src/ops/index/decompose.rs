//! Decompositions of reads and writes through index arrays.

use crate::ops::index::gather::{Gather, IndexAxes, gather};
use crate::ops::index::scatter::{ScatterAxis, scatter};
use crate::ops::rules::decomposition::{
    Candidates, Decompose, bitcast, numbered, pairs, same_size, unpaired, wider,
};
use crate::{array::Array, dtype::Dtype, error::Result, ops::rules::builders::with_axis};
use ultramarine_abi::schema::scatter as kind;

/// Candidates for a read. Elements only move, so the read can run in another dtype.
fn moved(
    source: &Array,
    dtype: Dtype,
    candidates: &mut Candidates,
    read: &dyn Fn(&Array) -> Result<Array>,
) {
    for other in same_size(dtype) {
        candidates.add(read(&bitcast(source, other)).map(|r| bitcast(&r, dtype)));
    }
    if let Some(wide) = wider(dtype).or((dtype == Dtype::Bool).then_some(Dtype::Int32)) {
        candidates.add(read(&source.astype(wide)).map(|r| r.astype(dtype)));
    }
}

/// Index arrays in dtypes that a device is likely to support; `None` if all have such dtypes.
fn plain(indices: &[Array]) -> Option<Vec<Array>> {
    let dtype = indices.first()?.dtype();
    let to = match dtype {
        Dtype::Int32 | Dtype::Int64 => return None,
        d if d.size() < 4 => Dtype::Int32,
        _ => Dtype::Int64,
    };
    Some(indices.iter().map(|i| i.astype(to)).collect())
}

/// Candidates for a gather.
pub(crate) fn gather_candidates(of: &Gather, d: &Decompose<'_>, candidates: &mut Candidates) {
    let [source, indices @ ..] = d.inputs else { return };
    if let Some(indices) = plain(indices) {
        candidates.add(gather(source, &indices, &of.axes));
    }
    moved(source, d.dtype, candidates, &|s| gather(s, indices, &of.axes));
    if d.dtype.is_complex() {
        // The last axis of a slice stays last, so the axis of pairs does too.
        let read = pairs(source).and_then(|p| gather(&p, indices, &of.axes));
        candidates.add(read.and_then(|r| unpaired(&r)));
    }
}

/// Candidates for a gather along an axis.
pub(crate) fn gather_axis_candidates(axis: usize, d: &Decompose<'_>, candidates: &mut Candidates) {
    let [source, indices] = d.inputs else { return };
    if let Some(plain) = plain(std::slice::from_ref(indices)) {
        candidates.add(Ok(source.gather_axis(&plain[0], axis)));
    }
    moved(source, d.dtype, candidates, &|s| Ok(s.gather_axis(indices, axis)));
    let read = all_axes(indices, axis).and_then(|(all, axes)| gather(source, &all, &axes));
    candidates.add(read.and_then(|r| r.reshape(d.shape)));
}

/// An index array for each axis. All but the one for `axis` contain their own positions.
fn all_axes(indices: &Array, axis: usize) -> Result<(Vec<Array>, IndexAxes)> {
    let dtype = if indices.itemsize() < 8 && indices.dtype() != Dtype::Uint32 {
        Dtype::Int32
    } else {
        Dtype::Int64
    };
    let one = |i: usize| match i == axis {
        true => Ok(indices.astype(dtype)),
        false => Ok(numbered(indices.shape(), i)?.astype(dtype)),
    };
    let axes = (0..indices.ndim() as u8).collect();
    Ok(((0..indices.ndim()).map(one).collect::<Result<_>>()?, axes))
}

/// Updates of single elements, in the form that a scatter over all axes takes.
fn single(updates: &Array, ndim: usize) -> Result<Array> {
    (0..ndim).try_fold(updates.clone(), |u, _| with_axis(&u, u.ndim()))
}

/// Candidates for a write along an axis.
pub(crate) fn scatter_axis_candidates(
    of: &ScatterAxis,
    d: &Decompose<'_>,
    candidates: &mut Candidates,
) {
    let [source, indices, updates] = d.inputs else { return };
    let write = |s: &Array, i: &Array, u: &Array| s.put_axis(i, u, of.axis, of.kind);
    if let Some(plain) = plain(std::slice::from_ref(indices)) {
        candidates.add(write(source, &plain[0], updates));
    }
    written(of.kind, source, updates, candidates, &|s, u| write(s, indices, u));
    candidates.add(all_axes(indices, of.axis).and_then(|(all, axes)| {
        scatter(source, &all, &single(updates, source.ndim())?, &axes, of.kind)
    }));
}

/// Candidates for a scatter.
pub(crate) fn scatter_candidates(
    of: u32,
    axes: &[u8],
    d: &Decompose<'_>,
    candidates: &mut Candidates,
) {
    let [source, indices @ .., updates] = d.inputs else { return };
    if let Some(plain) = plain(indices) {
        candidates.add(scatter(source, &plain, updates, axes, of));
    }
    written(of, source, updates, candidates, &|s, u| scatter(s, indices, u, axes, of));
    if d.dtype.is_complex() && matches!(of, kind::SET | kind::SUM) {
        let both = pairs(source).and_then(|s| scatter(&s, indices, &pairs(updates)?, axes, of));
        candidates.add(both.and_then(|p| unpaired(&p)));
    }
}

/// Candidates for a write through another dtype.
fn written(
    of: u32,
    source: &Array,
    updates: &Array,
    candidates: &mut Candidates,
    write: &dyn Fn(&Array, &Array) -> Result<Array>,
) {
    let dtype = source.dtype();
    if of == kind::SET {
        for other in same_size(dtype) {
            let out = write(&bitcast(source, other), &bitcast(updates, other));
            candidates.add(out.map(|r| bitcast(&r, dtype)));
        }
    }
    // float16 and bfloat16 round after each addition.
    let exact = !dtype.is_inexact() || !matches!(of, kind::SUM | kind::PROD);
    if let Some(wide) = wider(dtype).filter(|_| exact) {
        candidates.add(write(&source.astype(wide), &updates.astype(wide)).map(|r| r.astype(dtype)));
    }
}
