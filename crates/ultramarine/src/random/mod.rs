//! Random numbers from a counter-based generator (Threefry-2x32). A key gives the same numbers as in MLX.
//!
//! Every function takes a key (two uint32). For `None` it splits a key off the thread's state.
//!
//! All functions take their arguments in the same order: the shape of the result (or the array to draw from), the
//! parameters of the distribution, the dtype, the key. Parameters are numbers or arrays, which are broadcast to the
//! shape.
//!
//! ```
//! use ultramarine::{Dtype, random};
//! let key = random::key(7)?;
//! let weights = random::normal(&[64, 10], None, 0.02, Dtype::Float32, Some(&key))?;
//! let noise = random::uniform(&[10], -1, 1, Dtype::Float32, None)?;
//! let digits = random::randint(&[100], 0, 10, Dtype::Int32, None)?;
//! assert_eq!((weights.shape(), noise.shape(), digits.shape()), (&[64, 10][..], &[10][..], &[100][..]));
//! # Ok::<(), ultramarine::Error>(())
//! ```

// The public functions. The operation for their random bits, with its rules, is in `ops/random`.

mod state;

use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::builders::{bin, like, un};
use crate::ops::shape::axes::{Axis, one};
use crate::ops::{
    elementwise::operand::{Given, Operand, OptionalOperand, alone},
    random::bits_of,
    select::where_,
};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype, placement::follow, scalar::Scalar};
use smallvec::SmallVec;
pub use state::{StateScope, key, seed, set_state, split, state};
use state::{check_key, key_or_next};
use std::{borrow::Cow, f64::consts::SQRT_2};
use ultramarine_abi::schema::{binary, unary};

/// Returns uniformly random bits, of shape `shape`: uint8, uint16 or uint32 for a `width` of 1, 2 or 4 bytes. Without
/// `key`, this thread's [`state`] provides a key and advances.
///
/// # Errors
/// [`Error::Value`] for another width, or when `key` is not a key.
pub fn bits(shape: &[usize], width: usize, key: Option<&Array>) -> Result<Array> {
    let dtype = match width {
        1 => Dtype::Uint8,
        2 => Dtype::Uint16,
        4 => Dtype::Uint32,
        _ => {
            bail!("bits", "Bit width must be 1, 2 or 4 but is {width}. Pass a number of bytes.");
        }
    };
    shape::check("bits", shape)?;
    let key = key_or_next(key)?;
    check_key(&key)?;
    bits_of(&key, shape::size(shape), dtype)?.reshape(shape)
}

/// The largest number of a floating dtype below one.
fn below_one(dtype: Dtype) -> f64 {
    1.0 - crate::finfo(dtype).map_or(0.0, |i| i.eps / 2.0)
}

/// The smallest float32 above -1.
const ABOVE_MINUS_ONE: f32 = -1.0 + f32::EPSILON / 2.0;

/// Returns uniformly distributed numbers from `low` (inclusive) to `high` (exclusive), of shape `shape` and dtype
/// float16, bfloat16 or float32. The bounds are broadcast to `shape`. Without `key`, this thread's [`state`] provides a
/// key and advances.
///
/// ```
/// use ultramarine::{Dtype, random};
/// let key = random::key(7)?;
/// let x = random::uniform(&[3], 0.0, 1.0, Dtype::Float32, Some(&key))?;
/// let same = random::uniform(&[3], 0.0, 1.0, Dtype::Float32, Some(&key))?;
/// assert_eq!(x.to_vec::<f32>()?, same.to_vec::<f32>()?);
/// assert!(x.to_vec::<f32>()?.iter().all(|x| (0.0..1.0).contains(x)));
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] for a dtype other than float16, bfloat16 and float32 ([`Error::Runtime`] for float64), bounds that
/// cannot be broadcast to `shape`, or when `key` is not a key.
pub fn uniform(
    shape: &[usize],
    low: impl Operand,
    high: impl Operand,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    between(shape, &*alone(&low)?, &*alone(&high)?, dtype, key)
}

