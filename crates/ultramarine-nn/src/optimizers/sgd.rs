//! Gradient descent.

use super::base::{Slots, Step, UpdateRule, optimizers, zeros};
use ultramarine::{Array, Error, Result};

optimizers! {
    /// Stochastic gradient descent, optionally with momentum: `v = momentum v + (1 - dampening) g`, `w -= rate v`.
    ///
    /// With Nesterov's momentum the step is `g + momentum v`. Weight decay adds `weight_decay w` to the gradient.
    SGD {
        /// Sets the fraction of the velocity that is kept; 0 by default.
        momentum: f64 = 0.0,
        /// Sets the weight decay; 0 by default.
        weight_decay: f64 = 0.0,
        /// Sets the fraction of the gradient that is left out of the velocity; 0 by default.
        dampening: f64 = 0.0,
        /// Sets whether Nesterov's momentum is used; false by default.
        nesterov: bool = false,
    }
}

impl UpdateRule for SGD {
    const NAME: &'static str = "SGD";

    fn check(&self) -> Result<()> {
        let SGD { momentum, dampening, nesterov, .. } = *self;
        if nesterov && (momentum <= 0.0 || dampening != 0.0) {
            let text = format!(
                "nesterov has momentum {momentum} and dampening {dampening}. Pass a positive momentum and no dampening."
            );
            return Err(Error::value(Self::NAME, text));
        }
        Ok(())
    }

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["v"], parameter)
    }

    fn apply(
        &self,
        now: &Step,
        gradient: &Array,
        parameter: &Array,
        state: &mut Slots<'_>,
    ) -> Result<Array> {
        let mut gradient = gradient.clone();
        if self.weight_decay != 0.0 {
            gradient = gradient.add(&(parameter * self.weight_decay)?)?;
        }
        let mut update = gradient.clone();
        if self.momentum > 0.0 {
            if self.dampening > 0.0 {
                update = (&update * (1.0 - self.dampening))?;
            }
            update = (&state.get("v")? * self.momentum)?.add(&update)?;
            state.set("v", &update);
            if self.nesterov {
                update = gradient.add(&(&update * self.momentum)?)?;
            }
        }
        parameter.subtract(&now.rate(gradient.dtype())?.multiply(&update)?)
    }
}
