//! Random numbers: the module `ultramarine.random`.

mod seeds;
mod state;

pub use state::RandomState;

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Sequence, as_array, integer, operand};
use crate::dtype::DtypeArg;
use crate::error::{Fail, Res, type_, value};
use crate::stream::{DeviceArg, StreamArg, on, placed_on};
use pyo3::prelude::*;
use seeds::Seed;
use ultramarine::random::{self, Samples};
use ultramarine::{Array, Dtype, Scalar};

/// The shape of a single number, by default. None is no shape.
const SCALAR: Sequence = Sequence(Vec::new());

fn sizes(op: &str, shape: Sequence) -> Res<Vec<usize>> {
    Ints(shape.0).shape(op)
}

/// A number of things, which is not negative.
fn count(op: &str, name: &str, n: isize) -> Res<usize> {
    usize::try_from(n).map_err(|_| {
        value(format!("[{op}] {name} must not be negative but is {n}. Pass 0 or more."))
    })
}

fn sizes_if(op: &str, shape: Option<Sequence>) -> Res<Option<Vec<usize>>> {
    shape.map(|s| Ints(s.0).shape(op)).transpose()
}

fn key_of(key: &Option<ArrayArg>) -> Option<&Array> {
    key.as_ref().map(|k| &k.0)
}

/// A parameter that is a number or an array, or the default, which None does not stand for.
enum Parameter<'py> {
    Default,
    Given(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Parameter<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Parameter::Given(object.to_owned()))
    }
}

/// The array of a parameter; numbers are float32 or int32.
fn parameter(given: &Parameter<'_>, default: f64) -> Res<Array> {
    match given {
        Parameter::Given(v) => operand(v, None),
        Parameter::Default => Ok(Array::scalar(Scalar::from_f64(Dtype::Float32, default))),
    }
}

fn parameter_if(given: Option<&Bound<'_, PyAny>>) -> Res<Option<Array>> {
    given.map(|v| operand(v, None)).transpose()
}

/// The array of a function that runs on a stream. Parameters that are numbers become arrays there.
fn made<E: Into<Fail>>(
    stream: Option<StreamArg>,
    f: impl FnOnce() -> std::result::Result<Array, E>,
) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, f).map_err(Into::into)?))
}

fn or(dtype: Option<DtypeArg>, default: Dtype) -> Dtype {
    dtype.map_or(default, |d| *d)
}

/// Seeds the calling thread's state, from which its numbers come where no key is given.
///
/// Each thread has a state of its own, as in MLX: seeding or drawing leaves the numbers of other
/// threads alone. A thread that does not seed has a state from the clock (in MLX, all have the same).
///
/// Args:
///     seed (int): Integer from 0 to 2**64 - 1.
///
/// Raises:
///     TypeError: If the seed is no such integer.
///
/// Example:
///     >>> mx.random.seed(7)
///     >>> x = mx.random.uniform()
///     >>> mx.random.seed(7)
///     >>> mx.array_equal(x, mx.random.uniform())
///     array(True, dtype=bool)
#[pyfunction]
fn seed(seed: Seed) -> Res<()> {
    Ok(random::seed(seed.0)?)
}

/// Makes the key of a seed. The same key gives the same numbers.
///
/// Args:
///     seed (int): Integer from 0 to 2**64 - 1.
///
/// Returns:
///     array: Two uint32.
///
/// Raises:
///     TypeError: If the seed is no such integer.
///
/// Example:
///     >>> mx.random.key(7)
///     array([0, 7], dtype=uint32)
#[pyfunction]
fn key(seed: Seed) -> Res<PyArray> {
    made(None, || random::key(seed.0))
}

/// Draws uniformly random bits.
///
/// Args:
///     shape (Sequence[int]): Shape of the result.
///     width (int): Bytes of an element: 1, 2 or 4.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: uint8, uint16 or uint32.
///
/// Raises:
///     ValueError: If the width is another, or a size is negative.
///
/// Example:
///     >>> mx.random.bits((2, 3), width=1, key=mx.random.key(0)).dtype
///     ultramarine.uint8
#[pyfunction]
#[pyo3(signature = (shape=SCALAR, width=4, key=None, stream=None, *, device=None),
    text_signature = "(shape=[], width=4, key=None, stream=None, *, device=None)")]
fn bits(
    shape: Sequence,
    width: isize,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let (shape, width) = (sizes("bits", shape)?, count("bits", "width", width)?);
    made(placed_on(stream, device)?, || random::bits(&shape, width, key_of(&key)))
}