fn between(
    shape: &[usize],
    low: &Array,
    high: &Array,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    if !dtype.is_floating() {
        bail!(
            "uniform",
            "Can only generate uniform numbers with real floating point type, not {dtype}. Pass float32, float16 or bfloat16."
        );
    }
    if dtype == Dtype::Float64 {
        return Err(Error::runtime("uniform", "Unsupported type."));
    }
    [low, high].into_iter().try_for_each(|a| a.computable("uniform"))?;
    let _home = follow(&[low, high]);
    let (low, high) = (low.astype(dtype), high.astype(dtype));
    let bounds = shape::broadcast("uniform", low.shape(), high.shape())?;
    ensure!(
        shape::broadcast("uniform", shape, &bounds)?[..] == *shape,
        "uniform",
        "Cannot generate random values of shape {} from broadcasted shape {}. Pass a shape that low and high broadcast to.",
        Show(shape),
        Show(&bounds)
    );
    let bits = bits(shape, 4, key)?.astype(Dtype::Float32);
    let unit = bits.multiply(like(&bits, 1.0 / 4294967296.0))?.astype(dtype);
    let unit = bin(binary::MINIMUM, &unit, &like(&unit, below_one(dtype)))?;
    if let (Some(l), Some(h)) = (low.node().constant(), high.node().constant()) {
        // For the narrower floats, computing the difference in float64 gives the same result.
        let (l, h) = (l.to_f64(), h.to_f64());
        if (l, h) == (0.0, 1.0) {
            return Ok(unit);
        }
        return unit.multiply(like(&unit, h - l))?.add(like(&unit, l));
    }
    let range = bin(binary::SUBTRACT, &high, &low)?;
    range.multiply(&unit)?.add(&low)
}

fn unit_interval(low: f32, shape: &[usize], dtype: Dtype, key: Option<&Array>) -> Result<Array> {
    let high = Array::scalar(Scalar::from_f64(dtype, 1.0));
    between(shape, &Array::scalar(Scalar::from_f64(dtype, low as f64)), &high, dtype, key)
}

/// Returns random integers from `low` (inclusive) to `high` (exclusive), of shape `shape`. The bounds are broadcast to
/// `shape`. The integers are made from float32 numbers, so beyond 2^24 some integers never occur. `key` is as for
/// [`uniform`].
///
/// # Errors
/// [`Error::Value`] for a dtype that is not integer or bool; else as [`uniform`].
pub fn randint(
    shape: &[usize],
    low: impl Operand,
    high: impl Operand,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    integers(shape, &*alone(&low)?, &*alone(&high)?, dtype, key)
}

fn integers(
    shape: &[usize],
    low: &Array,
    high: &Array,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    ensure!(
        !dtype.is_inexact(),
        "randint",
        "randint only accepts integer dtypes and bool, not {dtype}. Convert the result with astype."
    );
    let real = between(shape, low, high, Dtype::Float32, key)?;
    let out = un(unary::FLOOR, &real).astype(dtype);
    if dtype == Dtype::Bool {
        return Ok(out);
    }
    // Rounding may have produced `high` itself.
    let (low, high) = (low.astype(dtype), high.astype(dtype));
    let last = match high.node().constant() {
        Some(high) => Array::scalar(Scalar::from_i64(dtype, high.to_i64().wrapping_sub(1))),
        None => bin(binary::SUBTRACT, &high, &Array::scalar(Scalar::from_i64(dtype, 1)))?,
    };
    bin(binary::MAXIMUM, &bin(binary::MINIMUM, &out, &last)?, &low)
}

/// Returns normally distributed numbers of shape `shape`, with mean `loc` (`None`: 0) and standard
/// deviation `scale` (`None`: 1). Complex numbers have a variance of one half in each part. `key`
/// is as for [`uniform`].
///
/// # Errors
/// [`Error::Value`] for integer dtypes, or when `key` is not a key.
pub fn normal(
    shape: &[usize],
    loc: impl OptionalOperand,
    scale: impl OptionalOperand,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    let (loc, scale) = (optional(&loc)?, optional(&scale)?);
    normal_of(shape, loc.as_deref(), scale.as_deref(), dtype, key)
}

/// A parameter as an array.
fn optional(parameter: &impl OptionalOperand) -> Result<Option<Cow<'_, Array>>> {
    Ok(parameter.if_given()?.map(Given::alone))
}

