//! Random numbers: the module `ultramarine.random`.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Sequence, as_array, integer, operand};
use crate::dtype::DtypeArg;
use crate::error::{Res, type_, value};
use crate::stream::{StreamArg, on};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use ultramarine::random::{self, Samples};
use ultramarine::{Array, Dtype, Result, Scalar};

/// A seed: an integer of 64 bits.
struct Seed(u64);

impl FromPyObject<'_, '_> for Seed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract::<u64>() {
            Ok(v) => Ok(Seed(v)),
            Err(_) => Err(type_("a seed must be an integer from 0 to 2**64 - 1").into()),
        }
    }
}

/// A shape: a sequence of integers, by default none.
fn sizes(op: &str, shape: Option<Sequence>) -> Res<Vec<usize>> {
    sizes_if(op, shape).map(Option::unwrap_or_default)
}

/// A number of things, which is not negative.
fn count(op: &str, name: &str, n: isize) -> Res<usize> {
    usize::try_from(n).map_err(|_| value(format!("[{op}] {name} must not be negative but is {n}.")))
}

fn sizes_if(op: &str, shape: Option<Sequence>) -> Res<Option<Vec<usize>>> {
    shape.map(|s| Ints(s.0).shape(op)).transpose()
}

fn key_of(key: &Option<ArrayArg>) -> Option<&Array> {
    key.as_ref().map(|k| &k.0)
}

/// A parameter that is a number or an array; numbers are float32 or int32.
fn parameter(given: Option<&Bound<'_, PyAny>>, default: f64) -> Res<Array> {
    match given {
        Some(v) => operand(v, None),
        None => Ok(Array::scalar(Scalar::from_f64(Dtype::Float32, default))),
    }
}

fn parameter_if(given: Option<&Bound<'_, PyAny>>) -> Res<Option<Array>> {
    given.map(|v| operand(v, None)).transpose()
}

fn made(stream: Option<StreamArg>, f: impl FnOnce() -> Result<Array>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, f)?))
}

fn or(dtype: Option<DtypeArg>, default: Dtype) -> Dtype {
    dtype.map_or(default, |d| *d)
}

/// Seeds the state that is used where no key is given.
#[pyfunction]
fn seed(seed: Seed) -> Res<()> {
    Ok(random::seed(seed.0)?)
}

/// The key of a seed: two uint32.
#[pyfunction]
fn key(seed: Seed) -> Res<PyArray> {
    made(None, || random::key(seed.0))
}

/// Uniformly random bits: unsigned integers of `width` (1, 2 or 4) bytes.
#[pyfunction]
#[pyo3(signature = (shape=None, width=4, key=None, stream=None),
    text_signature = "(shape=[], width=4, key=None, stream=None)")]
fn bits(
    shape: Option<Sequence>,
    width: isize,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (shape, width) = (sizes("bits", shape)?, count("bits", "width", width)?);
    made(stream, || random::bits(&shape, width, key_of(&key)))
}

/// `num` keys made of one, as the rows of an array.
#[pyfunction]
#[pyo3(signature = (key, num=2, stream=None))]
fn split(key: ArrayArg, num: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    let num = count("split", "num", num)?;
    made(stream, || random::split(&key.0, num))
}

/// Numbers uniformly distributed from `low` to below `high`, which are broadcast.
#[pyfunction]
#[pyo3(signature = (low=None, high=None, shape=None, dtype=None, key=None, stream=None),
    text_signature = "(low=0, high=1, shape=[], dtype=None, key=None, stream=None)")]
fn uniform(
    low: Option<&Bound<'_, PyAny>>,
    high: Option<&Bound<'_, PyAny>>,
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (low, high) = (parameter(low, 0.0)?, parameter(high, 1.0)?);
    let (shape, dtype) = (sizes("uniform", shape)?, or(dtype, Dtype::Float32));
    made(stream, || random::uniform(&low, &high, &shape, dtype, key_of(&key)))
}

/// Normally distributed numbers of mean `loc` (0) and standard deviation `scale` (1).
#[pyfunction]
#[pyo3(signature = (shape=None, dtype=None, loc=None, scale=None, key=None, stream=None),
    text_signature = "(shape=[], dtype=None, loc=None, scale=None, key=None, stream=None)")]
fn normal(
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    loc: Option<&Bound<'_, PyAny>>,
    scale: Option<&Bound<'_, PyAny>>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (loc, scale) = (parameter_if(loc)?, parameter_if(scale)?);
    let (shape, dtype) = (sizes("normal", shape)?, or(dtype, Dtype::Float32));
    made(stream, || random::normal(&shape, dtype, loc.as_ref(), scale.as_ref(), key_of(&key)))
}

/// Integers from `low` to below `high`, which are broadcast.
#[pyfunction]
#[pyo3(signature = (low, high, shape=None, dtype=None, key=None, stream=None),
    text_signature = "(low, high, shape=[], dtype=None, key=None, stream=None)")]
fn randint(
    low: &Bound<'_, PyAny>,
    high: &Bound<'_, PyAny>,
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (low, high) = (operand(low, None)?, operand(high, None)?);
    let (shape, dtype) = (sizes("randint", shape)?, or(dtype, Dtype::Int32));
    made(stream, || random::randint(&low, &high, &shape, dtype, key_of(&key)))
}

/// True with probability `p`; the shape is by default that of `p`.
#[pyfunction]
#[pyo3(signature = (p=None, shape=None, key=None, stream=None),
    text_signature = "(p=0.5, shape=None, key=None, stream=None)")]
