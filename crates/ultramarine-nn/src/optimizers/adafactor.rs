//! Adafactor.

use super::base::{Common, Slots, Step, UpdateRule, has_common};
use super::schedulers::Schedule;
use ultramarine::{Array, Dtype, KeepDims, Result};

/// Adafactor. Its second moments of a matrix take only as much memory as a row and a column (Shazeer and Stern, 2018).
///
/// For parameters of two and more axes, R and C are the running means of `g^2 + eps1` over the last and the second last axis, and
/// `R C / mean(R)` stands for the full second moment V. Their coefficient is `1 - t^decay_rate` in update t. With
/// `u = g / sqrt(V)`, `w -= size u / max(1, rms(u) / clip_threshold)`.
///
/// The step size is the learning rate. With `relative_step` it is the smaller of `1 / sqrt(t)` and 0.01 (`1e-6 t` with
/// `warmup_init`). `scale_parameter` multiplies it by `max(eps2, rms(w))`.
///
/// ```
/// use ultramarine_nn::optimizers::Adafactor;
/// let relative = Adafactor::new();
/// let absolute = Adafactor::new().learning_rate(1e-3).relative_step(false);
/// ```
#[derive(Clone, Debug)]
pub struct Adafactor {
    common: Common,
    eps: (f64, f64),
    clip_threshold: f64,
    decay_rate: f64,
    beta_1: Option<f64>,
    weight_decay: f64,
    scale_parameter: bool,
    relative_step: bool,
    warmup_init: bool,
}

impl Default for Adafactor {
    fn default() -> Adafactor {
        Adafactor {
            common: Common::without_rate(),
            eps: (1e-30, 1e-3),
            clip_threshold: 1.0,
            decay_rate: -0.8,
            beta_1: None,
            weight_decay: 0.0,
            scale_parameter: true,
            relative_step: true,
            warmup_init: false,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $of:ty,)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $of) -> Adafactor {
            self.$name = $name;
            self
        }
    )*};
}

impl Adafactor {
    /// Makes an optimizer with relative steps, which needs no learning rate.
    pub fn new() -> Adafactor {
        Adafactor::default()
    }

    /// Sets the learning rate: a number, or a schedule. It is used only without [`Adafactor::relative_step`].
    #[must_use]
    pub fn learning_rate(mut self, rate: impl Into<Schedule>) -> Adafactor {
        self.common.set_schedule(rate.into());
        self
    }

    /// Sets the coefficient of a running mean of updates; none by default. The mean takes as much
    /// memory as the parameters.
    #[must_use]
    pub fn beta_1(mut self, beta_1: f64) -> Adafactor {
        self.beta_1 = Some(beta_1);
        self
    }

    setters! {
        /// Sets the terms that are added to squares and to the root mean square; 1e-30 and 1e-3 by default.
        eps: (f64, f64),
        /// Sets the root mean square at which updates are clipped; 1 by default.
        clip_threshold: f64,
        /// Sets the exponent of the running means' coefficient; -0.8 by default.
        decay_rate: f64,
        /// Sets the weight decay; 0 by default.
        weight_decay: f64,
        /// Sets whether the step size is scaled with the parameter; true by default.
        scale_parameter: bool,
        /// Sets whether the step size is computed from the step; true by default.
        relative_step: bool,
        /// Sets whether relative steps begin small; false by default.
        warmup_init: bool,
    }

    /// The step size before it is scaled with the parameter.
    fn size(&self, now: &Step, dtype: Dtype) -> Result<Array> {
        if !self.relative_step {
            return now.rate(dtype);
        }
        now.once("relative size", dtype, || {
            let root = now.count().rsqrt()?;
            let limit = match self.warmup_init {
                true => (now.count() * 1e-6)?,
                false => root.scalar_like(1e-2)?,
            };
            Ok(limit.minimum(&root)?.astype(dtype))
        })
    }

    /// The coefficient of the running means.
    fn coefficient(&self, now: &Step, dtype: Dtype) -> Result<Array> {
        now.once("coefficient", dtype, || {
            let power = now.count().power(self.decay_rate)?;
            1.0 - &power.astype(dtype)
        })
    }
}

has_common!(Adafactor);

/// The root of the mean square.
fn rms(x: &Array) -> Result<Array> {
    x.square()?.mean(None)?.sqrt()
}

impl UpdateRule for Adafactor {
    const NAME: &'static str = "Adafactor";

    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        let dtype = parameter.dtype();
        let mut state = match parameter.shape() {
            [outer @ .., rows, columns] => vec![
                ("exp_avg_sq_row", Array::zeros(&[outer, &[*rows]].concat(), dtype)?),
                ("exp_avg_sq_col", Array::zeros(&[outer, &[*columns]].concat(), dtype)?),
            ],
            _ => vec![("exp_avg_sq", parameter.zeros_like())],
        };
        if self.beta_1.is_some() {
            state.push(("exp_avg", parameter.zeros_like()));
        }
        Ok(state)
    }

    fn apply(&self, now: &Step, g: &Array, w: &Array, state: &mut Slots<'_>) -> Result<Array> {
        let dtype = w.dtype();
        let mut size = self.size(now, dtype)?;
        if self.scale_parameter {
            let rms = rms(w)?;
            size = rms.maximum(self.eps.1)?.multiply(&size)?;
        }
        let old = self.coefficient(now, dtype)?;
        let new = (1.0 - &old)?;
        let mut mean = |name: &str, of: &Array| -> Result<Array> {
            let mean = old.multiply(&state.get(name)?)?.add(&new.multiply(of)?)?;
            state.set(name, &mean);
            Ok(mean)
        };
        let square = (&g.square()? + self.eps.0)?;
        let factor = match g.ndim() >= 2 {
            true => {
                let row = mean("exp_avg_sq_row", &square.mean(-1)?)?;
                let column = mean("exp_avg_sq_col", &square.mean(-2)?)?;
                let row = row.divide(&row.mean(KeepDims(-1))?)?.rsqrt()?;
                row.expand_dims(-1)?.multiply(&column.rsqrt()?.expand_dims(-2)?)?
            }
            false => mean("exp_avg_sq", &square)?.rsqrt()?,
        };
        let update = factor.multiply(g)?;
        let excess = (&rms(&update)? / self.clip_threshold)?;
        let mut update = size.multiply(&update.divide(&excess.maximum(1.0)?)?)?;
        if let Some(beta) = self.beta_1 {
            update = super::base::running_mean(&state.get("exp_avg")?, &update, beta)?;
            state.set("exp_avg", &update);
        }
        let mut w = w.clone();
        if self.weight_decay != 0.0 {
            w = w.add(&w.multiply(&(&size * -self.weight_decay)?)?)?;
        }
        w.subtract(&update)
    }
}