fn normal_of(
    shape: &[usize],
    loc: Option<&Array>,
    scale: Option<&Array>,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    ensure!(
        dtype.is_inexact(),
        "normal",
        "Only floating point and complex64 types are supported, not {dtype}. Pass float32, float16 or bfloat16."
    );
    let given: SmallVec<[&Array; 2]> = loc.into_iter().chain(scale).collect();
    given.iter().try_for_each(|a| a.computable("normal"))?;
    let _home = follow(&given);
    let mut out;
    let mut factor = scale.map(|s| s.astype(dtype));
    if dtype == Dtype::Complex64 {
        let mut pairs = Shape::from_slice(shape);
        pairs.push(2);
        let z = un(unary::ERFINV, &unit_interval(ABOVE_MINUS_ONE, &pairs, Dtype::Float32, key)?);
        out = z.view(Dtype::Complex64)?.reshape(shape)?;
    } else {
        let u = unit_interval(ABOVE_MINUS_ONE, shape, Dtype::Float32, key)?;
        out = un(unary::ERFINV, &u).astype(dtype);
        let root = Array::scalar(Scalar::from_f64(dtype, SQRT_2));
        factor = Some(match factor {
            Some(scale) => scale.multiply(&root)?,
            None => root,
        });
    }
    if let Some(factor) = factor {
        out = out.multiply(&factor)?;
    }
    match loc {
        Some(loc) => out.add(loc.astype(dtype)),
        None => Ok(out),
    }
}

/// Returns bools that are true with probability `p`, which is broadcast to `shape` (`None`: the
/// shape of `p`). `key` is as for [`uniform`].
///
/// # Errors
/// [`Error::Value`] when `p` is not a float or cannot be broadcast, or `key` is not a key.
pub fn bernoulli(shape: Option<&[usize]>, p: impl Operand, key: Option<&Array>) -> Result<Array> {
    let p = &*alone(&p)?;
    if !p.dtype().is_floating() {
        bail!(
            "bernoulli",
            "bernoulli probability `p` must be a float type, not {}. Convert it with astype(float32).",
            p.dtype()
        );
    }
    let shape = Shape::from_slice(shape.unwrap_or(p.shape()));
    let out = shape::broadcast("bernoulli", &shape, p.shape())?;
    if out != shape {
        bail!(
            "bernoulli",
            "shape {} cannot be broadcast to {}. Pass a shape that `p` broadcasts to.",
            Show(p.shape()),
            Show(&shape)
        );
    }
    let _home = follow(&[p]);
    bin(binary::LESS, &unit_interval(0.0, &shape, Dtype::Float32, key)?, p)
}

/// Returns numbers of Gumbel's distribution, `-ln(-ln(u))`, of shape `shape`. `key` is as for
/// [`uniform`].
///
/// # Errors
/// As [`uniform`].
pub fn gumbel(shape: &[usize], dtype: Dtype, key: Option<&Array>) -> Result<Array> {
    let inner = un(unary::NEGATIVE, &un(unary::LOG, &unit_interval(0.0, shape, dtype, key)?));
    Ok(un(unary::NEGATIVE, &un(unary::LOG, &inner)))
}

/// Number of samples that [`categorical`] draws from each distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples<'a> {
    /// One sample from each distribution.
    One,
    /// Samples of this shape. The logits without their axis are broadcast to it.
    Shape(&'a [usize]),
    /// This number of samples from each distribution, in a last axis.
    Count(usize),
}

