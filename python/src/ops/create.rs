//! Creation of arrays.

use crate::array::PyArray;
use crate::array::make::{self, Copy, Wish};
use crate::convert::{ArrayArg, Ints, Number, as_array, integer, operand};
use crate::dtype::DtypeArg;
use crate::error::{Res, type_, value};
use crate::stream::{DeviceArg, StreamArg, on};
use pyo3::prelude::*;
use ultramarine::{Array, Dtype, Scalar};

fn or_float(dtype: Option<DtypeArg>) -> Dtype {
    dtype.map_or(Dtype::Float32, |d| *d)
}

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

/// Numbers from `start` (0 unless a stop is given, too) in steps of `step` to before
/// `stop`. Integers give int32 (int64 where that is too small), floats float32.
#[pyfunction]
#[pyo3(signature = (start=None, stop=None, step=None, dtype=None, *, stream=None))]
fn arange(
    start: Option<&Bound<'_, PyAny>>,
    stop: Option<&Bound<'_, PyAny>>,
    step: Option<&Bound<'_, PyAny>>,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (start, stop) = match (start, stop) {
        (Some(start), Some(stop)) => (Some(start), stop),
        (Some(stop), None) | (None, Some(stop)) => (None, stop),
        (None, None) => return Err(type_("arange: a stop is needed")),
    };
    let mut own = Dtype::Int32;
    let mut number = |argument: Option<&Bound<'_, PyAny>>, default: f64| -> Res<f64> {
        let Some(object) = argument else { return Ok(default) };
        let (v, dtype) = match Number::of(object)? {
            Some(Number::Bool(_)) => return Err(value("bool not supported for arange.")),
            Some(Number::Int(v)) => (v as f64, Number::Int(v).dtype()),
            Some(Number::Float(v)) => (v, Dtype::Float32),
            Some(_) => return Err(type_("arange: expected real numbers")),
            None => match integer(object)? {
                Some(v) => (v as f64, Number::Int(v as i64).dtype()),
                None => (object.extract::<f64>()?, Dtype::Float32),
            },
        };
        own = own.promote(dtype);
        Ok(v)
    };
    let (start, stop, step) = (number(start, 0.0)?, number(Some(stop), 0.0)?, number(step, 1.0)?);
    let dtype = dtype.map_or(own, |d| *d);
    Ok(PyArray::new(on(stream, || Array::arange(start, stop, step, dtype))?))
}

/// `num` numbers evenly spaced from `start` to `stop`, the latter included if `endpoint`.
#[pyfunction]
#[pyo3(signature = (start, stop, num=50, endpoint=true, dtype=None, stream=None),
       text_signature = "(start, stop, num=50, endpoint=True, dtype=None, stream=None)")]
fn linspace(
    start: f64,
    stop: f64,
    num: Option<isize>,
    endpoint: bool,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let num = num.unwrap_or(50);
    let count = usize::try_from(num).map_err(|_| {
        value(format!("[linspace] number of samples, {num}, must be non-negative."))
    })?;
    let dtype = or_float(dtype);
    Ok(PyArray::new(on(stream, || Array::linspace(start, stop, count, endpoint, dtype))?))
}

/// Rows and columns of a matrix.
fn sides(op: &str, n: isize, m: Option<isize>) -> Res<(usize, usize)> {
    match (usize::try_from(n), usize::try_from(m.unwrap_or(n))) {
        (Ok(n), Ok(m)) => Ok((n, m)),
        _ => Err(value(format!("[{op}] N and M must be positive integers."))),
    }
}

/// A matrix with ones on the `k`-th diagonal and zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, k=0, dtype=None, *, stream=None),
       text_signature = "(n, m=None, k=0, dtype=None, *, stream=None)")]
fn eye(
    n: isize,
    m: Option<isize>,
    k: isize,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (n, m) = sides("eye", n, m)?;
    Ok(PyArray::new(on(stream, || Array::eye(n, m, k, or_float(dtype)))?))
}

/// The identity matrix of size `n`.
#[pyfunction]
#[pyo3(signature = (n, dtype=None, *, stream=None),
       text_signature = "(n, dtype=None, *, stream=None)")]
fn identity(n: isize, dtype: Option<DtypeArg>, stream: Option<StreamArg>) -> Res<PyArray> {
    eye(n, None, 0, dtype, stream)
}

