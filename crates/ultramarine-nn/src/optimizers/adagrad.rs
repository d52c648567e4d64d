//! Optimizers that divide by a mean or sum of squared gradients.

use super::base::{Bound, Slots, Step, UpdateRule, check_numbers, optimizers, running_mean, zeros};
use ultramarine::{Array, Result};

optimizers! {
    /// RMSprop, which divides by the root of a running mean of squared gradients (Tieleman and Hinton, 2012):
    /// `v = alpha v + (1 - alpha) g^2`, `w -= rate g / (sqrt(v) + eps)`.
    RMSprop {
        /// Sets the coefficient of the running mean; 0.99 by default.
        alpha: f64 = 0.99,
        /// Sets the term that keeps the denominator from zero; 1e-8 by default.
        eps: f64 = 1e-8,
    }

    /// Adagrad, which divides by the root of the sum of all squared gradients (Duchi, Hazan and Singer, 2011):
    /// `v += g^2`, `w -= rate g / (sqrt(v) + eps)`.
    Adagrad {
        /// Sets the term that keeps the denominator from zero; 1e-8 by default.
        eps: f64 = 1e-8,
    }

    /// AdaDelta, which scales a gradient by running means of squared updates and of squared gradients (Zeiler, 2012):
    /// `v = rho v + (1 - rho) g^2`, `d = sqrt(u + eps) / sqrt(v + eps) g`, `u = rho u + (1 - rho) d^2`, `w -= rate d`.
    AdaDelta {
        /// Sets the coefficient of both running means; 0.9 by default.
        rho: f64 = 0.9,
        /// Sets the term below both roots; 1e-6 by default.
        eps: f64 = 1e-6,
    }
}

/// `w - rate g / (sqrt(v) + eps)`.
fn divided(now: &Step, w: &Array, g: &Array, v: &Array, eps: f64) -> Result<Array> {
    w.subtract(&now.rate(g.dtype())?.multiply(g)?.divide(&(&v.sqrt()? + eps)?)?)
}

impl UpdateRule for RMSprop {
    const NAME: &'static str = "RMSprop";

    fn check(&self) -> Result<()> {
        let alpha = ("alpha", self.alpha, Bound::NotNegative);
        check_numbers(Self::NAME, &[alpha, ("eps", self.eps, Bound::Positive)])
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["v"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let v = running_mean(&state.get("v")?, &g.square()?, self.alpha)?;
        state.set("v", &v);
        divided(now, w, g, &v, self.eps)
    }
}

impl UpdateRule for Adagrad {
    const NAME: &'static str = "Adagrad";

    fn check(&self) -> Result<()> {
        check_numbers(Self::NAME, &[("eps", self.eps, Bound::Positive)])
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["v"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let v = state.get("v")?.add(&g.square()?)?;
        state.set("v", &v);
        divided(now, w, g, &v, self.eps)
    }
}

impl UpdateRule for AdaDelta {
    const NAME: &'static str = "AdaDelta";

    fn check(&self) -> Result<()> {
        let rho = ("rho", self.rho, Bound::NotNegative);
        check_numbers(Self::NAME, &[rho, ("eps", self.eps, Bound::Positive)])
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["v", "u"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let v = running_mean(&state.get("v")?, &g.square()?, self.rho)?;
        state.set("v", &v);
        let u = state.get("u")?;
        let root = |x: &Array| (x + self.eps)?.sqrt();
        let change = root(&u)?.divide(&root(&v)?)?.multiply(g)?;
        state.set("u", &running_mean(&u, &change.square()?, self.rho)?);
        w.subtract(&now.rate(g.dtype())?.multiply(&change)?)
    }
}
