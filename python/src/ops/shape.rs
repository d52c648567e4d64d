//! Functions that rearrange elements: views, joining, splitting, repeating.

use super::list;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Arrays, Ints, Operand, axes, integer, integers, operand};
use crate::error::{Res, type_, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, PadMode, Result};

fn made(stream: Option<StreamArg>, f: impl FnOnce() -> Result<Array>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, f)?))
}

/// A sequence of integers; a single integer is none.
pub struct Sequence(pub Vec<isize>);

impl FromPyObject<'_, '_> for Sequence {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Sequence(integers(&object)?))
    }
}

/// Functions of one array.
macro_rules! functions_only {
    ($register:ident; $(
        $(#[doc = $doc:literal])*
        $name:ident($($arg:ident: $t:ty $(= $default:expr)?),*) => |$a:ident| $body:expr;
    )*) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, $($arg $(= $default)?,)* *, stream=None))]
        fn $name(a: ArrayArg, $($arg: $t,)* stream: Option<StreamArg>) -> Res<PyArray> {
            let $a = &a.0;
            made(stream, || $body)
        }
        )*

        fn $register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)*);
            Ok(())
        }
    };
}

/// Functions and methods of one array with the same arguments.
macro_rules! both {
    ($register:ident; $(
        $(#[doc = $doc:literal])*
        $name:ident($($arg:ident: $t:ty $(= $default:expr)?),*) => |$a:ident| $body:expr;
    )*) => {
        functions_only! {
            $register;
            $($(#[doc = $doc])* $name($($arg: $t $(= $default)?),*) => |$a| $body;)*
        }

        #[pymethods]
        impl PyArray {
            $(
            $(#[doc = $doc])*
            #[pyo3(signature = ($($arg $(= $default)?,)* *, stream=None))]
            fn $name(
                &self,
                py: Python<'_>,
                $($arg: $t,)*
                stream: Option<StreamArg>,
            ) -> Res<PyArray> {
                $name(ArrayArg(self.get(py)), $($arg,)* stream)
            }
            )*
        }
    };
}

both! {
    register_both;
    /// The axes from `start_axis` to `end_axis`, both included, as one.
    flatten(start_axis: isize = 0, end_axis: isize = -1) => |a| a.flatten(start_axis, end_axis);
    /// The array without axes of size one: without all of them, or the given ones.
    squeeze(axis: Option<Ints> = None) => |a| a.squeeze(axes(&axis));
    /// The array with one axis moved to another place.
    moveaxis(source: isize, destination: isize) => |a| a.moveaxis(source, destination);
    /// The array with two axes exchanged.
    swapaxes(axis1: isize, axis2: isize) => |a| a.swapaxes(axis1, axis2);
    /// The diagonal of a matrix, or a matrix with a vector as its `k`-th diagonal.
    diag(k: isize = 0) => |a| a.diag(k);
}

functions_only! {
    register_functions;
    /// The elements in row-major order under another shape; one size may be -1.
    reshape(shape: Sequence) => |a| a.reshape(&shape.0);
    /// One axis cut into several, whose sizes are `shape`; one may be -1.
    unflatten(axis: isize, shape: Sequence) => |a| a.unflatten(axis, &shape.0);
    /// The array with axes of size one inserted: the result's axes `axis`.
    expand_dims(axis: Ints) => |a| a.expand_dims(&axis.0);
    /// The elements in reverse order along all axes or the given ones.
    flip(axis: Option<Ints> = None) => |a| a.flip(axes(&axis));
    /// The last two axes exchanged.
    matrix_transpose() => |a| matrix_transposed(a);
    /// The axes in another order, by default reversed.
    permute_dims(axes: Option<Sequence> = None) => |a| transposed(a, axes.as_ref().map(|s| &s.0[..]));
    /// The elements moved on by `shift` places along `axis` (of the flattened array if
    /// there is none), those beyond the end to the front.
    roll(shift: Ints, axis: Option<Ints> = None) => |a| {
        let shifts = match &axis {
            // One shift for several axes.
            Some(axes) if shift.0.len() == 1 => vec![shift.0[0]; axes.0.len()],
            _ => shift.0.clone(),
        };
        a.roll(&shifts, axes(&axis))
    };
}

fn matrix_transposed(a: &Array) -> Result<Array> {
    if a.ndim() < 2 {
        return Err(ultramarine::Error::value(
            "matrix_transpose",
            "Input array must have at least 2 dimensions.",
        ));
    }
    a.swapaxes(-1, -2)
}

fn transposed(a: &Array, order: Option<&[isize]>) -> Result<Array> {
    match order {
        None => a.transpose(),
        Some(order) => a.transpose_axes(order),
    }
}

/// The integers of `*args`: several, or one sequence.
fn variadic(args: &Bound<'_, PyTuple>) -> PyResult<Vec<isize>> {
    if args.len() == 1 {
        let first = args.get_item(0)?;
        if integer(&first)?.is_none() {
            return integers(&first);
        }
    }
    integers(args)
}

/// The axes in another order, by default reversed.
#[pyfunction]
#[pyo3(signature = (a, /, axes=None, *, stream=None))]
fn transpose(a: ArrayArg, axes: Option<Sequence>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || transposed(&a.0, axes.as_ref().map(|s| &s.0[..])))
}

/// The `offset`-th diagonal of two axes, as the last axis.
#[pyfunction]
#[pyo3(signature = (a, offset=0, axis1=0, axis2=1, stream=None))]
fn diagonal(
    a: ArrayArg,
    offset: isize,
    axis1: isize,
    axis2: isize,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    made(stream, || a.0.diagonal(offset, axis1, axis2))
}

/// The sum of the `offset`-th diagonal of two axes.
#[pyfunction]
#[pyo3(signature = (a, /, offset=0, axis1=0, axis2=1, dtype=None, *, stream=None))]
fn trace(
    a: ArrayArg,
    offset: isize,
    axis1: isize,
    axis2: isize,
    dtype: Option<crate::dtype::DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    made(stream, || {
        let diagonal = a.0.diagonal(offset, axis1, axis2)?;
        dtype.map_or_else(|| diagonal.clone(), |d| diagonal.astype(*d)).sum(Some(&[-1]), false)
    })
}

#[pymethods]
impl PyArray {
    /// The elements in row-major order under another shape, given as integers or as one
    /// sequence; one size may be -1.
    #[pyo3(signature = (*shape, stream=None))]
    fn reshape(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyTuple>,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        let (a, shape) = (self.get(py), variadic(shape)?);
        made(stream, || a.reshape(&shape))
    }

    /// The axes in another order, given as integers or as one sequence, by default
    /// reversed.
    #[pyo3(signature = (*axes, stream=None))]
    fn transpose(
        &self,
        py: Python<'_>,
        axes: &Bound<'_, PyTuple>,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        let a = self.get(py);
        let none = axes.is_empty() || (axes.len() == 1 && axes.get_item(0)?.is_none());
        let order = if none { None } else { Some(variadic(axes)?) };
        made(stream, || transposed(&a, order.as_deref()))
    }

    /// The array with its axes reversed.
    #[getter(T)]
    fn reversed(&self, py: Python<'_>) -> Res<PyArray> {
        Ok(PyArray::new(self.get(py).transpose()?))
    }

    /// The array with its last two axes exchanged.
    #[getter(mT)]
    fn matrix_transposed(&self, py: Python<'_>) -> Res<PyArray> {
        Ok(PyArray::new(matrix_transposed(&self.get(py))?))
    }

    /// The `offset`-th diagonal of two axes, as the last axis.
    #[pyo3(signature = (offset=0, axis1=0, axis2=1, stream=None))]
    fn diagonal(
        &self,
        py: Python<'_>,
        offset: isize,
        axis1: isize,
        axis2: isize,
        stream: Option<StreamArg>,
    ) -> Res<PyArray> {
        diagonal(ArrayArg(self.get(py)), offset, axis1, axis2, stream)
    }

    /// The array cut along an axis: into equal parts, or before the given indices.
    #[pyo3(signature = (indices_or_sections, axis=0, *, stream=None))]
    fn split(
        &self,
        py: Python<'_>,
        indices_or_sections: &Bound<'_, PyAny>,
        axis: isize,
        stream: Option<StreamArg>,
    ) -> Res<Vec<PyArray>> {
        split(ArrayArg(self.get(py)), indices_or_sections, axis, stream)
    }
}

/// The array cut along an axis: into equal parts, or before the given indices. A list.
#[pyfunction]
#[pyo3(signature = (a, /, indices_or_sections, axis=0, *, stream=None))]
fn split(
    a: ArrayArg,
    indices_or_sections: &Bound<'_, PyAny>,
    axis: isize,
    stream: Option<StreamArg>,
) -> Res<Vec<PyArray>> {
    let sequence = indices_or_sections.is_instance_of::<PyTuple>()
        || indices_or_sections.is_instance_of::<pyo3::types::PyList>();
    let sections = if sequence { None } else { integer(indices_or_sections)? };
    // Arrays of one index are sequences, those without dimensions integers.
    let sections = sections.filter(|_| {
        crate::convert::as_array(indices_or_sections)
            .is_none_or(|a| a.get().get(indices_or_sections.py()).ndim() == 0)
    });
    let parts = match sections {
        Some(n) => {
            // None, and fewer, is what the function itself refuses.
            let n = usize::try_from(n).unwrap_or(0);
            on(stream, || a.0.split(n, axis))?
        }
        None => {
            let at = integers(indices_or_sections)?;
            on(stream, || a.0.split_at(&at, axis))?
        }
    };
    Ok(list(parts))
}

/// The slices along an axis, without that axis. A tuple.
#[pyfunction]
#[pyo3(signature = (x, /, *, axis=0, stream=None))]
fn unstack<'py>(
    py: Python<'py>,
    x: ArrayArg,
    axis: isize,
    stream: Option<StreamArg>,
) -> Res<Bound<'py, PyTuple>> {
    Ok(PyTuple::new(py, list(on(stream, || x.0.unstack(axis))?))?)
}

/// Arrays joined along an axis that they have (`None`: flattened).
#[pyfunction]
#[pyo3(signature = (arrays, axis=0, *, stream=None))]
fn concatenate(arrays: Arrays, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || match axis {
        Some(axis) => ultramarine::concatenate(&arrays.0, axis),
        None => {
            let flat: Result<Vec<Array>> = arrays.0.iter().map(|a| a.flatten(0, -1)).collect();
            ultramarine::concatenate(&flat?, 0)
        }
    })
}

/// Arrays of one shape joined along a new axis.
#[pyfunction]
#[pyo3(signature = (arrays, axis=0, *, stream=None))]
fn stack(arrays: Arrays, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || ultramarine::stack(&arrays.0, axis.unwrap_or(0)))
}

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
        None => super::create::zero(),
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

/// The array with its elements in row-major order in memory. (`allow_col_major` is
/// accepted and has no effect.)
#[pyfunction]
#[pyo3(signature = (a, /, allow_col_major=false, *, stream=None))]
fn contiguous(a: ArrayArg, allow_col_major: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    let _ = allow_col_major;
    made(stream, || Ok(a.0.contiguous()))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: transpose diagonal trace split unstack concatenate stack broadcast_to
        broadcast_arrays atleast_1d atleast_2d atleast_3d repeat tile pad as_strided contiguous);
    register_both(m)?;
    register_functions(m)
}
