//! Lion.

use super::adam::decay;
use super::base::{Bound, Slots, Step, UpdateRule, check_numbers, optimizers, running_mean, zeros};
use ultramarine::{Array, Result};

optimizers! {
    /// Lion, whose steps are signs (Chen et al., 2023): `w -= rate sign(b1 m + (1 - b1) g)`, `m = b2 m + (1 - b2) g`.
    ///
    /// Weight decay is apart from the gradient, as in [`AdamW`](crate::optimizers::AdamW).
    Lion {
        /// Sets the coefficients of the direction and of the running mean; 0.9 and 0.99 by default.
        betas: (f64, f64) = (0.9, 0.99),
        /// Sets the weight decay; 0 by default.
        weight_decay: f64 = 0.0,
    }
}

impl UpdateRule for Lion {
    const NAME: &'static str = "Lion";

    fn check(&self) -> Result<()> {
        let (b1, b2) = self.betas;
        let betas = [("beta1", b1, Bound::Fraction), ("beta2", b2, Bound::Fraction)];
        check_numbers(Self::NAME, &betas)
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["m"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let (b1, b2) = self.betas;
        let mut w = w.clone();
        if self.weight_decay > 0.0 {
            w = decay(now, g.dtype(), self.weight_decay)?.multiply(&w)?;
        }
        let m = state.get("m")?;
        let direction = running_mean(&m, g, b1)?.sign()?;
        state.set("m", &running_mean(&m, g, b2)?);
        w.subtract(&now.rate(g.dtype())?.multiply(&direction)?)
    }
}
