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

/// The array broadcast to a shape.
#[pyfunction]
#[pyo3(signature = (a, /, shape, *, stream=None))]
fn broadcast_to(a: Operand, shape: Sequence, stream: Option<StreamArg>) -> Res<PyArray> {
    let shape = Ints(shape.0).shape("broadcast_to")?;
    made(stream, || a.0.broadcast_to(&shape))
}

/// Arrays broadcast against each other. A list.
#[pyfunction]
#[pyo3(signature = (*arrays, stream=None))]
fn broadcast_arrays(arrays: Vec<ArrayArg>, stream: Option<StreamArg>) -> Res<Vec<PyArray>> {
    let arrays: Vec<Array> = arrays.into_iter().map(|a| a.0).collect();
    Ok(list(on(stream, || ultramarine::broadcast_arrays(&arrays))?))
}

/// The shape that arrays of several shapes are broadcast to.
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(shapes: &Bound<'py, PyTuple>) -> Res<Bound<'py, PyTuple>> {
    if shapes.is_empty() {
        return Err(value("[broadcast_shapes] Must provide at least one shape."));
    }
    let mut common: Vec<usize> = Vec::new();
    for shape in shapes.iter() {
        let shape = Ints(crate::convert::integers(&shape)?).shape("broadcast_shapes")?;
        common = ultramarine::shape::broadcast_shapes(&common, &shape)?.to_vec();
    }
    Ok(PyTuple::new(shapes.py(), common)?)
}

macro_rules! at_least {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// One array gives an array, several a list.
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
    /// Arrays with one axis at least.
    atleast_1d;
    /// Arrays with two axes at least.
    atleast_2d;
    /// Arrays with three axes at least.
    atleast_3d;
}

/// Each element repeated, along an axis or in the flattened array.
#[pyfunction]
#[pyo3(signature = (array, repeats, axis=None, *, stream=None))]
fn repeat(
    array: ArrayArg,
    repeats: isize,
    axis: Option<isize>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let repeats = usize::try_from(repeats)
        .map_err(|_| value("[repeat] Number of repeats cannot be negative."))?;
    made(stream, || array.0.repeat(repeats, axis))
}

/// The array repeated `reps` times along each axis.
#[pyfunction]
#[pyo3(signature = (a, reps, /, *, stream=None))]
fn tile(a: ArrayArg, reps: Ints, stream: Option<StreamArg>) -> Res<PyArray> {
    let reps = reps.sizes().ok_or_else(|| value("[tile] reps must not be negative."))?;
    made(stream, || a.0.tile(&reps))
}

/// Pairs of widths, one for each axis.
fn pad_widths(a: &Array, width: &Bound<'_, PyAny>) -> Res<Vec<(usize, usize)>> {
    let size = |axis: usize, n: isize, side: &str| {
        usize::try_from(n).map_err(|_| {
            value(format!(
                "Invalid {side} padding size ({n}) passed to pad for axis {axis}. \
                 Padding sizes must be non-negative"
            ))
        })
    };
    let pair = |axis: usize, widths: &[isize]| -> Res<(usize, usize)> {
        match *widths {
            [n] => Ok((size(axis, n, "low")?, size(axis, n, "high")?)),
            [low, high] => Ok((size(axis, low, "low")?, size(axis, high, "high")?)),
            _ => Err(value("[pad] each axis takes one or two padding sizes.")),
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

/// The array with elements added before and after each axis: by a constant, or by its
/// edges or their mirror image (`mode`: "constant", "edge", "reflect", "symmetric").
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

/// A view with any shape and strides (in elements) over the row-major elements, from
/// element `offset` on.
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
    let offset = usize::try_from(offset)
        .map_err(|_| value(format!("[as_strided] offset must not be negative but is {offset}.")))?;
    made(stream, || a.0.as_strided(&shape, &strides, offset))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: broadcast_to broadcast_arrays broadcast_shapes atleast_1d atleast_2d atleast_3d repeat tile pad
        as_strided);
    Ok(())
}
