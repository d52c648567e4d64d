//! Broadcasting, repetition, padding and strided views.

use super::made;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Operand, Sequence, integer, integers, operand};
use crate::error::{Res, type_, value};
use crate::ops::list;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, Dtype, PadMode, Result, Scalar};

/// Broadcasts an array to a shape, without a copy.
///
/// Args:
///     a (ArrayLike): Array or number.
///     shape (Sequence[int]): Sizes; each axis of `a`, counted from the last, has that size or
///         size 1.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: View of that shape.
///
/// Raises:
///     ValueError: If the array cannot be broadcast to the shape.
///
/// Example:
///     >>> mx.broadcast_to(mx.array([1, 2]), (2, 2))
///     array([[1, 2],
///            [1, 2]], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, /, shape, *, stream=None))]
fn broadcast_to(a: Operand, shape: Sequence, stream: Option<StreamArg>) -> Res<PyArray> {
    let shape = Ints(shape.0).shape("broadcast_to")?;
    made(stream, || a.0.broadcast_to(&shape))
}

/// Broadcasts arrays against each other, without copies.
///
/// Args:
///     *arrays (array): Arrays whose shapes can be broadcast.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     list[array]: Views of the arrays in the common shape.
///
/// Raises:
///     ValueError: If the shapes cannot be broadcast.
///
/// Example:
///     >>> [x.shape for x in mx.broadcast_arrays(mx.ones((2, 1)), mx.ones(3))]
///     [(2, 3), (2, 3)]
#[pyfunction]
#[pyo3(signature = (*arrays, stream=None))]
fn broadcast_arrays(arrays: Vec<ArrayArg>, stream: Option<StreamArg>) -> Res<Vec<PyArray>> {
    let arrays: Vec<Array> = arrays.into_iter().map(|a| a.0).collect();
    Ok(list(on(stream, || ultramarine::broadcast_arrays(&arrays))?))
}

/// Computes the shape that arrays of several shapes are broadcast to.
///
/// Args:
///     *shapes (Sequence[int]): Shapes, one at least.
///
/// Returns:
///     tuple[int, ...]: The common shape.
///
/// Raises:
///     ValueError: If there are no shapes, or they cannot be broadcast.
///
/// Example:
///     >>> mx.broadcast_shapes((2, 1), (3,))
///     (2, 3)
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(shapes: &Bound<'py, PyTuple>) -> Res<Bound<'py, PyTuple>> {
    if shapes.is_empty() {
        return Err(value("[broadcast_shapes] Must provide at least one shape. Pass one."));
    }
    let mut common: Vec<usize> = Vec::new();
    for shape in shapes.iter() {
        let shape = Ints(crate::convert::integers(&shape)?).shape("broadcast_shapes")?;
        common = ultramarine::shape::broadcast_shapes(&common, &shape)?.to_vec();
    }
    Ok(PyTuple::new(shapes.py(), common)?)
}

macro_rules! at_least {
    ($($(#[doc = $doc:literal])* $name:ident $out:literal;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     *arys (array): Arrays of any shape.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array | list[array]: View of the array; a list of views, if there are several arrays.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(mx.ones(2)).shape")]
        #[doc = concat!("    ", $out)]
        #[pyfunction]
        #[pyo3(signature = (*arys, stream=None))]
        fn $name<'py>(
            py: Python<'py>,
            arys: Vec<ArrayArg>,
            stream: Option<StreamArg>,
        ) -> Res<Bound<'py, PyAny>> {
            let all: Vec<Array> =
                on(stream, || arys.iter().map(|a| a.0.$name()).collect::<Result<_>>())?;
            let mut all = list(all);
            if all.len() == 1
                && let Some(only) = all.pop()
            {
                return Ok(Bound::new(py, only)?.into_any());
            }
            Ok(pyo3::types::PyList::new(py, all)?.into_any())
        }
    )*};
}

at_least! {
    /// Gives arrays without dimensions one axis of size 1.
    atleast_1d "(2,)";
    /// Gives arrays of less than two dimensions axes of size 1; a vector becomes a row.
    atleast_2d "(1, 2)";
    /// Gives arrays of less than three dimensions axes of size 1; a matrix gets them behind its
    /// own.
    atleast_3d "(1, 2, 1)";
}

/// Repeats each element a number of times.
///
/// Args:
///     array (array): Array of any shape.
///     repeats (int): Number of times.
///     axis (int | None): Axis to repeat along; by default the array is flattened.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Array whose axis is `repeats` times as long.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If `repeats` is negative.
///
/// Example:
///     >>> mx.repeat(mx.array([1, 2]), 2)
///     array([1, 1, 2, 2], dtype=int32)
#[pyfunction]
#[pyo3(signature = (array, repeats, axis=None, *, stream=None))]
fn repeat(
    array: ArrayArg,
    repeats: isize,
    axis: Option<isize>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let repeats = usize::try_from(repeats)
        .map_err(|_| value("[repeat] Number of repeats cannot be negative. Pass 0 or more."))?;
    made(stream, || array.0.repeat(repeats, axis))
}

