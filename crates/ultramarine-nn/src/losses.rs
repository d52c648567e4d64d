//! Losses. The reduction is an argument of each loss. It has no default here; in Python it has one, which differs from
//! loss to loss.

use std::f64::consts::{LN_2, PI};
use ultramarine::shape::{AxisRange, Show};
use ultramarine::{Array, Axes, Axis, Error, KeepDims, Operand, Result, fast, linalg, where_};

/// The reduction that is applied to the losses of all elements.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::losses::{Reduction, mse_loss};
/// let (x, y) = (Array::from_slice(&[1.0f32, 2.0], &[2])?, Array::from_slice(&[1.0f32, 4.0], &[2])?);
/// assert_eq!(mse_loss(&x, &y, Reduction::None)?.to_vec::<f32>()?, [0.0, 4.0]);
/// assert_eq!(mse_loss(&x, &y, Reduction::Mean)?.item::<f32>()?, 2.0);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Each of them.
    #[default]
    None,
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    fn of(self, loss: Array) -> Result<Array> {
        match self {
            Reduction::None => Ok(loss),
            Reduction::Mean => loss.mean(None),
            Reduction::Sum => loss.sum(None),
        }
    }
}

/// Checks that arrays have the same shape.
fn same_shape(op: &str, arrays: &[(&str, &Array)]) -> Result<()> {
    let (first, a) = arrays[0];
    match arrays.iter().find(|(_, b)| b.shape() != a.shape()) {
        None => Ok(()),
        Some((other, b)) => {
            let text = format!(
                "{first} have shape {} and {other} {}. Pass arrays of the same shape.",
                Show(a.shape()),
                Show(b.shape())
            );
            Err(Error::value(op, text))
        }
    }
}

fn weighted(op: &str, loss: Array, weights: Option<&Array>) -> Result<Array> {
    let Some(weights) = weights else { return Ok(loss) };
    same_shape(op, &[("weights", weights), ("losses", &loss)])?;
    loss.multiply(weights)
}

/// The score of each target; the axis `axis`, which the targets do not have, is removed.
fn picked(scores: &Array, targets: &Array, axis: Axis) -> Result<Array> {
    scores.take_along_axis(&targets.expand_dims(axis)?, axis)?.squeeze(axis)
}

/// Options of [`cross_entropy_with`]. The default computes the same as [`cross_entropy`].
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy<'a> {
    /// Factor of each loss.
    pub weights: Option<&'a Array>,
    /// Axis of the classes; the last by default.
    pub axis: isize,
    /// Part of the target that is distributed over all classes, in [0, 1); 0 by default.
    pub label_smoothing: f64,
}

impl Default for CrossEntropy<'_> {
    fn default() -> Self {
        CrossEntropy { weights: None, axis: -1, label_smoothing: 0.0 }
    }
}

/// Returns the cross entropy of logits and targets along the last axis. As in all losses, both may be a
/// `Result<Array>`, such as the result of `model.forward(&x)`.
///
/// Targets can be class indices, in the shape of the logits without the axis; the loss is then `logsumexp(logits) -
/// logits[target]`. Or they are probabilities of the classes, in the shape of the logits; the loss is then
/// `logsumexp(logits) - sum(targets * logits)`.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::losses::{Reduction, cross_entropy};
/// let logits = Array::from_slice(&[2.0f32, -1.0, -1.0, 2.0], &[2, 2])?;
/// let targets = Array::from_slice(&[0i32, 1], &[2])?;
/// let loss = cross_entropy(&logits, &targets, Reduction::Mean)?.item::<f32>()?;
/// assert!((loss - 0.0485873).abs() < 1e-6);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] for shapes that do not fit.
pub fn cross_entropy(
    logits: impl Operand,
    targets: impl Operand,
    reduction: Reduction,
) -> Result<Array> {
    cross_entropy_with(logits, targets, CrossEntropy::default(), reduction)
}

