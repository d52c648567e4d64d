//! Activation functions. They are elementwise unless stated otherwise.

use std::f64::consts::{FRAC_1_SQRT_2, PI};
use ultramarine::{Array, Axes, Axis, KeepDims, Result, where_};

/// The larger of elements and a number.
fn at_least(x: &Array, bound: f64) -> Result<Array> {
    x.maximum(bound)
}

/// The smaller of elements and a number.
fn at_most(x: &Array, bound: f64) -> Result<Array> {
    x.minimum(bound)
}

fn is_positive(x: &Array) -> Result<Array> {
    x.greater(0)
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($x:ident $(, $argument:ident: $of:ty)*) $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// Errors of its operations, for unsupported dtypes.
        pub fn $name($x: &Array $(, $argument: $of)*) -> Result<Array> {
            $body
        }
    )*};
}

functions! {
    /// `1 / (1 + exp(-x))`.
    sigmoid(x) x.sigmoid();
    /// The hyperbolic tangent.
    tanh(x) x.tanh();
    /// `max(x, 0)`.
    relu(x) x.maximum(0);
    /// `max(x, 0)^2`.
    relu2(x) relu(x)?.square();
    /// `min(max(x, 0), 6)`.
    relu6(x) at_most(&relu(x)?, 6.0);
    /// `max(x, negative_slope x)`. The slope is usually 0.01.
    leaky_relu(x, negative_slope: f64) (x * negative_slope)?.maximum(x);
    /// `max(x, 0) + alpha min(x, 0)`. The array of slopes `alpha` is broadcast.
    prelu(x, alpha: &Array) {
        relu(x)?.add(&alpha.multiply(&x.minimum(0)?)?)
    };
    /// `x`, or `alpha (exp(x) - 1)` below 0. Alpha is usually 1.
    elu(x, alpha: f64) {
        let (positive, zero) = (is_positive(x)?, x.scalar_like(0)?);
        where_(&positive, x, &(&where_(&positive, &zero, x)?.expm1()? * alpha)?)
    };
    /// `x`, or `alpha (exp(x / alpha) - 1)` below 0. Alpha is usually 1.
    celu(x, alpha: f64) {
        let (positive, zero) = (is_positive(x)?, x.scalar_like(0)?);
        let below = (&(&where_(&positive, &zero, x)? / alpha)?.expm1()? * alpha)?;
        where_(&positive, x, &below)
    };
    /// [`elu`] with alpha 1.67326, times 1.0507 (Klambauer et al., 2017).
    selu(x) &elu(x, 1.67326)? * 1.0507;
    /// `x sigmoid(x)`.
    silu(x) x.multiply(&x.sigmoid()?);
    /// `x (1 + erf(x / sqrt(2))) / 2`.
    gelu(x) {
        let part = (&(x * FRAC_1_SQRT_2)?.erf()? + 1.0)?;
        &x.multiply(&part)? / 2.0
    };
    /// [`gelu`] approximated by a hyperbolic tangent.
    gelu_approx(x) {
        let cube = x.multiply(x)?.multiply(x)?;
        let inner = (&x.add(&(&cube * 0.044715)?)? * (2.0 / PI).sqrt())?;
        (x * 0.5)?.multiply(&(&inner.tanh()? + 1.0)?)
    };
    /// [`gelu`] approximated by a sigmoid: `x sigmoid(1.702 x)`.
    gelu_fast_approx(x) x.multiply(&(x * 1.702)?.sigmoid()?);
    /// `a sigmoid(b)`, where a and b are the halves of an axis, usually the last one, -1.
    glu(x, axis: impl Into<Axis>) {
        let halves = x.split(2, axis)?;
        halves[0].multiply(&halves[1].sigmoid()?)
    };
    /// `log(1 + exp(x))`.
    softplus(x) x.softplus();
    /// `x tanh(softplus(x))`.
    mish(x) x.multiply(&x.softplus()?.tanh()?);
    /// `log(sigmoid(x))`.
    log_sigmoid(x) x.negative()?.softplus()?.negative();
    /// `x / (1 + |x|)`.
    softsign(x) x.divide(&(&x.abs()? + 1.0)?);
    /// `x min(max(x + 3, 0), 6) / 6`.
    hardswish(x) {
        let gate = at_most(&at_least(&(x + 3.0)?, 0.0)?, 6.0)?;
        &x.multiply(&gate)? / 6.0
    };
    /// `min(max(x, min_val), max_val)`, usually with -1 and 1.
    hard_tanh(x, min_val: f64, max_val: f64) at_most(&at_least(x, min_val)?, max_val);
    /// `x`, or 0 where its absolute value is at most `lambd`, usually 0.5.
    hard_shrink(x, lambd: f64) {
        where_(&x.abs()?.greater(lambd)?, x, 0)
    };
    /// `x` moved by `lambd` towards 0, or 0 where its absolute value is at most `lambd`. Usually
    /// 0.5.
    softshrink(x, lambd: f64) {
        let moved = x.subtract(&(&x.sign()? * lambd)?)?;
        where_(&x.abs()?.greater(lambd)?, &moved, 0)
    };
    /// 1 where `x` is at least the threshold, usually 0, and 0 elsewhere, as int32.
    step(x, threshold: f64) {
        let reached = x.greater_equal(threshold)?;
        where_(&reached, Array::scalar(1i32), Array::scalar(0i32))
    };
    /// `exp(x) / sum(exp(x))` along axes, usually the last one, -1.
    softmax(x, axes: impl Into<Axes>) x.softmax(axes, false);
    /// [`softmax`] of `-x`.
    softmin(x, axes: impl Into<Axes>) x.negative()?.softmax(axes, false);
    /// `x - log(sum(exp(x)))` along axes, usually the last one, -1.
    log_softmax(x, axes: impl Into<Axes>) {
        let axes = axes.into();
        let x = x.subtract(x.max(KeepDims(axes.clone()))?.stop_gradient())?;
        x.subtract(&x.logsumexp(KeepDims(axes))?)
    };
}
