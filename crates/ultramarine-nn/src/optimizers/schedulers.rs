//! Schedules of learning rates.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;
use ultramarine::{Array, Error, Result, where_};

/// A learning rate: a number, or a function of the number of earlier updates, which is an array of uint64.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::optimizers::{SGD, Schedule, exponential_decay};
/// SGD::new(0.1);
/// SGD::new(exponential_decay(0.1, 0.9));
/// SGD::new(|step: &Array| 1.0 / &(step + 1.0)?);
/// let halved = Schedule::from(|step: &Array| step.scalar_like(0.5)?.power(step));
/// assert_eq!(halved.at(&Array::scalar(2u64))?.item::<f32>()?, 0.25);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone)]
pub struct Schedule(Kind);

#[derive(Clone)]
enum Kind {
    Constant(f64),
    Function(Arc<Function>),
}

type Function = dyn Fn(&Array) -> Result<Array> + Send + Sync;

impl Schedule {
    /// The rate after `step` updates.
    ///
    /// # Errors
    /// Errors of the function.
    pub fn at(&self, step: &Array) -> Result<Array> {
        match &self.0 {
            Kind::Constant(rate) => Ok(Array::scalar(*rate as f32)),
            Kind::Function(rate) => rate(step),
        }
    }

    /// The number, unless the rate is a function.
    pub(super) fn constant(&self) -> Option<f64> {
        match self.0 {
            Kind::Constant(rate) => Some(rate),
            Kind::Function(_) => None,
        }
    }
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Schedule {
        Schedule(Kind::Constant(rate))
    }
}

impl From<f32> for Schedule {
    fn from(rate: f32) -> Schedule {
        Schedule(Kind::Constant(rate.into()))
    }
}

impl<F: Fn(&Array) -> Result<Array> + Send + Sync + 'static> From<F> for Schedule {
    fn from(rate: F) -> Schedule {
        Schedule(Kind::Function(Arc::new(rate)))
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Constant(rate) => write!(f, "{rate}"),
            Kind::Function(_) => f.write_str("a function"),
        }
    }
}

/// A schedule over a number of steps, which must not be 0.
fn over(
    op: &'static str,
    steps: u64,
    rate: impl Fn(&Array, i64) -> Result<Array> + Send + Sync + 'static,
) -> Schedule {
    Schedule::from(move |step: &Array| match i64::try_from(steps) {
        Ok(steps) if steps > 0 => rate(step, steps),
        _ => Err(Error::value(
            op,
            format!("The number of steps is {steps}. Pass a positive number."),
        )),
    })
}

/// Returns the schedule `init decay_rate^step`.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::optimizers::{exponential_decay, join_schedules, linear_schedule};
/// let warmup = linear_schedule(0.0, 0.1, 10);
/// let rate = join_schedules(vec![warmup, exponential_decay(0.1, 0.5)], vec![10]);
/// let after = |steps: u64| rate.at(&Array::scalar(steps))?.item::<f32>();
/// assert!((after(5)? - 0.05).abs() < 1e-6);
/// assert_eq!((after(10)?, after(11)?), (0.1, 0.05));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn exponential_decay(init: f64, decay_rate: f64) -> Schedule {
    Schedule::from(move |step: &Array| &step.scalar_like(decay_rate)?.power(step)? * init)
}

/// Returns the schedule `init decay_rate^floor(step / step_size)`: the rate falls every `step_size`
/// updates.
///
/// # Errors
/// The schedule fails with [`Error::Value`] if `step_size` is 0.
pub fn step_decay(init: f64, decay_rate: f64, step_size: u64) -> Schedule {
    over("step_decay", step_size, move |step, size| {
        let decays = step.floor_divide(size)?;
        &decays.scalar_like(decay_rate)?.power(&decays)? * init
    })
}

/// Returns a schedule that follows half a period of a cosine from `init` to `end` in `decay_steps`
/// updates, and stays at `end` (Loshchilov and Hutter, "SGDR", 2017).
///
/// # Errors
/// The schedule fails with [`Error::Value`] if `decay_steps` is 0.
pub fn cosine_decay(init: f64, decay_steps: u64, end: f64) -> Schedule {
    over("cosine_decay", decay_steps, move |step, steps| {
        let phase = (&step.minimum(steps)? * (PI / steps as f64))?;
        let part = (&(&phase.cos()? + 1.0)? * 0.5)?;
        &(&part * (init - end))? + end
    })
}

/// Returns a schedule that goes linearly from `init` to `end` in `steps` updates, and stays at
/// `end`.
///
/// # Errors
/// The schedule fails with [`Error::Value`] if `steps` is 0.
pub fn linear_schedule(init: f64, end: f64, steps: u64) -> Schedule {
    over("linear_schedule", steps, move |step, steps| {
        let done = step.minimum(steps)?;
        &(&done * ((end - init) / steps as f64))? + init
    })
}

/// Returns a schedule that follows each of `schedules` in turn. Schedule i + 1 begins at update
/// `boundaries[i]`, which it counts as 0. See [`exponential_decay`] for an example.
///
/// # Errors
/// The schedule fails with [`Error::Value`] unless there is one boundary less than schedules.
pub fn join_schedules(schedules: Vec<Schedule>, boundaries: Vec<u64>) -> Schedule {
    Schedule::from(move |step: &Array| {
        let (count, given) = (schedules.len(), boundaries.len());
        let Some((first, others)) = schedules.split_first().filter(|_| given + 1 == count) else {
            let text = format!(
                "{count} schedules have {given} boundaries. Pass one between each two schedules."
            );
            return Err(Error::value("join_schedules", text));
        };
        let mut rate = first.at(step)?;
        for (boundary, next) in boundaries.iter().zip(others) {
            let boundary = Array::scalar(*boundary).astype(step.dtype());
            let next = next.at(&step.subtract(&boundary)?)?;
            rate = where_(&step.less(&boundary)?, &rate, &next)?;
        }
        Ok(rate)
    })
}
