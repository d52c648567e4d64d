//! Adam and its variants.

use super::base::{Bound, Slots, Step, UpdateRule, check_numbers, optimizers, running_mean, zeros};
use ultramarine::{Array, Dtype, Result};

optimizers! {
    /// Adam, which divides a running mean of gradients by the root of one of their squares (Kingma and Ba, 2015):
    /// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`, `w -= rate m / (sqrt(v) + eps)`.
    ///
    /// Bias correction divides m by `1 - b1^t` and v by `1 - b2^t` in the last formula, in update t. It is off by
    /// default, as in Python.
    Adam {
        /// Sets the coefficients of the running means; 0.9 and 0.999 by default.
        betas: (f64, f64) = (0.9, 0.999),
        /// Sets the term that keeps the denominator from zero; 1e-8 by default.
        eps: f64 = 1e-8,
        /// Sets whether biases are corrected; false by default.
        bias_correction: bool = false,
    }

    /// [`Adam`] with weight decay decoupled from the gradient (Loshchilov and Hutter, 2019): each update first computes
    /// `w -= rate weight_decay w`.
    AdamW {
        /// Sets the coefficients of the running means; 0.9 and 0.999 by default.
        betas: (f64, f64) = (0.9, 0.999),
        /// Sets the term that keeps the denominator from zero; 1e-8 by default.
        eps: f64 = 1e-8,
        /// Sets the weight decay; 0.01 by default.
        weight_decay: f64 = 0.01,
        /// Sets whether biases are corrected; false by default.
        bias_correction: bool = false,
    }

    /// [`Adam`] with the largest gradient instead of the mean square (Kingma and Ba, 2015): `v = max(b2 v, |g|)`, `w -=
    /// rate m / (v + eps)`.
    Adamax {
        /// Sets the coefficients of the mean and of the maximum; 0.9 and 0.999 by default.
        betas: (f64, f64) = (0.9, 0.999),
        /// Sets the term that keeps the denominator from zero; 1e-8 by default.
        eps: f64 = 1e-8,
    }
}

/// The update that Adam and AdamW share.
struct Moments {
    betas: (f64, f64),
    eps: f64,
    bias_correction: bool,
}

impl Moments {
    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let (dtype, (b1, b2)) = (g.dtype(), self.betas);
        let m = running_mean(&state.get("m")?, g, b1)?;
        let v = running_mean(&state.get("v")?, &g.square()?, b2)?;
        state.set("m", &m);
        state.set("v", &v);
        let (mut rate, mut root) = (now.rate(dtype)?, v.sqrt()?);
        if self.bias_correction {
            // One minus a power of a coefficient.
            let part = |b: f64| 1.0 - &now.count().scalar_like(b)?.power(now.count())?;
            rate = now.once("corrected rate", dtype, || {
                Ok(now.rate(dtype)?.divide(&part(b1)?)?.astype(dtype))
            })?;
            let correction =
                now.once("root's correction", dtype, || Ok(part(b2)?.rsqrt()?.astype(dtype)))?;
            root = root.multiply(&correction)?;
        }
        w.subtract(&rate.multiply(&m)?.divide(&(&root + self.eps)?)?)
    }
}

fn check(of: &str, (b1, b2): (f64, f64), eps: f64) -> Result<()> {
    let betas = [("beta1", b1, Bound::Fraction), ("beta2", b2, Bound::Fraction)];
    check_numbers(of, &betas)?;
    check_numbers(of, &[("eps", eps, Bound::NotNegative)])
}

/// The factor of parameters in decoupled weight decay: `1 - rate weight_decay`.
pub(super) fn decay(now: &Step, dtype: Dtype, weight_decay: f64) -> Result<Array> {
    now.once("decay", dtype, || 1.0 - &(&now.rate(dtype)? * weight_decay)?)
}

impl UpdateRule for Adam {
    const NAME: &'static str = "Adam";

    fn check(&self) -> Result<()> {
        check(Self::NAME, self.betas, self.eps)
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["m", "v"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let Adam { betas, eps, bias_correction, .. } = *self;
        Moments { betas, eps, bias_correction }.apply(now, g, w, state)
    }
}

impl UpdateRule for AdamW {
    const NAME: &'static str = "AdamW";

    fn check(&self) -> Result<()> {
        check(Self::NAME, self.betas, self.eps)
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["m", "v"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let AdamW { betas, eps, weight_decay, bias_correction, .. } = *self;
        let w = w.multiply(&decay(now, g.dtype(), weight_decay)?)?;
        Moments { betas, eps, bias_correction }.apply(now, g, &w, state)
    }
}

impl UpdateRule for Adamax {
    const NAME: &'static str = "Adamax";

    fn check(&self) -> Result<()> {
        check(Self::NAME, self.betas, self.eps)
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["m", "v"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let (b1, b2) = self.betas;
        let m = running_mean(&state.get("m")?, g, b1)?;
        let v = (&state.get("v")? * b2)?.maximum(&g.abs()?)?;
        state.set("m", &m);
        state.set("v", &v);
        w.subtract(&now.rate(g.dtype())?.multiply(&m)?.divide(&(&v + self.eps)?)?)
    }
}