/// Makes several keys of one.
///
/// Args:
///     key (array): Key to split, of two uint32.
///     num (int): Number of keys.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     list[array]: Keys as the rows of an array of the shape (num, 2).
///
/// Raises:
///     ValueError: If `num` is negative, or `key` is no key.
///
/// Example:
///     >>> mx.random.split(mx.random.key(0), 3).shape
///     (3, 2)
#[pyfunction]
#[pyo3(signature = (key, num=2, stream=None, *, device=None))]
fn split(
    key: ArrayArg,
    num: isize,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let num = count("split", "num", num)?;
    made(placed_on(stream, device)?, || random::split(&key.0, num))
}

/// Draws numbers uniformly from `low` up to, and without, `high`.
///
/// Args:
///     low (ArrayLike): Lower bound, broadcast to the shape.
///     high (ArrayLike): Upper bound, broadcast to the shape.
///     shape (Sequence[int]): Shape of the result.
///     dtype (Dtype | None): float32 (the default), float16 or bfloat16.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random numbers.
///
/// Raises:
///     ValueError: If the dtype is not of floats, or a bound cannot be broadcast to the shape.
///     RuntimeError: If the dtype is float64.
///
/// Example:
///     >>> mx.random.uniform(0, 10, (2, 3), key=mx.random.key(0)).shape
///     (2, 3)
#[pyfunction]
#[pyo3(signature = (low=Parameter::Default, high=Parameter::Default, shape=SCALAR, dtype=None, key=None, stream=None, *, device=None),
    text_signature = "(low=0, high=1, shape=[], dtype=None, key=None, stream=None, *, device=None)")]
fn uniform(
    low: Parameter<'_>,
    high: Parameter<'_>,
    shape: Sequence,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let (shape, dtype) = (sizes("uniform", shape)?, or(dtype, Dtype::Float32));
    made::<Fail>(placed_on(stream, device)?, || {
        let (low, high) = (parameter(&low, 0.0)?, parameter(&high, 1.0)?);
        Ok(random::uniform(&shape, &low, &high, dtype, key_of(&key))?)
    })
}

/// Draws numbers from the normal distribution.
///
/// Args:
///     shape (Sequence[int]): Shape of the result.
///     dtype (Dtype | None): Dtype of floats, or complex64; float32 by default.
///     loc (ArrayLike | None): Mean, broadcast with the shape; 0 by default.
///     scale (ArrayLike | None): Standard deviation, broadcast with the shape; 1 by default.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random numbers.
///
/// Raises:
///     ValueError: If the dtype is neither of floats nor complex.
///
/// Example:
///     >>> mx.random.normal((2, 3), key=mx.random.key(0)).shape
///     (2, 3)
#[pyfunction]
#[pyo3(signature = (shape=SCALAR, dtype=None, loc=None, scale=None, key=None, stream=None, *, device=None),
    text_signature = "(shape=[], dtype=None, loc=None, scale=None, key=None, stream=None, *, device=None)")]
fn normal(
    shape: Sequence,
    dtype: Option<DtypeArg>,
    loc: Option<&Bound<'_, PyAny>>,
    scale: Option<&Bound<'_, PyAny>>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let (shape, dtype) = (sizes("normal", shape)?, or(dtype, Dtype::Float32));
    made::<Fail>(placed_on(stream, device)?, || {
        let (loc, scale) = (parameter_if(loc)?, parameter_if(scale)?);
        Ok(random::normal(&shape, loc.as_ref(), scale.as_ref(), dtype, key_of(&key))?)
    })
}

/// Draws integers uniformly from `low` up to, and without, `high`.
///
/// Args:
///     low (ArrayLike): Lower bound, broadcast to the shape.
///     high (ArrayLike): Upper bound, broadcast to the shape.
///     shape (Sequence[int]): Shape of the result.
///     dtype (Dtype | None): Dtype of integers, or bool; int32 by default.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random integers.
///
/// Raises:
///     ValueError: If the dtype is another, or a bound cannot be broadcast to the shape.
///
/// Example:
///     >>> x = mx.random.randint(0, 10, (100,))
///     >>> bool(mx.all((x >= 0) & (x < 10)))
///     True
#[pyfunction]
#[pyo3(signature = (low, high, shape=SCALAR, dtype=None, key=None, stream=None, *, device=None),
    text_signature = "(low, high, shape=[], dtype=None, key=None, stream=None, *, device=None)")]
fn randint(
    low: &Bound<'_, PyAny>,
    high: &Bound<'_, PyAny>,
    shape: Sequence,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let (shape, dtype) = (sizes("randint", shape)?, or(dtype, Dtype::Int32));
    made::<Fail>(placed_on(stream, device)?, || {
        let (low, high) = (operand(low, None)?, operand(high, None)?);
        Ok(random::randint(&shape, &low, &high, dtype, key_of(&key))?)
    })
}

