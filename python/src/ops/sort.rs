//! Sorting and its relatives.

use crate::array::PyArray;
use crate::convert::{ArrayArg, operand};
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Side, Unique};

macro_rules! sorts {
    (
        plain { $($(#[doc = $doc:literal])* $name:ident;)* }
        counted { $($(#[doc = $cdoc:literal])* $counted:ident($k:ident);)* }
    ) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, axis=-1, *, stream=None))]
        fn $name(a: ArrayArg, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || a.0.$name(axis))?))
        }
        )*
        $(
        $(#[doc = $cdoc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, $k, axis=-1, *, stream=None))]
        fn $counted(
            a: ArrayArg,
            $k: isize,
            axis: Option<isize>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || a.0.$counted($k, axis))?))
        }
        )*

        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)* $($counted)* searchsorted unique _nonzero _unique_all);
            Ok(())
        }
    };
}

sorts! {
    plain {
        /// The elements in ascending order along an axis (`None`: flattened), NaN last.
        sort;
        /// The indices that sort the array along an axis (`None`: flattened).
        argsort;
    }
    counted {
        /// The array rearranged along an axis so that element `kth` is where sorting would
        /// put it, smaller ones before it, larger ones behind it.
        partition(kth);
        /// The indices of `partition`.
        argpartition(kth);
        /// The `k` largest elements along an axis, in no particular order.
        topk(k);
    }
}

/// The indices at which values go into a sorted array so that it stays sorted.
///
/// Args:
///     sorted_sequence (array): One dimension, ascending, NaN last.
///     values (array): What to find places for, of any shape. Both are compared in their
///         promoted dtype.
///     side (str, optional): For `'left'`, the default, an index is the number of elements that
///         are less than the value; for `'right'`, of those that are less or equal.
///
/// Returns:
///     array: uint32, of the shape of `values`.
#[pyfunction]
#[pyo3(signature = (sorted_sequence, values, /, side="left", *, stream=None))]
fn searchsorted(
    sorted_sequence: ArrayArg,
    values: ArrayArg,
    side: &str,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let side = Side::from_name(side)?;
    Ok(PyArray::new(on(stream, || sorted_sequence.0.searchsorted(&values.0, side))?))
}

/// The first `size` different elements of the flattened array, in ascending order.
///
/// The size is given, so that `a` is not evaluated. If there are more, the largest are left
/// out (elements that are among them have `size - 1` in the inverse); if there are fewer, the
/// rest of the values is `fill_value`, of the counts 0. NaN differs from NaN.
///
/// Args:
///     a (array): The array.
///     size (int): How many elements the result has.
///     return_index (bool, optional): Whether to give the index in the flattened array of each
///         element's first occurrence, too: uint32.
///     return_inverse (bool, optional): Whether to give the place in the result of each element
///         of `a`, too, in the shape of `a`: uint32.
///     return_counts (bool, optional): Whether to give how often each occurs, too: int32.
///     fill_value (scalar or array, optional): The default is the smallest element.
///
/// Returns:
///     array or tuple(array, ...): The elements; a tuple of them, index, inverse and counts, as
///     far as asked for.
#[pyfunction]
#[pyo3(signature = (
    a, /, size, return_index=false, return_inverse=false, return_counts=false, fill_value=None,
    *, stream=None
))]
#[expect(clippy::too_many_arguments, reason = "they are mlx's")]
fn unique<'py>(
    py: Python<'py>,
    a: ArrayArg,
    size: isize,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    fill_value: Option<&Bound<'py, PyAny>>,
    stream: Option<StreamArg>,
) -> Res<Bound<'py, PyAny>> {
    let Ok(size) = usize::try_from(size) else {
        return Err(value(format!("[unique] Received negative size {size}.")));
    };
    let fill = fill_value.map(|v| operand(v, Some(a.0.dtype()))).transpose()?;
    let found = on(stream, || a.0.unique(size, fill.as_ref()))?;
    let Unique { values, index, inverse, counts } = found;
    if !(return_index || return_inverse || return_counts) {
        return Ok(Bound::new(py, PyArray::new(values))?.into_any());
    }
    let mut parts = vec![values];
    for (wanted, part) in
        [(return_index, index), (return_inverse, inverse), (return_counts, counts)]
    {
        if wanted {
            parts.push(part);
        }
    }
    Ok(PyTuple::new(py, super::list(parts))?.into_any())
}

/// Where the elements are not zero: indices for each dimension. Evaluates the array.
#[pyfunction]
fn _nonzero(a: ArrayArg) -> Res<Vec<PyArray>> {
    Ok(super::list(a.0.nonzero()?))
}

/// All different elements, their first indices, the inverse and the counts. Evaluates the array.
#[pyfunction]
fn _unique_all(a: ArrayArg) -> Res<(PyArray, PyArray, PyArray, PyArray)> {
    let Unique { values, index, inverse, counts } = a.0.unique_all()?;
    let [values, index, inverse, counts] = [values, index, inverse, counts].map(PyArray::new);
    Ok((values, index, inverse, counts))
}
