//! Muon.

use super::base::{Slots, Step, UpdateRule, optimizers, zeros};
use ultramarine::{Array, KeepDims, Result, addmm, linalg};

optimizers! {
    /// Muon, whose steps of matrices are made orthogonal (Jordan et al., 2024): `v = momentum v + (1 - momentum) g`,
    /// then `w -= rate sqrt(max(1, rows / columns)) orthogonal(v)`. For parameters that are not matrices it is `w -=
    /// rate v`.
    ///
    /// With more than two axes, all but the first count as one. Weight decay adds `weight_decay w` to the gradient.
    Muon {
        /// Sets the fraction of the velocity that is kept; 0.95 by default.
        momentum: f64 = 0.95,
        /// Sets the weight decay; 0.01 by default.
        weight_decay: f64 = 0.01,
        /// Sets whether Nesterov's momentum is used; true by default.
        nesterov: bool = true,
        /// Sets the number of Newton-Schulz iterations; 5 by default.
        ns_steps: usize = 5,
    }
}

/// Coefficients of the Newton-Schulz iteration.
const A: f64 = 3.4445;
const B: f64 = -4.775;
const C: f64 = 2.0315;

/// A matrix with singular values near 1 and the singular vectors of `x`.
fn orthogonal(x: &Array, steps: usize) -> Result<Array> {
    let tall = x.shape()[0] > x.shape()[1];
    let x = if tall { x.transpose()? } else { x.clone() };
    let mut x = x.divide(&(&linalg::norm(&x, None, KeepDims(..))? + 1e-7)?)?;
    for _ in 0..steps {
        let a = x.matmul(&x.transpose()?)?;
        let polynomial = addmm(&(&a * B)?, &a, &a, C, 1.0)?;
        x = addmm(&(&x * A)?, &polynomial, &x, 1.0, 1.0)?;
    }
    if tall { x.transpose() } else { Ok(x) }
}

impl UpdateRule for Muon {
    const NAME: &'static str = "Muon";

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        zeros(["v"], parameter)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let mut g = g.clone();
        if self.weight_decay != 0.0 {
            g = g.add(&(w * self.weight_decay)?)?;
        }
        let new = (&g * (1.0 - self.momentum))?;
        let mut update = (&state.get("v")? * self.momentum)?.add(&new)?;
        state.set("v", &update);
        if self.nesterov {
            update = new.add(&(&update * self.momentum)?)?;
        }
        let mut rate = now.rate(g.dtype())?;
        let shape = update.shape().to_vec();
        if let [first, .., rows, columns] | [first @ rows, columns] = shape[..] {
            rate = (&rate * (rows as f64 / columns as f64).max(1.0).sqrt())?;
            let matrix = update.reshape(&[first as isize, -1])?;
            update = orthogonal(&matrix, self.ns_steps)?.reshape(&shape)?;
        }
        w.subtract(&rate.multiply(&update)?)
    }
}