/// A matrix with ones on and below the `k`-th diagonal and zeros above.
#[pyfunction]
#[pyo3(signature = (n, m=None, k=0, dtype=None, *, stream=None))]
fn tri(
    n: isize,
    m: Option<isize>,
    k: isize,
    dtype: Option<DtypeArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    // Fewer than none are none, as in mlx; `eye` refuses them.
    let (n, m) = (n.max(0) as usize, m.unwrap_or(n).max(0) as usize);
    Ok(PyArray::new(on(stream, || Array::tri(n, m, k, or_float(dtype)))?))
}

/// The array with zeros above the `k`-th diagonal of its last two axes.
#[pyfunction]
#[pyo3(signature = (x, k=0, *, stream=None))]
fn tril(x: ArrayArg, k: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || x.0.tril(k))?))
}

/// The array with zeros below the `k`-th diagonal of its last two axes.
#[pyfunction]
#[pyo3(signature = (x, k=0, *, stream=None))]
fn triu(x: ArrayArg, k: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, || x.0.triu(k))?))
}

/// Coordinate arrays of the grid that vectors span.
#[pyfunction]
#[pyo3(signature = (*arrays, sparse=false, indexing="xy", stream=None))]
fn meshgrid<'py>(
    arrays: Vec<ArrayArg>,
    sparse: Option<bool>,
    indexing: Option<&str>,
    stream: Option<StreamArg>,
    py: Python<'py>,
) -> Res<Bound<'py, pyo3::types::PyTuple>> {
    let arrays: Vec<Array> = arrays.into_iter().map(|a| a.0).collect();
    let made = on(stream, || {
        ultramarine::meshgrid(&arrays, sparse.unwrap_or(false), indexing.unwrap_or("xy"))
    })?;
    Ok(pyo3::types::PyTuple::new(py, super::list(made))?)
}

/// asarray(a, dtype=None, *, copy=None, device=None)
///
/// The object as an array, over the same memory where that is possible.
///
/// What an object is taken for is decided in the order that `array` names. Unlike there,
/// memory of other libraries keeps its dtype: float64 stays float64 (in MLX it becomes float32).
/// complex128, bytes in the other order than the machine's, bit-packed and misaligned elements can only be
/// copied.
///
/// Shared memory stays its owner's: what is written to it later is seen by work that was not
/// evaluated yet. Objects of the buffer protocol stay locked while the array needs them: a
/// bytearray cannot be resized.
///
/// Args:
///     a: An array, a number, a sequence, or an object with memory.
///     dtype (Dtype, optional): The dtype of the result; by default that of the memory.
///     copy (bool, optional): True always copies; False never does, and raises where a copy
///         would be needed, for a cast, too; None copies where it is needed.
///     device (Device, optional): Where the array shall be; by default where the memory is.
///
/// Returns:
///     array: The array.
///
/// Raises:
///     InterchangeError: (a BufferError and a ValueError) If a copy is needed and `copy` is
///         False, or a producer cannot give its memory.
///     ValueError: If the object is nothing that can be an array.
#[pyfunction]
#[pyo3(signature = (a, dtype=None, *, copy=None, device=None))]
fn asarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    copy: Option<bool>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let wish = Wish {
        dtype: dtype.map(|d| *d),
        copy: Copy::asked(copy),
        narrow: false,
        device: device.map(|d| d.get()),
    };
    Ok(PyArray::new(make::made(a, wish)?))
}

/// The shape that arrays of several shapes are broadcast to.
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(
    shapes: &Bound<'py, pyo3::types::PyTuple>,
) -> Res<Bound<'py, pyo3::types::PyTuple>> {
    if shapes.is_empty() {
        return Err(value("[broadcast_shapes] Must provide at least one shape."));
    }
    let mut common: Vec<usize> = Vec::new();
    for shape in shapes.iter() {
        let shape = Ints(crate::convert::integers(&shape)?).shape("broadcast_shapes")?;
        common = ultramarine::shape::broadcast_shapes(&common, &shape)?.to_vec();
    }
    Ok(pyo3::types::PyTuple::new(shapes.py(), common)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: zeros ones empty zeros_like ones_like empty_like full full_like arange
        linspace eye identity tri tril triu meshgrid asarray broadcast_shapes);
    Ok(())
}

/// The default of a fill: what padding uses.
pub fn zero() -> Array {
    Array::scalar(Scalar::from_i64(Dtype::Int32, 0))
}
