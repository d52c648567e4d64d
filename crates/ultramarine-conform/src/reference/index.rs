//! Gathers, scatters, dynamic slices.

use super::elementwise;
use crate::compare::Expected;
use crate::dtype::{DType, Num};
use crate::tensor::{Array, each_index, row_major};
use ultramarine_abi::schema::{binary, scatter};

/// Normalises an index into an axis of size `n`, for a slice of size `width`. Returns `None` if it
/// is out of range.
fn normal(index: Num, n: i64, width: i64) -> Option<i64> {
    let i = index.int();
    let i = if i < 0 { i + i128::from(n) } else { i };
    (0..=i128::from(n - width)).contains(&i).then_some(i as i64)
}

/// Like [`normal`], but moves an index that is out of range into the range.
pub(super) fn clamped(index: Num, n: i64, width: i64) -> i64 {
    let i = index.int();
    let i = if i < 0 { i + i128::from(n) } else { i };
    i.clamp(0, i128::from(n - width)) as i64
}

/// GATHER: the output's shape and values.
pub fn gather(
    source: &Array,
    indices: &[Array],
    axes: &[usize],
    slice: &[i64],
) -> (Vec<i64>, Vec<Expected>) {
    let split = indices.first().map_or(0, |i| i.shape.len());
    let mut shape = indices.first().map_or(Vec::new(), |i| i.shape.clone());
    shape.extend(slice);
    let mut expected = Vec::new();
    each_index(&shape, |at| {
        let (position, within) = at.split_at(split);
        let mut from = within.to_vec();
        for (array, axis) in indices.iter().zip(axes) {
            from[*axis] += clamped(array.at(position), source.shape[*axis], slice[*axis]);
        }
        expected.push(Expected::exact(source.at(&from)));
    });
    (shape, expected)
}

/// Combines an update with the existing value.
fn combine(code: u32, dtype: DType, old: Expected, update: Num) -> Expected {
    let op = match code {
        scatter::SUM => binary::ADD,
        scatter::PROD => binary::MULTIPLY,
        scatter::MIN => binary::MINIMUM,
        scatter::MAX => binary::MAXIMUM,
        _ => return Expected::exact(update),
    };
    let Some(value) = elementwise::binary(op, dtype, old.value, update) else {
        return Expected::ANY;
    };
    if !(dtype.is_float() || dtype.is_complex()) {
        return Expected::exact(value);
    }
    // Each step may round to the dtype, and the updates may be applied in any order.
    let size = old.value.complex().norm().max(update.complex().norm()).max(value.complex().norm());
    let step = match code {
        scatter::SUM | scatter::PROD => 2.0 * dtype.epsilon() * size,
        _ => 0.0,
    };
    let grown = if code == scatter::PROD { update.complex().norm().max(1.0) } else { 1.0 };
    Expected { slack: old.slack * grown + step, at: size.max(old.at), ..Expected::exact(value) }
}

/// SCATTER.
pub fn scatter(
    code: u32,
    source: &Array,
    indices: &[Array],
    updates: &Array,
    axes: &[usize],
) -> Vec<Expected> {
    let split = indices.first().map_or(0, |i| i.shape.len());
    let mut expected: Vec<Expected> = source.values.iter().map(|v| Expected::exact(*v)).collect();
    let strides = row_major(&source.shape);
    let slice = &updates.shape[split..];
    each_index(&updates.shape, |at| {
        let (position, within) = at.split_at(split);
        let mut to = within.to_vec();
        for (array, axis) in indices.iter().zip(axes) {
            match normal(array.at(position), source.shape[*axis], slice[*axis]) {
                Some(i) => to[*axis] += i,
                None => return,
            }
        }
        let offset: i64 = to.iter().zip(&strides).map(|(i, s)| i * s).sum();
        let expected = &mut expected[offset as usize];
        *expected = combine(code, source.dtype, *expected, updates.at(at));
    });
    expected
}

/// GATHER_AXIS.
pub fn gather_axis(axis: usize, source: &Array, indices: &Array) -> Vec<Expected> {
    let mut expected = Vec::new();
    each_index(&indices.shape, |at| {
        let mut from = at.to_vec();
        from[axis] = clamped(indices.at(at), source.shape[axis], 1);
        expected.push(Expected::exact(source.at(&from)));
    });
    expected
}

/// SCATTER_AXIS.
pub fn scatter_axis(
    code: u32,
    axis: usize,
    source: &Array,
    indices: &Array,
    updates: &Array,
) -> Vec<Expected> {
    let mut expected: Vec<Expected> = source.values.iter().map(|v| Expected::exact(*v)).collect();
    let strides = row_major(&source.shape);
    each_index(&indices.shape, |at| {
        let mut to = at.to_vec();
        let Some(i) = normal(indices.at(at), source.shape[axis], 1) else { return };
        to[axis] = i;
        let offset: i64 = to.iter().zip(&strides).map(|(i, s)| i * s).sum();
        let expected = &mut expected[offset as usize];
        *expected = combine(code, source.dtype, *expected, updates.at(at));
    });
    expected
}

/// Returns the beginning of a window along every axis.
fn first(source: &[i64], starts: &Array, axes: &[usize], window: &[i64]) -> Vec<i64> {
    let mut first = vec![0; source.len()];
    for (i, axis) in axes.iter().enumerate() {
        let last = i128::from(source[*axis] - window[*axis]);
        first[*axis] = starts.at(&[i as i64]).int().clamp(0, last) as i64;
    }
    first
}

/// DYNAMIC_SLICE.
pub fn dynamic_slice(
    source: &Array,
    starts: &Array,
    axes: &[usize],
    window: &[i64],
) -> Vec<Expected> {
    let first = first(&source.shape, starts, axes, window);
    let mut expected = Vec::new();
    each_index(window, |at| {
        let from: Vec<i64> = at.iter().zip(&first).map(|(i, first)| i + first).collect();
        expected.push(Expected::exact(source.at(&from)));
    });
    expected
}

/// DYNAMIC_SLICE_UPDATE.
pub fn dynamic_slice_update(
    source: &Array,
    starts: &Array,
    update: &Array,
    axes: &[usize],
) -> Vec<Expected> {
    let first = first(&source.shape, starts, axes, &update.shape);
    let mut expected: Vec<Expected> = source.values.iter().map(|v| Expected::exact(*v)).collect();
    let strides = row_major(&source.shape);
    each_index(&update.shape, |at| {
        let places = at.iter().zip(&first).zip(&strides);
        let offset: i64 = places.map(|((i, first), stride)| (i + first) * stride).sum();
        expected[offset as usize] = Expected::exact(update.at(at));
    });
    expected
}