/// Returns indices along `axis` that are drawn with the probabilities `softmax(logits, axis)`:
/// uint32. `key` is as for [`uniform`].
///
/// # Errors
/// [`Error::Index`] for an axis out of range, [`Error::Value`] when shapes cannot be broadcast, no sample is requested,
/// or `key` is not a key.
pub fn categorical(
    logits: &Array,
    axis: impl Into<Axis>,
    samples: Samples<'_>,
    key: Option<&Array>,
) -> Result<Array> {
    let axis = one("categorical", axis)?;
    let _home = follow(&[logits]);
    let n = logits.ndim();
    let at = shape::from_start(axis, n).ok_or_else(|| {
        let text = format!("Invalid axis {axis} for logits with {n} dimensions.");
        Error::index("categorical", format!("{text} {}", shape::AxisRange(n)))
    })?;
    let classes = logits.shape()[at];
    let mut rest = Shape::from_slice(logits.shape());
    rest.remove(at);
    let mut out = rest.clone();
    match samples {
        Samples::One => {}
        Samples::Count(count) => out.push(count),
        Samples::Shape(shape) => {
            ensure!(
                shape::broadcast("categorical", shape, &rest)?[..] == *shape,
                "categorical",
                "Requested shape {} is not compatible with logits of shape {}. Pass a shape that the logits without the axis broadcast to.",
                Show(shape),
                Show(logits.shape())
            );
            out = Shape::from_slice(shape);
        }
    }
    if shape::size(&rest) == 1 && !out.is_empty() && classes > 0 {
        return inverted(logits, &out, key);
    }
    let (logits, noise, at) = match samples {
        Samples::One => (logits.clone(), Shape::from_slice(logits.shape()), at),
        Samples::Count(count) => {
            let mut wide = Shape::from_slice(logits.shape());
            wide.push(1);
            let logits = logits.reshape(&wide)?;
            wide[n] = count;
            (logits, wide, at)
        }
        Samples::Shape(shape) => {
            let at = shape.len() - (rest.len() - at);
            let mut noise = Shape::from_slice(shape);
            noise.insert(at, classes);
            (logits.clone(), noise, at)
        }
    };
    let noise = gumbel(&noise, Dtype::Float32, key)?;
    logits.add(&noise)?.argmax(Some(at as isize))
}

/// Indices drawn from one distribution, by searching uniform numbers in the cumulative sums of the probabilities, as
/// MLX does. This needs no noise for every class and sample.
fn inverted(logits: &Array, out: &[usize], key: Option<&Array>) -> Result<Array> {
    let classes = logits.size();
    let logits = logits.reshape(&[classes])?.astype(Dtype::Float32);
    let below = logits.softmax(0, false)?.cumsum(Some(0), false, true)?;
    let u = unit_interval(0.0, out, Dtype::Float32, key)?;
    // The number of sums below each sample: a binary search for all samples at once.
    let mut found = Array::zeros(out, Dtype::Uint32)?;
    let mut step = classes.next_power_of_two();
    while step > 0 {
        let further = found.add(like(&found, step as f64))?;
        let last = further.minimum(like(&found, classes as f64))?;
        let sum = below.take(&last.subtract(like(&found, 1.0))?, Some(0))?;
        let fits = further.less_equal(like(&found, classes as f64))?;
        found = where_(&fits.logical_and(&sum.less(&u)?)?, &further, &found)?;
        step /= 2;
    }
    // Rounding may leave the last sum below one.
    found.minimum(like(&found, (classes - 1) as f64))
}

/// Returns numbers of Laplace's distribution with mean `loc` and scale `scale`, of shape `shape`.
/// `key` is as for [`uniform`].
///
/// # Errors
/// [`Error::Value`] for dtypes that are not real floats, or when `key` is not a key.
pub fn laplace(
    shape: &[usize],
    loc: f64,
    scale: f64,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    ensure!(
        dtype.is_floating(),
        "laplace",
        "Only real floating point types are supported, not {dtype}. Pass float32, float16 or bfloat16."
    );
    let u = unit_interval(ABOVE_MINUS_ONE, shape, Dtype::Float32, key)?;
    let size = un(unary::NEGATIVE, &un(unary::ABS, &u));
    let mut out = un(unary::SIGN, &u).multiply(un(unary::LOG1P, &size))?.astype(dtype);
    if scale != 1.0 {
        out = out.multiply(like(&out, scale))?;
    }
    if loc != 0.0 { out.add(like(&out, loc)) } else { Ok(out) }
}