/// Draws bools that are True with a probability.
///
/// Args:
///     p (ArrayLike): Probability of True, broadcast to the shape.
///     shape (Sequence[int] | None): Shape of the result; by default that of `p`.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random bools.
///
/// Raises:
///     ValueError: If `p` is not of floats, or cannot be broadcast to the shape.
///
/// Example:
///     >>> mx.random.bernoulli(1.0, (2,))
///     array([True, True], dtype=bool)
#[pyfunction]
#[pyo3(signature = (p=Parameter::Default, shape=None, key=None, stream=None, *, device=None),
    text_signature = "(p=0.5, shape=None, key=None, stream=None, *, device=None)")]
fn bernoulli(
    p: Parameter<'_>,
    shape: Option<Sequence>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let shape = sizes_if("bernoulli", shape)?;
    made::<Fail>(placed_on(stream, device)?, || {
        Ok(random::bernoulli(shape.as_deref(), &parameter(&p, 0.5)?, key_of(&key))?)
    })
}

/// Draws numbers from the standard normal distribution, restricted to an interval.
///
/// Args:
///     lower (ArrayLike): Lower bound.
///     upper (ArrayLike): Upper bound, broadcast with `lower`.
///     shape (Sequence[int] | None): Shape of the result; by default that of the bounds.
///     dtype (Dtype | None): float32 (the default), float16 or bfloat16.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random numbers.
///
/// Raises:
///     ValueError: If the dtype is not of floats, or the bounds cannot be broadcast to the
///         shape.
///     RuntimeError: If the dtype is float64.
///
/// Example:
///     >>> x = mx.random.truncated_normal(-1, 2, (100,))
///     >>> mx.all((x >= -1) & (x <= 2))
///     array(True, dtype=bool)
#[pyfunction]
#[pyo3(signature = (lower, upper, shape=None, dtype=None, key=None, stream=None, *, device=None),
    text_signature = "(lower, upper, shape=None, dtype=None, key=None, stream=None, *, device=None)")]
fn truncated_normal(
    lower: &Bound<'_, PyAny>,
    upper: &Bound<'_, PyAny>,
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let shape = sizes_if("truncated_normal", shape)?;
    let dtype = or(dtype, Dtype::Float32);
    made::<Fail>(placed_on(stream, device)?, || {
        let (lower, upper) = (operand(lower, None)?, operand(upper, None)?);
        Ok(random::truncated_normal(shape.as_deref(), &lower, &upper, dtype, key_of(&key))?)
    })
}

/// Draws numbers from the standard Gumbel distribution.
///
/// Args:
///     shape (Sequence[int]): Shape of the result.
///     dtype (Dtype | None): float32 (the default), float16 or bfloat16.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random numbers.
///
/// Raises:
///     ValueError: If the dtype is not of floats.
///     RuntimeError: If the dtype is float64.
///
/// Example:
///     >>> mx.random.gumbel((2, 3), key=mx.random.key(0)).shape
///     (2, 3)
#[pyfunction]
#[pyo3(signature = (shape=SCALAR, dtype=None, key=None, stream=None, *, device=None),
    text_signature = "(shape=[], dtype=None, key=None, stream=None, *, device=None)")]
fn gumbel(
    shape: Sequence,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let (shape, dtype) = (sizes("gumbel", shape)?, or(dtype, Dtype::Float32));
    made(placed_on(stream, device)?, || random::gumbel(&shape, dtype, key_of(&key)))
}

/// Draws numbers from the Laplace distribution.
///
/// Args:
///     shape (Sequence[int]): Shape of the result.
///     dtype (Dtype | None): Dtype of floats; float32 by default.
///     loc (float): Mean.
///     scale (float): Scale; the standard deviation is sqrt(2) times as large.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random numbers.
///
/// Raises:
///     ValueError: If the dtype is not of floats.
///
/// Example:
///     >>> mx.random.laplace((2, 3), loc=10.0, scale=0.5, key=mx.random.key(0)).shape
///     (2, 3)
#[pyfunction]
#[pyo3(signature = (shape=SCALAR, dtype=None, loc=0.0, scale=1.0, key=None, stream=None, *, device=None),
    text_signature = "(shape=[], dtype=None, loc=0.0, scale=1.0, key=None, stream=None, *, device=None)")]
fn laplace(
    shape: Sequence,
    dtype: Option<DtypeArg>,
    loc: f64,
    scale: f64,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let (shape, dtype) = (sizes("laplace", shape)?, or(dtype, Dtype::Float32));
    made(placed_on(stream, device)?, || random::laplace(&shape, loc, scale, dtype, key_of(&key)))
}