fn bernoulli(
    p: Option<&Bound<'_, PyAny>>,
    shape: Option<Sequence>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (p, shape) = (parameter(p, 0.5)?, sizes_if("bernoulli", shape)?);
    made(stream, || random::bernoulli(&p, shape.as_deref(), key_of(&key)))
}

/// Numbers of the normal distribution cut off to between `lower` and `upper`.
#[pyfunction]
#[pyo3(signature = (lower, upper, shape=None, dtype=None, key=None, stream=None),
    text_signature = "(lower, upper, shape=None, dtype=None, key=None, stream=None)")]
fn truncated_normal(
    lower: &Bound<'_, PyAny>,
    upper: &Bound<'_, PyAny>,
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (lower, upper) = (operand(lower, None)?, operand(upper, None)?);
    let shape = sizes_if("truncated_normal", shape)?;
    let dtype = or(dtype, Dtype::Float32);
    made(stream, || random::truncated_normal(&lower, &upper, shape.as_deref(), dtype, key_of(&key)))
}

/// Numbers of the standard Gumbel distribution.
#[pyfunction]
#[pyo3(signature = (shape=None, dtype=None, key=None, stream=None),
    text_signature = "(shape=[], dtype=None, key=None, stream=None)")]
fn gumbel(
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (shape, dtype) = (sizes("gumbel", shape)?, or(dtype, Dtype::Float32));
    made(stream, || random::gumbel(&shape, dtype, key_of(&key)))
}

/// Numbers of the Laplace distribution of mean `loc` and scale `scale`.
#[pyfunction]
#[pyo3(signature = (shape=None, dtype=None, loc=0.0, scale=1.0, key=None, stream=None),
    text_signature = "(shape=[], dtype=None, loc=0.0, scale=1.0, key=None, stream=None)")]
fn laplace(
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    loc: f64,
    scale: f64,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let (shape, dtype) = (sizes("laplace", shape)?, or(dtype, Dtype::Float32));
    made(stream, || random::laplace(&shape, dtype, loc, scale, key_of(&key)))
}

/// Indices along an axis, drawn with the probabilities `softmax(logits, axis)`: one of
/// each distribution, or `num_samples`, or as many as `shape` holds.
#[pyfunction]
#[pyo3(signature = (logits, axis=-1, shape=None, num_samples=None, key=None, stream=None))]
fn categorical(
    logits: ArrayArg,
    axis: isize,
    shape: Option<Sequence>,
    num_samples: Option<isize>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let shape = sizes_if("categorical", shape)?;
    let samples = match (&shape, num_samples) {
        (Some(_), Some(_)) => {
            return Err(value(
                "[categorical] At most one of shape or num_samples can be specified.",
            ));
        }
        (Some(shape), None) => Samples::Shape(shape),
        (None, Some(n)) => Samples::Count(count("categorical", "num_samples", n)?),
        (None, None) => Samples::One,
    };
    made(stream, || random::categorical(&logits.0, axis, samples, key_of(&key)))
}

/// The numbers below `x` in random order, or what lies along an axis of the array `x`.
#[pyfunction]
#[pyo3(signature = (x, axis=0, key=None, stream=None))]
fn permutation(
    x: &Bound<'_, PyAny>,
    axis: isize,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    if let Some(a) = as_array(x) {
        let a = a.get().get(x.py());
        return made(stream, || random::permute(&a, axis, key_of(&key)));
    }
    let n = integer(x)?.ok_or_else(|| type_("permutation: expected an int or an array"))?;
    let n = count("permutation", "the number of elements", n)?;
    made(stream, || random::permutation(n, key_of(&key)))
}

/// The global state, as a list of one key.
#[pyclass(name = "_RandomState", module = "ultramarine.random", frozen, sequence)]
pub struct RandomState;

#[pymethods]
impl RandomState {
    fn __len__(&self) -> usize {
        1
    }

    fn __getitem__(&self, index: isize) -> Res<PyArray> {
        RandomState::check(index)?;
        made(None, random::state)
    }

    fn __setitem__(&self, index: isize, key: ArrayArg) -> Res<()> {
        RandomState::check(index)?;
        Ok(random::set_state(&key.0)?)
    }

    fn __repr__(&self, py: Python<'_>) -> Res<String> {
        let key = Bound::new(py, made(None, random::state)?)?;
        Ok(format!("[{}]", key.repr()?))
    }
}

impl RandomState {
    fn check(index: isize) -> Res<()> {
        match index {
            0 | -1 => Ok(()),
            _ => Err(PyIndexError::new_err("the state is a list of one key").into()),
        }
    }
}

/// Jointly normally distributed vectors of a mean and a covariance, whose batches are broadcast with
/// `shape`; float32.
#[pyfunction]
#[pyo3(signature = (mean, cov, shape=None, dtype=None, key=None, stream=None),
    text_signature = "(mean, cov, shape=[], dtype=None, key=None, stream=None)")]
fn multivariate_normal(
    mean: ArrayArg,
    cov: ArrayArg,
    shape: Option<Sequence>,
    dtype: Option<DtypeArg>,
    key: Option<ArrayArg>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let shape = sizes("multivariate_normal", shape)?;
    let dtype = or(dtype, Dtype::Float32);
    made(stream, || random::multivariate_normal(&mean.0, &cov.0, &shape, dtype, key_of(&key)))
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = &PyModule::new(parent.py(), "ultramarine.random")?;
    crate::functions!(m: seed key bits split uniform normal randint bernoulli truncated_normal gumbel
        laplace categorical permutation
        multivariate_normal);
    m.add("state", RandomState)?;
    parent.add("_random", m)
}