/// Returns numbers of the standard normal distribution, restricted to the range from `lower` to
/// `upper`. The bounds are broadcast to `shape` (`None`: to each other). Where `lower` is above
/// `upper`, the numbers are `lower`, as in MLX. `key` is as for [`uniform`].
///
/// # Errors
/// [`Error::Value`] for integer dtypes; else as [`uniform`].
pub fn truncated_normal(
    shape: Option<&[usize]>,
    lower: impl Operand,
    upper: impl Operand,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    let (lower, upper) = (&*alone(&lower)?, &*alone(&upper)?);
    if !dtype.is_floating() {
        bail!(
            "trunc_normal",
            "trunc_normal only accepts floating point dtypes, not {dtype}. Pass float32, float16 or bfloat16."
        );
    }
    [lower, upper].into_iter().try_for_each(|a| a.computable("trunc_normal"))?;
    let _home = follow(&[lower, upper]);
    let (lower, upper) = (lower.astype(dtype), upper.astype(dtype));
    let shape = match shape {
        Some(shape) => Shape::from_slice(shape),
        None => shape::broadcast("trunc_normal", lower.shape(), upper.shape())?,
    };
    let root = like(&lower, SQRT_2);
    let end = |x: &Array| Ok(un(unary::ERF, &bin(binary::DIVIDE, x, &root)?));
    let u = between(&shape, &end(&lower)?, &end(&upper)?, dtype, key)?;
    let out = root.multiply(un(unary::ERFINV, &u))?;
    bin(binary::MAXIMUM, &bin(binary::MINIMUM, &out, &upper)?, &lower)
}

/// Returns the numbers `0..n` in random order: uint32, of shape `(n)`. `key` is as for [`uniform`].
///
/// # Errors
/// [`Error::Value`] when `key` is not a key.
pub fn permutation(n: usize, key: Option<&Array>) -> Result<Array> {
    bits(&[n], 4, key)?.argsort(Some(0))
}

/// Returns the array with its parts along `axis` in random order. `key` is as for [`uniform`].
///
/// # Errors
/// [`Error::Index`] for an axis out of range; else as [`permutation`].
pub fn permute(a: &Array, axis: impl Into<Axis>, key: Option<&Array>) -> Result<Array> {
    let _home = follow(&[a]);
    let at = shape::normalize_axis("permutation", one("permutation", axis)?, a.ndim())?;
    a.take(&permutation(a.shape()[at], key)?, Some(at as isize))
}

/// Returns jointly normally distributed vectors `(..., n)` with mean `(..., n)` and covariance `(..., n, n)`, which is
/// symmetric and positive semidefinite. Leading dimensions of both are broadcast with `shape`. Vectors are standard
/// normal vectors times the root of the covariance, which is computed from singular values. `key` is as for
/// [`uniform`].
///
/// # Errors
/// [`Error::Value`] for a dtype other than float32, shapes that do not fit, or when `key` is not a key.
pub fn multivariate_normal(
    shape: &[usize],
    mean: &Array,
    covariance: &Array,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    const OP: &str = "multivariate_normal";
    ensure!(
        dtype == Dtype::Float32,
        OP,
        "dtype must be float32, not {dtype}. Convert the result with astype."
    );
    let Some((n, batch)) = mean.shape().split_last() else {
        bail!(OP, "mean must have at least one dimension. Reshape it to (1,).");
    };
    let [others @ .., rows, columns] = covariance.shape() else {
        bail!(OP, "cov must have at least two dimensions. Pass a square matrix.");
    };
    ensure!(
        rows == columns,
        OP,
        "last two dimensions of cov must be equal but are {rows} and {columns}. Pass a square matrix."
    );
    ensure!(
        n == columns,
        OP,
        "mean and cov must have compatible shapes but have {n} elements and {columns} columns. Pass as many of both."
    );
    [mean, covariance].into_iter().try_for_each(|a| a.computable(OP))?;
    let _home = follow(&[mean, covariance]);
    let mut out = shape::broadcast(OP, shape, &shape::broadcast(OP, batch, others)?)?;
    out.push(*n);
    let (u, s, vt) = crate::linalg::svd(&covariance.astype(dtype))?;
    let root = u.multiply(&un(unary::SQRT, &s).expand_dims([-2])?)?.matmul(&vt)?;
    let z = normal_of(&out, None, None, dtype, key)?.expand_dims([-2])?;
    mean.add(&z.matmul(&root)?.squeeze(-2)?)
}