/// Draws indices along an axis with the probabilities `softmax(logits, axis)`.
///
/// Args:
///     logits (array): Logarithms of probabilities, up to a constant.
///     axis (int): Axis of a distribution.
///     shape (Sequence[int] | None): Shape of the result, to which the other axes of `logits`
///         are broadcast.
///     num_samples (int | None): Number of indices of each distribution, along a new last axis;
///         not together with `shape`.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Indices as uint32: without `shape` and `num_samples` one of each distribution.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If both `shape` and `num_samples` are given, or the shape does not fit.
///
/// Example:
///     >>> mx.random.categorical(mx.array([[-mx.inf, 0.0]]))
///     array([1], dtype=uint32)
#[pyfunction]
#[pyo3(signature = (logits, axis=-1, shape=None, num_samples=None, key=None, stream=None, *, device=None),
    text_signature = "(logits, axis=-1, shape=None, num_samples=None, key=None, stream=None, *, device=None)")]
fn categorical(
    logits: ArrayArg,
    axis: isize,
    shape: Option<Sequence>,
    num_samples: Option<isize>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let shape = sizes_if("categorical", shape)?;
    let samples = match (&shape, num_samples) {
        (Some(_), Some(_)) => {
            return Err(value(
                "[categorical] At most one of shape or num_samples can be specified. Leave one of them out.",
            ));
        }
        (Some(shape), None) => Samples::Shape(shape),
        (None, Some(n)) => Samples::Count(count("categorical", "num_samples", n)?),
        (None, None) => Samples::One,
    };
    made(placed_on(stream, device)?, || random::categorical(&logits.0, axis, samples, key_of(&key)))
}

/// Puts numbers, or the slices of an array, into random order.
///
/// Args:
///     x (int | array): Array to permute; or an integer, for the numbers below it.
///     axis (int): Axis whose slices are permuted.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Permuted array; of an integer, uint32.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If the integer is negative.
///
/// Example:
///     >>> mx.sort(mx.random.permutation(4))
///     array([0, 1, 2, 3], dtype=uint32)
#[pyfunction]
#[pyo3(signature = (x, axis=0, key=None, stream=None, *, device=None))]
fn permutation(
    x: &Bound<'_, PyAny>,
    axis: isize,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    if let Some(a) = as_array(x) {
        let a = a.get().get(x.py());
        return made(placed_on(stream, device)?, || random::permute(&a, axis, key_of(&key)));
    }
    let n = integer(x)?.ok_or_else(|| type_("permutation: expected an int or an array"))?;
    let n = count("permutation", "the number of elements", n)?;
    made(placed_on(stream, device)?, || random::permutation(n, key_of(&key)))
}

/// Draws vectors from a joint normal distribution.
///
/// Args:
///     mean (array): Means, of the shape (..., n).
///     cov (array): Covariances, of the shape (..., n, n).
///     shape (Sequence[int]): Leading shape of the result, broadcast with the leading axes of
///         both.
///     dtype (Dtype | None): float32, the only one.
///     key (array | None): Key of the numbers; by default the thread's state.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///     device (Device | DeviceType | None): Device to run on, in place of `stream`.
///
/// Returns:
///     array: Random vectors, of the shape (..., n).
///
/// Raises:
///     ValueError: If the shapes do not fit, or the dtype is another.
///
/// Example:
///     >>> mean, cov = mx.zeros(2), mx.array([[1.0, 0.5], [0.5, 1.0]])
///     >>> mx.random.multivariate_normal(mean, cov, (100,)).shape
///     (100, 2)
#[pyfunction]
#[pyo3(signature = (mean, cov, shape=SCALAR, dtype=None, key=None, stream=None, *, device=None),
    text_signature = "(mean, cov, shape=[], dtype=None, key=None, stream=None, *, device=None)")]
fn multivariate_normal(
    mean: ArrayArg,
    cov: ArrayArg,
    shape: Sequence,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
    device: Option<DeviceArg>,
) -> Res<PyArray> {
    let shape = sizes("multivariate_normal", shape)?;
    let dtype = or(dtype, Dtype::Float32);
    made(placed_on(stream, device)?, || {
        random::multivariate_normal(&shape, &mean.0, &cov.0, dtype, key_of(&key))
    })
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = &PyModule::new(parent.py(), "ultramarine.random")?;
    crate::functions!(m: seed key bits split uniform normal randint bernoulli truncated_normal gumbel
        laplace categorical permutation multivariate_normal);
    m.add("state", RandomState)?;
    parent.add("_random", m)
}