/// Repeats a whole array along its axes.
///
/// Args:
///     a (array): Array of any shape.
///     reps (int | Sequence[int]): Number of times for each of the last axes; with more numbers
///         than axes, axes are added in front.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Repeated array.
///
/// Raises:
///     ValueError: If a number is negative.
///
/// Example:
///     >>> mx.tile(mx.array([1, 2]), (2, 2))
///     array([[1, 2, 1, 2],
///            [1, 2, 1, 2]], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, reps, /, *, stream=None))]
fn tile(a: ArrayArg, reps: Ints, stream: Option<StreamArg>) -> Res<PyArray> {
    let reps =
        reps.sizes().ok_or_else(|| value("[tile] reps must not be negative. Pass 0 or more."))?;
    made(stream, || a.0.tile(&reps))
}

/// Pairs of widths, one for each axis.
fn pad_widths(a: &Array, width: &Bound<'_, PyAny>) -> Res<Vec<(usize, usize)>> {
    let size = |axis: usize, n: isize, side: &str| {
        usize::try_from(n).map_err(|_| {
            value(format!(
                "[pad] Invalid {side} padding size ({n}) passed to pad for axis {axis}. \
                 Padding sizes must be non-negative: slice the array to remove elements."
            ))
        })
    };
    let pair = |axis: usize, widths: &[isize]| -> Res<(usize, usize)> {
        match *widths {
            [n] => Ok((size(axis, n, "low")?, size(axis, n, "high")?)),
            [low, high] => Ok((size(axis, low, "low")?, size(axis, high, "high")?)),
            _ => Err(value(
                "[pad] Each axis has one or two padding sizes. Pass (before, after), or one number for both.",
            )),
        }
    };
    if let Some(n) = integer(width)? {
        return (0..a.ndim()).map(|axis| pair(axis, &[n])).collect();
    }
    let items = width
        .try_iter()
        .map_err(|_| type_("pad: pad_width must be an int or a sequence"))?
        .collect::<PyResult<Vec<_>>>()?;
    if items.iter().map(integer).collect::<PyResult<Vec<_>>>()?.iter().all(Option::is_some) {
        let widths = integers(width)?;
        return (0..a.ndim()).map(|axis| pair(axis, &widths)).collect();
    }
    let mut pairs = Vec::new();
    for (axis, item) in items.iter().enumerate() {
        pairs.push(pair(axis, &integers(item)?)?);
    }
    if pairs.len() == 1 {
        pairs = vec![pairs[0]; a.ndim()];
    }
    Ok(pairs)
}

/// Adds elements before and after each axis.
///
/// Args:
///     a (array): Array of any shape.
///     pad_width (int | Sequence[int] | Sequence[Sequence[int]]): One width for all, a pair
///         (before, after) for all axes, or a pair for each axis.
///     mode (Literal["constant", "edge", "reflect", "symmetric"]): New elements: "constant",
///         the "edge", or the mirror image without ("reflect") or with ("symmetric") the edge.
///     constant_values (ArrayLike): Value of new elements for the mode "constant".
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Padded array.
///
/// Raises:
///     ValueError: If a width is negative, the widths do not fit the axes, or the mode is
///         another word.
///
/// Example:
///     >>> mx.pad(mx.array([1, 2, 3]), (1, 2), mode="reflect")
///     array([2, 1, 2, 3, 2, 1], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, pad_width, mode="constant", constant_values=None, *, stream=None),
       text_signature = "(a, pad_width, mode='constant', constant_values=0, *, stream=None)")]
fn pad(
    a: ArrayArg,
    pad_width: &Bound<'_, PyAny>,
    mode: &str,
    constant_values: Option<&Bound<'_, PyAny>>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let widths = pad_widths(&a.0, pad_width)?;
    let fill = match constant_values {
        Some(v) => operand(v, Some(a.0.dtype()))?,
        None => Array::scalar(Scalar::from_i64(Dtype::Int32, 0)),
    };
    let mode = PadMode::from_name(mode)?;
    made(stream, || a.0.pad(&widths, mode, &fill))
}

/// Views the row-major elements of an array with any shape and strides.
///
/// Elements may be seen several times.
///
/// Args:
///     a (array): Array of any shape.
///     shape (Sequence[int] | None): Shape of the view; by default that of `a`.
///     strides (Sequence[int] | None): Distances, in elements, along each axis; by default
///         those of a row-major array.
///     offset (int): First element of the view.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: View of that shape.
///
/// Raises:
///     ValueError: If the view would leave the array.
///
/// Example:
///     >>> mx.as_strided(mx.arange(6), (3, 2), (1, 2))
///     array([[0, 2],
///            [1, 3],
///            [2, 4]], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, /, shape=None, strides=None, offset=0, *, stream=None))]
fn as_strided(
    a: ArrayArg,
    shape: Option<Sequence>,
    strides: Option<Sequence>,
    offset: isize,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let shape = match shape {
        Some(shape) => Ints(shape.0).shape("as_strided")?,
        None => a.0.shape().to_vec(),
    };
    let strides = match strides {
        Some(strides) => strides.0,
        None => ultramarine::shape::contiguous_strides(&shape).to_vec(),
    };
    let offset = usize::try_from(offset).map_err(|_| {
        value(format!("[as_strided] offset must not be negative but is {offset}. Pass 0 or more."))
    })?;
    made(stream, || a.0.as_strided(&shape, &strides, offset))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: broadcast_to broadcast_arrays broadcast_shapes atleast_1d atleast_2d atleast_3d repeat tile pad
        as_strided);
    Ok(())
}
