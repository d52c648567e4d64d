//! Orders and sizes of axes: reshape, transpose, diagonals.

use super::made;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Sequence, axes, integer, integers};
use crate::error::Res;
use crate::stream::StreamArg;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ultramarine::{Array, Result};

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
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: transpose diagonal trace);
    register_both(m)?;
    register_functions(m)
}