/// As [`cross_entropy`], with weights, an axis and label smoothing.
///
/// # Errors
/// As [`cross_entropy`], and for a label smoothing that is not in [0, 1).
pub fn cross_entropy_with(
    logits: impl Operand,
    targets: impl Operand,
    how: CrossEntropy<'_>,
    reduction: Reduction,
) -> Result<Array> {
    const NAME: &str = "cross_entropy";
    let (logits, targets) = (&*logits.given()?.alone(), &*targets.given()?.alone());
    let CrossEntropy { weights, axis, label_smoothing: smoothing } = how;
    if !(0.0..1.0).contains(&smoothing) {
        let text = format!("label_smoothing is {smoothing}. Pass a number in [0, 1).");
        return Err(Error::value(NAME, text));
    }
    let rank = logits.ndim();
    let from_front = if axis < 0 { axis + rank as isize } else { axis };
    if !(0..rank as isize).contains(&from_front) {
        let text = format!("axis is {axis}, and the logits have {rank} axes. {}", AxisRange(rank));
        return Err(Error::index(NAME, text));
    }
    let probabilities = targets.ndim() == rank;
    let mut expected = logits.shape().to_vec();
    if !probabilities {
        expected.remove(from_front as usize);
    }
    if targets.shape() != expected {
        let (shape, of) = (targets.shape(), logits.shape());
        let text = format!(
            "Targets have shape {} and logits {}. Pass class indices of shape {}, or \
             probabilities of the logits' shape.",
            Show(shape),
            Show(of),
            Show(&expected)
        );
        return Err(Error::value(NAME, text));
    }
    let dtype = logits.dtype();
    let fused = dtype.is_floating() && dtype != ultramarine::Dtype::Float64;
    if from_front + 1 == rank as isize && !probabilities && smoothing == 0.0 && fused {
        let loss = fast::cross_entropy(logits, targets)?.astype(dtype);
        return reduction.of(weighted(NAME, loss, weights)?);
    }
    // Subtract the maximum, because differences of small numbers lose less precision.
    let logits = logits.subtract(logits.max(KeepDims(axis))?.stop_gradient())?;
    let mut score = match probabilities {
        true => logits.multiply(targets)?.sum(axis)?,
        false => picked(&logits, targets, axis.into())?,
    };
    if smoothing > 0.0 {
        let spread = (&logits.mean(axis)? * smoothing)?;
        score = (&score * (1.0 - smoothing))?.add(&spread)?;
    }
    let loss = logits.logsumexp(axis)?.subtract(&score)?;
    reduction.of(weighted(NAME, loss, weights)?)
}

