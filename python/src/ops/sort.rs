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
        plain { $($(#[doc = $doc:literal])* $name:ident => $out:literal;)* }
        counted { $($(#[doc = $cdoc:literal])* $counted:ident($(#[doc = $about:literal])* $k:ident)
            $signature:literal => $example:literal $found:literal;)* }
    ) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     a (array): Array of any shape.
        ///     axis (int | None): Axis to sort along; None for the flattened array.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results in the shape of `a`, or flattened.
        ///
        /// Raises:
        ///     IndexError: If the axis is out of range.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(mx.array([3, 1, 2]))")]
        #[doc = concat!("    array(", $out, ")")]
        #[pyfunction]
        #[pyo3(signature = (a, /, axis=-1, *, stream=None),
            text_signature = "(a, /, axis=-1, *, stream=None)")]
        fn $name(a: ArrayArg, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || a.0.$name(axis))?))
        }
        )*
        $(
        $(#[doc = $cdoc])*
        ///
        /// Args:
        ///     a (array): Array of any shape.
        $(#[doc = $about])*
        ///     axis (int | None): Axis to sort along; None for the flattened array.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Results along the axis, or flattened.
        ///
        /// Raises:
        ///     IndexError: If the axis is out of range.
        ///     ValueError: If the number is out of range.
        ///
        /// Example:
        #[doc = concat!("    >>> ", $example)]
        #[doc = concat!("    array(", $found, ")")]
        #[pyfunction]
        #[pyo3(signature = (a, /, $k, axis=-1, *, stream=None), text_signature = $signature)]
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
        /// Sorts elements in ascending order along an axis; NaN comes last.
        sort => "[1, 2, 3], dtype=int32";
        /// Finds the indices, as uint32, that sort an array along an axis; NaN comes last.
        argsort => "[1, 2, 0], dtype=uint32";
    }
    counted {
        /// Rearranges elements so that element `kth` is where sorting would put it.
        ///
        /// Smaller or equal elements come before it and larger or equal ones behind it, in no
        /// particular order.
        partition(
            ///     kth (int): Index of the element; negative ones count from the end.
            kth
        ) "(a, /, kth, axis=-1, *, stream=None)"
            => "mx.partition(mx.array([3, 1, 2]), 1)[1]" "2, dtype=int32";
        /// Finds the indices, as uint32, by which `partition` rearranges elements.
        argpartition(
            ///     kth (int): Index of the element; negative ones count from the end.
            kth
        ) "(a, /, kth, axis=-1, *, stream=None)"
            => "mx.argpartition(mx.array([3, 1, 2]), 1)[1]" "2, dtype=uint32";
        /// Finds the `k` largest elements along an axis, in no particular order.
        topk(
            ///     k (int): Number of elements, not more than the axis has.
            k
        ) "(a, /, k, axis=-1, *, stream=None)"
            => "mx.sort(mx.topk(mx.array([3, 1, 4, 2]), 2))" "[3, 4], dtype=int32";
    }
}

/// Finds where values go into a sorted array so that it stays sorted.
///
/// Args:
///     sorted_sequence (array): One dimension, ascending, NaN last.
///     values (array): Values of any shape; both are compared in their promoted dtype.
///     side (Literal["left", "right"]): An index counts the elements that are less than the
///         value ("left") or less or equal ("right").
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Indices as uint32, in the shape of `values`.
///
/// Raises:
///     ValueError: If the sequence has not exactly one dimension, or `side` is another word.
///
/// Example:
///     >>> mx.searchsorted(mx.array([1, 3, 5]), mx.array([3, 9]))
///     array([1, 3], dtype=uint32)
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

/// Finds the first `size` different elements of the flattened array, in ascending order.
///
/// The size is given so that `a` is not evaluated. Further elements are left out, and have
/// `size - 1` in the inverse. Missing ones are filled up: values with `fill_value`, counts with
/// 0. NaN differs from NaN.
///
/// Args:
///     a (array): Array of any shape.
///     size (int): Number of elements of the result.
///     return_index (bool): Also returns the index in the flattened array of the first
///         occurrence of each: uint32.
///     return_inverse (bool): Also returns the position in the result of each element of `a`:
///         uint32, in its shape.
///     return_counts (bool): Also returns how often each occurs: int32.
///     fill_value (ArrayLike | None): Number or array of one element; by default the smallest
///         element.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array | tuple[array, ...]: The elements; or a tuple of them, index, inverse and counts,
///         as far as asked for.
///
/// Raises:
///     ValueError: If `size` is negative, or `a` is empty and there is nothing to fill with.
///
/// Example:
///     >>> mx.unique(mx.array([3, 1, 3]), 2, return_counts=True)
///     (array([1, 3], dtype=int32), array([1, 2], dtype=int32))
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
        return Err(value(format!("[unique] Received negative size {size}. Pass 0 or more.")));
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
