//! Arrays filled with a number, or not at all.

use super::or_float;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Number, as_array, operand};
use crate::dtype::DtypeArg;
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::{Array, Dtype, Scalar};

macro_rules! filled {
    ($($(#[doc = $doc:literal])* $name:ident $op:literal = $f:expr;)*) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (shape, dtype=None, *, stream=None),
               text_signature = "(shape, dtype=None, *, stream=None)")]
        fn $name(
            shape: Ints,
            dtype: Option<DtypeArg>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let shape = shape.shape($op)?;
            Ok(PyArray::new(on(stream, || $f(&shape, or_float(dtype)))?))
        }
        )*
    };
}

filled! {
    /// An array of zeros, float32 unless another dtype is given.
    zeros "full" = Array::zeros;
    /// An array of ones, float32 unless another dtype is given.
    ones "full" = Array::ones;
    /// An array whose elements are whatever its memory holds (bool: False), float32 unless
    /// another dtype is given. In MLX they are zeros.
    ///
    /// Args:
    ///     shape (int or sequence of int): The sizes of the dimensions.
    ///     dtype (Dtype, optional): The dtype.
    ///     stream (Stream or Device, optional): Where the memory shall be.
    ///
    /// Returns:
    ///     array: The array, to be filled by somebody else: a foreign kernel, through DLPack.
    ///
    /// Raises:
    ///     ValueError: If a size is negative, or the whole is too large.
    empty "empty" = Array::empty;
}

macro_rules! like {
    ($($(#[doc = $doc:literal])* $name:ident = $f:expr;)*) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, dtype=None, *, stream=None))]
        fn $name(
            a: ArrayArg,
            dtype: Option<DtypeArg>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let dtype = dtype.map_or(a.0.dtype(), |d| *d);
            Ok(PyArray::new(on(stream, || a.0.beside(|| ($f)(&a.0, dtype)))?))
        }
        )*
    };
}

like! {
    /// Zeros in the shape of another array, and in its dtype unless one is given.
    zeros_like = |a: &Array, dtype| Ok::<_, ultramarine::Error>(a.filled_like(Scalar::from_i64(dtype, 0)));
    /// Ones in the shape of another array, and in its dtype unless one is given.
    ones_like = |a: &Array, dtype| Ok::<_, ultramarine::Error>(a.filled_like(Scalar::from_i64(dtype, 1)));
    /// An array in the shape of another, and in its dtype unless one is given, whose elements are
    /// whatever its memory holds: see `empty`.
    empty_like = |a: &Array, dtype| Array::empty(a.shape(), dtype);
}

/// `vals` broadcast to a shape, in a dtype.
fn fill(shape: &[usize], vals: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> Res<Array> {
    if as_array(vals).is_none()
        && let Some(n) = Number::of(vals)?
    {
        // Integers are checked, as beside an array of that dtype.
        let own = match dtype {
            Some(d) => n.beside(d)?.cast(d),
            None => n.cast(n.dtype()),
        };
        return Ok(Array::full(shape, own)?);
    }
    let vals = operand(vals, dtype)?;
    let vals = dtype.map_or_else(|| vals.clone(), |d| vals.astype(d));
    let common = ultramarine::shape::broadcast_shapes(vals.shape(), shape)?;
    if common[..] != *shape {
        return Err(value(format!(
            "[full] Values of shape {} do not fill shape {}.",
            ultramarine::shape::Show(vals.shape()),
            ultramarine::shape::Show(shape)
        )));
    }
    Ok(vals.broadcast_to(shape)?)
}

/// An array filled with a number, or with an array that is broadcast.
#[pyfunction]
#[pyo3(signature = (shape, vals, dtype=None, *, stream=None))]
fn full(
    shape: Ints,
    vals: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let shape = shape.shape("full")?;
    Ok(PyArray::new(on(stream, || fill(&shape, vals, dtype.map(|d| *d)))?))
}

/// `full` in the shape of another array, and in its dtype unless one is given.
#[pyfunction]
#[pyo3(signature = (a, vals, dtype=None, *, stream=None))]
fn full_like(
    a: ArrayArg,
    vals: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let dtype = dtype.map_or(a.0.dtype(), |d| *d);
    let make = || fill(a.0.shape(), vals, Some(dtype));
    Ok(PyArray::new(on(stream, || a.0.beside(make))?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: zeros ones empty zeros_like ones_like empty_like full full_like);
    Ok(())
}