macro_rules! losses {
    ($(
        $(#[$doc:meta])*
        $name:ident([$($array:ident)*] $($argument:ident: $of:ty),*) [$($first:ident $(, $other:ident)*)?] $body:expr;
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Value`] for shapes that do not fit; the error of an operand.
        #[allow(clippy::too_many_arguments)] // As many as in Python.
        pub fn $name($($array: impl Operand,)* $($argument: $of,)* reduction: Reduction) -> Result<Array> {
            $(let $array = &*$array.given()?.alone();)*
            $(same_shape(
                stringify!($name),
                &[(stringify!($first), $first) $(, (stringify!($other), $other))*],
            )?;)?
            let loss: Result<Array> = $body;
            reduction.of(loss?)
        }
    )*};
}

/// The absolute value of a difference.
fn error_of(a: &Array, b: &Array) -> Result<Array> {
    a.subtract(b)?.abs()
}

losses! {
    /// The cross entropy of two classes. For logits x it is `log(1 + exp(x)) - x t`. For probabilities p, without
    /// `with_logits`, it is `-(t log(p) + (1 - t) log(1 - p))`, where logarithms are at least -100. `weights` are
    /// factors of the losses.
    binary_cross_entropy([inputs targets] weights: Option<&Array>, with_logits: bool)
    [inputs, targets]
    match with_logits {
        true => inputs.softplus()?.subtract(&inputs.multiply(targets)?),
        false => {
            let log = |x: &Array| x.log()?.maximum(-100.0);
            let hit = targets.multiply(&log(inputs)?)?;
            let miss = (1.0 - targets)?.multiply(&log(&(1.0 - inputs)?)?)?;
            hit.add(&miss)?.negative()
        }
    }.and_then(|loss| weighted("binary_cross_entropy", loss, weights));

    /// The absolute error.
    l1_loss([predictions targets]) [predictions, targets]
    error_of(predictions, targets);

    /// The squared error.
    mse_loss([predictions targets]) [predictions, targets]
    predictions.subtract(targets)?.square();

    /// The negative log likelihood, `-inputs[target]`, of log probabilities along an axis, usually -1, and class indices, which
    /// lack the axis.
    nll_loss([inputs targets] axis: impl Into<Axis>) []
    picked(inputs, targets, axis.into())?.negative();

    /// The negative log likelihood of normal distributions with the means `inputs`. With `v = max(vars, eps)` it is
    /// `(log(v) + (inputs - targets)^2 / v) / 2`, plus the constant `log(2 pi) / 2` if `full`. `eps` is usually 1e-6.
    gaussian_nll_loss([inputs targets vars] full: bool, eps: f64)
    [inputs, targets, vars]
    {
        let vars = vars.maximum(eps)?;
        let errors = targets.subtract(inputs)?.square()?.divide(&vars)?;
        let loss = (&vars.log()?.add(&errors)? * 0.5)?;
        if full { &loss + 0.5 * (2.0 * PI).ln() } else { Ok(loss) }
    };

    /// The Kullback-Leibler divergence of log probabilities along axes, usually -1:
    /// `sum(exp(targets) (targets - inputs))`.
    kl_div_loss([inputs targets] axis: impl Into<Axes>) []
    targets.exp()?.multiply(&targets.subtract(inputs)?)?.sum(axis);

    /// The absolute error, smoothed around 0: for an error d it is `d^2 / (2 beta)` below beta, usually 1, and `d -
    /// beta / 2` from beta on.
    smooth_l1_loss([predictions targets] beta: f64) [predictions, targets]
    {
        let error = error_of(predictions, targets)?;
        if beta == 0.0 {
            Ok(error)
        } else {
            let square = (&error.square()? * (0.5 / beta))?;
            where_(&error.less(beta)?, &square, &(&error - 0.5 * beta)?)
        }
    };

    /// Huber's loss: for an error d it is `d^2 / 2` up to delta, usually 1, and `delta (d - delta / 2)` beyond it.
    huber_loss([inputs targets] delta: f64) []
    {
        let error = error_of(inputs, targets)?;
        let least = error.minimum(delta)?;
        least.multiply(&error.subtract(&(&least * 0.5)?)?)
    };

    /// `log(cosh(inputs - targets))`: about half of the square of small errors, and about the absolute value of large
    /// ones.
    log_cosh_loss([inputs targets]) []
    {
        let error = inputs.subtract(targets)?;
        &error.logaddexp(&error.negative()?)? - LN_2
    };

    /// The hinge loss, `max(0, 1 - inputs targets)`, of classes that are 1 or -1.
    hinge_loss([inputs targets]) []
    {
        let loss = (1.0 - &inputs.multiply(targets)?)?;
        loss.maximum(0)
    };

    /// The margin ranking loss, `max(0, margin - targets (inputs1 - inputs2))`. Targets are 1 where the first score should be the
    /// higher, else -1. The margin is usually 0.
    margin_ranking_loss([inputs1 inputs2 targets] margin: f64)
    [inputs1, inputs2, targets]
    {
        let loss = (margin - &targets.multiply(&inputs1.subtract(inputs2)?)?)?;
        loss.maximum(0)
    };

    /// The cosine of the angle between vectors along an axis, usually 1: `sum(x1 x2) / max(|x1| |x2|, eps)`, with an eps of
    /// usually 1e-8.
    cosine_similarity_loss([x1 x2] axis: impl Into<Axis>, eps: f64) []
    {
        let axis = axis.into();
        let norm = |x: &Array| linalg::norm(x, None, axis);
        let norms = norm(x1)?.multiply(&norm(x2)?)?;
        let product = x1.multiply(x2)?.sum(axis)?;
        product.divide(&norms.maximum(eps)?)
    };

    /// The triplet loss, `max(0, |anchors - positives| - |anchors - negatives| + margin)`, with the distances
    /// `(sum(|difference|^p) + eps)^(1 / p)` along an axis. Usual are the axis -1, p 2, the margin 1 and an eps of 1e-6.
    triplet_loss([anchors positives negatives] axis: impl Into<Axis>, p: i64, margin: f64, eps: f64) []
    {
        let axis = axis.into();
        let distance = |other: &Array| {
            let difference = error_of(anchors, other)?;
            let powers = difference.power(p)?;
            let sum = (&powers.sum(axis)? + eps)?;
            sum.power(1.0 / p as f64)
        };
        let loss = (&distance(positives)?.subtract(&distance(negatives)?)? + margin)?;
        loss.maximum(0)
    };
}
