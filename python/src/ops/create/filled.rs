//! Arrays filled with a number, or not at all.

use super::or_float;
use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Number, as_array, operand};
use crate::dtype::DtypeArg;
use crate::error::{Res, value};
use crate::stream::{DeviceArg, StreamArg, on, placed_on};
use pyo3::prelude::*;
use ultramarine::{Array, Dtype, Scalar};

macro_rules! filled {
    ($($(#[doc = $doc:literal])* $name:ident $op:literal = $f:expr, $example:literal => $out:literal;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     shape (int | Sequence[int]): Sizes of the dimensions.
        ///     dtype (Dtype | None): Dtype of the result; float32 by default.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
        ///
        /// Returns:
        ///     array: New array.
        ///
        /// Raises:
        ///     ValueError: If a size is negative, or the whole is too large.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(", $example)]
        #[doc = concat!("    ", $out)]
        #[pyfunction]
        #[pyo3(signature = (shape, dtype=None, *, stream=None, device=None),
               text_signature = "(shape, dtype=None, *, stream=None, device=None)")]
        fn $name(
            shape: Ints,
            dtype: Option<DtypeArg>,
            stream: Option<StreamArg>,
            device: Option<DeviceArg>,
        ) -> Res<PyArray> {
            let shape = shape.shape($op)?;
            Ok(PyArray::new(on(placed_on(stream, device)?, || $f(&shape, or_float(dtype)))?))
        }
        )*
    };
}

filled! {
    /// Creates an array of zeros.
    zeros "full" = Array::zeros, "2, mx.int32)" => "array([0, 0], dtype=int32)";
    /// Creates an array of ones.
    ones "full" = Array::ones, "3)" => "array([1, 1, 1], dtype=float32)";
    /// Creates an array whose elements are whatever its memory holds; bools are False.
    ///
    /// It is for foreign kernels that fill it through DLPack. In MLX the elements are zeros.
    empty "empty" = Array::empty, "(2, 3)).shape" => "(2, 3)";
}

macro_rules! like {
    ($($(#[doc = $doc:literal])* $name:ident = $f:expr, $example:literal => $out:literal;)*) => {
        $(
        $(#[doc = $doc])*
        ///
        /// Args:
        ///     a (array): Array that gives the shape.
        ///     dtype (Dtype | None): Dtype of the result; by default that of `a`.
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
        ///
        /// Returns:
        ///     array: New array.
        ///
        /// Example:
        #[doc = concat!("    >>> mx.", stringify!($name), "(mx.array([[1, 2, 3]])", $example)]
        #[doc = concat!("    ", $out)]
        #[pyfunction]
        #[pyo3(signature = (a, /, dtype=None, *, stream=None, device=None))]
        fn $name(
            a: ArrayArg,
            dtype: Option<DtypeArg>,
            stream: Option<StreamArg>,
            device: Option<DeviceArg>,
        ) -> Res<PyArray> {
            let dtype = dtype.map_or(a.0.dtype(), |d| *d);
            Ok(PyArray::new(on(placed_on(stream, device)?, || a.0.beside(|| ($f)(&a.0, dtype)))?))
        }
        )*
    };
}

like! {
    /// Creates an array of zeros in the shape of another.
    zeros_like = |a: &Array, dtype| Ok::<_, ultramarine::Error>(a.filled_like(Scalar::from_i64(dtype, 0))),
        ")" => "array([[0, 0, 0]], dtype=int32)";
    /// Creates an array of ones in the shape of another.
    ones_like = |a: &Array, dtype| Ok::<_, ultramarine::Error>(a.filled_like(Scalar::from_i64(dtype, 1))),
        ", mx.float16)" => "array([[1, 1, 1]], dtype=float16)";
    /// Creates an array in the shape of another, whose elements are whatever its memory holds: see
    /// `empty`.
    empty_like = |a: &Array, dtype| Array::empty(a.shape(), dtype),
        ").shape" => "(1, 3)";
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
            "[full] Values of shape {} do not broadcast to shape {}. Reshape them.",
            ultramarine::shape::Show(vals.shape()),
            ultramarine::shape::Show(shape)
        )));
    }
    Ok(vals.broadcast_to(shape)?)
}

/// Calls `make` on a stream, and copies a view of an array elsewhere to the stream's device.
fn filled_on(stream: Option<StreamArg>, make: impl FnOnce() -> Res<Array>) -> Res<PyArray> {
    let asked = stream.as_ref().map(|s| s.get());
    on(stream, || {
        let made = make()?;
        Ok(PyArray::new(match asked {
            Some(stream) if made.device() != stream.device => made.copy_to(stream.device)?,
            _ => made,
        }))
    })
}

/// Creates an array filled with a number, or with an array that is broadcast.
///
/// Args:
///     shape (int | Sequence[int]): Sizes of the dimensions.
///     vals (ArrayLike): Number or array to fill with.
///     dtype (Dtype | None): Dtype of the result; by default that of `vals`, for Python numbers
///         int32, float32, bool or complex64.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Filled array.
///
/// Raises:
///     ValueError: If a size is negative, or `vals` cannot be broadcast to the shape.
///
/// Example:
///     >>> mx.full((2, 2), 7)
///     array([[7, 7],
///            [7, 7]], dtype=int32)
#[pyfunction]
#[pyo3(signature = (shape, vals, dtype=None, *, stream=None, device=None))]
fn full(
    shape: Ints,
    vals: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let shape = shape.shape("full")?;
    filled_on(placed_on(stream, device)?, || fill(&shape, vals, dtype.map(|d| *d)))
}

/// Creates an array in the shape of another, filled with a number or an array that is
/// broadcast.
///
/// Args:
///     a (array): Array that gives the shape.
///     vals (ArrayLike): Number or array to fill with.
///     dtype (Dtype | None): Dtype of the result; by default that of `a`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Filled array.
///
/// Raises:
///     ValueError: If `vals` cannot be broadcast to the shape.
///
/// Example:
///     >>> mx.full_like(mx.array([1.5, 2]), 7)
///     array([7, 7], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, vals, dtype=None, *, stream=None, device=None))]
fn full_like(
    a: ArrayArg,
    vals: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let dtype = dtype.map_or(a.0.dtype(), |d| *d);
    let make = || fill(a.0.shape(), vals, Some(dtype));
    filled_on(placed_on(stream, device)?, || a.0.beside(make))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: zeros ones empty zeros_like ones_like empty_like full full_like);
    Ok(())
}
