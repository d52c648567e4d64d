//! The traits of optimizers, and their common state.

use super::schedulers::Schedule;
use crate::layers::{base::Module, weights};
use crate::{Gradients, Parameters};
use std::cell::RefCell;
use std::path::Path;
use ultramarine::{Array, Dtype, Error, Result};

const STEP: &str = "step";
const RATE: &str = "learning_rate";

/// An optimizer: it updates parameters by their gradients, and keeps state for each parameter.
///
/// The names of the state are those of the Python package, flattened: `step`, `learning_rate`, and `layers.0.weight.m`
/// for the entry `m` of a parameter. Each package reads files of the other.
pub trait Optimizer {
    /// Returns the new values of the parameters that have gradients, and updates the state.
    ///
    /// # Errors
    /// [`Error::Value`] for a gradient without a parameter, and for invalid settings of the optimizer.
    fn apply_gradients(
        &mut self,
        gradients: &Gradients,
        parameters: &Parameters,
    ) -> Result<Parameters>;

    /// Makes the state of parameters without state, as their first update would.
    ///
    /// # Errors
    /// Errors of computing the state, and of a schedule.
    fn init(&mut self, parameters: &Parameters) -> Result<()>;

    /// Returns the state by name: `step`, `learning_rate` and the entries of each parameter.
    fn state(&self) -> Parameters;

    /// Replaces the state.
    ///
    /// # Errors
    /// [`Error::Value`] for a state of another optimizer.
    fn set_state(&mut self, state: Parameters) -> Result<()>;

    /// The learning rate of the last update, or of the first one.
    ///
    /// # Errors
    /// [`Error::Value`] if there is none; errors of a schedule.
    fn learning_rate(&self) -> Result<Array>;

    /// Sets the learning rate to a number. It replaces a schedule, too.
    fn set_learning_rate(&mut self, rate: f64);

    /// Updates a model's parameters.
    ///
    /// # Errors
    /// As [`Optimizer::apply_gradients`].
    fn update(&mut self, model: &mut dyn Module, gradients: &Gradients) -> Result<()> {
        let updated = self.apply_gradients(gradients, &model.parameters())?;
        weights::assign(model, &updated);
        Ok(())
    }

    /// Updates a model's parameters, and evaluates them and the optimizer's state: the end of a step of training.
    ///
    /// # Errors
    /// As [`Optimizer::update`]; errors of evaluation.
    fn step(&mut self, model: &mut dyn Module, gradients: &Gradients) -> Result<()> {
        self.update(model, gradients)?;
        ultramarine::eval(&[model.arrays(), self.arrays()].concat())
    }

    /// Returns the arrays of the state, for evaluation; see [`Optimizer::step`].
    fn arrays(&self) -> Vec<Array> {
        self.state().into_values().collect()
    }

    /// Writes the state to a file, `.safetensors` or `.npz`.
    ///
    /// # Errors
    /// As [`Module::save_weights`].
    fn save_state(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        weights::write("save_state", path.as_ref(), &self.state())
    }

    /// Replaces the state by that of a file.
    ///
    /// # Errors
    /// Errors of reading; errors of [`Optimizer::set_state`].
    fn load_state(&mut self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.set_state(weights::read("load_state", path.as_ref())?)
    }
}

/// State and learning rate of an optimizer. A type with an [`UpdateRule`] has it as a field.
#[derive(Clone, Debug)]
pub struct Common {
    schedule: Option<Schedule>,
    state: Parameters,
}

impl Common {
    /// Makes the state of an optimizer with a learning rate: a number, or a [`Schedule`].
    pub fn new(rate: impl Into<Schedule>) -> Common {
        let mut common = Common::without_rate();
        common.set_schedule(rate.into());
        common
    }

    /// Makes the state of an optimizer without a learning rate.
    pub(super) fn without_rate() -> Common {
        let state = Parameters::from([(STEP.to_owned(), Array::scalar(0u64))]);
        Common { schedule: None, state }
    }

    pub(super) fn set_schedule(&mut self, schedule: Schedule) {
        match schedule.constant() {
            Some(rate) => self.set_rate(rate),
            None => self.schedule = Some(schedule),
        }
    }

    fn set_rate(&mut self, rate: f64) {
        self.schedule = None;
        self.state.insert(RATE.to_owned(), Array::scalar(rate as f32));
    }

    /// Counts an update, and sets its learning rate.
    fn begin(&mut self, of: &str) -> Result<Step> {
        let before = self.state.get(STEP).cloned();
        let before = before.ok_or_else(|| missing(of, STEP))?;
        if let Some(schedule) = &self.schedule {
            self.state.insert(RATE.to_owned(), schedule.at(&before)?);
        }
        let count = (&before + 1)?;
        self.state.insert(STEP.to_owned(), count.clone());
        Ok(Step {
            of: of.to_owned(),
            count,
            rate: self.state.get(RATE).cloned(),
            shared: RefCell::default(),
        })
    }
}

fn missing(of: &str, name: &str) -> Error {
    Error::value(of, format!("The state has no {name:?}. Set the state that the optimizer had."))
}

/// The current update. All parameters share it; [`UpdateRule::apply`] gets it.
pub struct Step {
    of: String,
    count: Array,
    rate: Option<Array>,
    shared: RefCell<Vec<(&'static str, Dtype, Array)>>,
}

impl Step {
    /// Returns the number of updates, including this one: uint64, without axes.
    pub fn count(&self) -> &Array {
        &self.count
    }

    /// The learning rate in a dtype.
    ///
    /// # Errors
    /// [`Error::Value`] if there is none.
    pub fn rate(&self, dtype: Dtype) -> Result<Array> {
        let rate = self.rate.as_ref().ok_or_else(|| missing(&self.of, RATE))?;
        self.once(RATE, dtype, || Ok(rate.astype(dtype)))
    }

    /// Returns a value that is computed for the first parameter of a dtype, and kept under a name for the others.
    ///
    /// # Errors
    /// Errors of computing it.
    pub fn once(
        &self,
        name: &'static str,
        dtype: Dtype,
        compute: impl FnOnce() -> Result<Array>,
    ) -> Result<Array> {
        let found = |(n, d, _): &&(&str, Dtype, Array)| (*n, *d) == (name, dtype);
        if let Some((_, _, array)) = self.shared.borrow().iter().find(found) {
            return Ok(array.clone());
        }
        let array = compute()?;
        self.shared.borrow_mut().push((name, dtype, array.clone()));
        Ok(array)
    }
}

/// The state of one parameter, by the names that [`UpdateRule::first_state`] gave. Entries are
/// arrays, such as running means.
pub struct Slots<'a> {
    of: &'a str,
    parameter: &'a str,
    state: &'a mut Parameters,
}

impl Slots<'_> {
    fn key(&self, name: &str) -> String {
        match self.parameter {
            "" => name.to_owned(),
            parameter => format!("{parameter}.{name}"),
        }
    }

    /// An entry.
    ///
    /// # Errors
    /// [`Error::Value`] if there is none of that name.
    pub fn get(&self, name: &str) -> Result<Array> {
        let key = self.key(name);
        self.state.get(&key).cloned().ok_or_else(|| missing(self.of, &key))
    }

    /// Adds the entries that are missing.
    fn fill(&mut self, first: Vec<(&'static str, Array)>) {
        for (entry, array) in first {
            self.state.entry(self.key(entry)).or_insert(array);
        }
    }

    /// Replaces the entry of a name, or adds it.
    pub fn set(&mut self, name: &str, array: &Array) {
        self.state.insert(self.key(name), array.clone());
    }
}

/// The update of one parameter. A type with a rule and a [`Common`] is an [`Optimizer`].
///
/// ```
/// use ultramarine::{Array, Result};
/// use ultramarine_nn::optimizers::{Common, Optimizer, Slots, Step, UpdateRule};
///
/// /// Goes by the sign of the gradient.
/// struct SignDescent(Common);
///
/// impl AsRef<Common> for SignDescent {
///     fn as_ref(&self) -> &Common {
///         &self.0
///     }
/// }
///
/// impl AsMut<Common> for SignDescent {
///     fn as_mut(&mut self) -> &mut Common {
///         &mut self.0
///     }
/// }
///
/// impl UpdateRule for SignDescent {
///     const NAME: &'static str = "SignDescent";
///
///     fn apply(&self, now: &Step, gradient: &Array, parameter: &Array, _: &mut Slots<'_>) -> Result<Array> {
///         parameter.subtract(&now.rate(gradient.dtype())?.multiply(&gradient.sign()?)?)
///     }
/// }
///
/// let mut optimizer = SignDescent(Common::new(0.5));
/// let one = |x: f32| [("w".to_owned(), Array::scalar(x))].into();
/// let updated = optimizer.apply_gradients(&one(-3.0), &one(1.0))?;
/// assert_eq!(updated["w"].item::<f32>()?, 1.5);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub trait UpdateRule: AsRef<Common> + AsMut<Common> {
    /// The optimizer's name, for errors.
    const NAME: &'static str;

    /// Checks the settings of the optimizer.
    ///
    /// # Errors
    /// [`Error::Value`] that describes the invalid setting.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The first state of a parameter: usually zeros.
    ///
    /// # Errors
    /// Errors of computing it.
    fn first_state(&self, parameter: &Array) -> Result<Vec<(&'static str, Array)>> {
        let _ = parameter;
        Ok(Vec::new())
    }

    /// Returns the new value of a parameter, and updates `state`.
    ///
    /// # Errors
    /// Errors of its operations.
    fn apply(
        &self,
        now: &Step,
        gradient: &Array,
        parameter: &Array,
        state: &mut Slots<'_>,
    ) -> Result<Array>;
}

impl<R: UpdateRule> Optimizer for R {
    fn apply_gradients(
        &mut self,
        gradients: &Gradients,
        parameters: &Parameters,
    ) -> Result<Parameters> {
        self.check()?;
        if let Some(name) = gradients.keys().find(|name| !parameters.contains_key(*name)) {
            let text =
                format!("The gradient {name:?} has no parameter. Pass the model's gradients.");
            return Err(Error::value(R::NAME, text));
        }
        let now = self.as_mut().begin(R::NAME)?;
        // Taken out of the rule's own struct, which `apply` borrows.
        let mut state = std::mem::take(&mut self.as_mut().state);
        let mut updated = Parameters::new();
        let outcome = gradients.iter().try_for_each(|(name, gradient)| {
            let mut slots = Slots { of: R::NAME, parameter: name, state: &mut state };
            slots.fill(self.first_state(gradient)?);
            let new = self.apply(&now, gradient, &parameters[name], &mut slots)?;
            updated.insert(name.clone(), new);
            Ok(())
        });
        self.as_mut().state = state;
        outcome.map(|()| updated)
    }

    fn init(&mut self, parameters: &Parameters) -> Result<()> {
        self.check()?;
        for (name, parameter) in parameters {
            let first = self.first_state(parameter)?;
            let state = &mut self.as_mut().state;
            Slots { of: R::NAME, parameter: name, state }.fill(first);
        }
        let Common { schedule, state } = self.as_mut();
        if let (Some(schedule), Some(step), false) =
            (schedule, state.get(STEP), state.contains_key(RATE))
        {
            let rate = schedule.at(step)?;
            state.insert(RATE.to_owned(), rate);
        }
        Ok(())
    }

    fn state(&self) -> Parameters {
        self.as_ref().state.clone()
    }

    fn set_state(&mut self, state: Parameters) -> Result<()> {
        if !state.contains_key(STEP) {
            return Err(missing(R::NAME, STEP));
        }
        self.as_mut().state = state;
        Ok(())
    }

    fn learning_rate(&self) -> Result<Array> {
        let Common { schedule, state } = self.as_ref();
        match (state.get(RATE), schedule, state.get(STEP)) {
            (Some(rate), _, _) => Ok(rate.clone()),
            (None, Some(schedule), Some(step)) => schedule.at(step),
            _ => Err(missing(R::NAME, RATE)),
        }
    }

    fn set_learning_rate(&mut self, rate: f64) {
        self.as_mut().set_rate(rate);
    }
}

/// Structs of optimizers, with a setter for each number.
macro_rules! optimizers {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$about:meta])* $field:ident: $of:ty = $default:expr,)* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            common: $crate::optimizers::Common,
            $($field: $of,)*
        }

        impl $name {
            /// Makes an optimizer with a learning rate: a number, or a schedule of rates.
            pub fn new(learning_rate: impl Into<$crate::optimizers::Schedule>) -> $name {
                $name { common: $crate::optimizers::Common::new(learning_rate), $($field: $default,)* }
            }

            $($(#[$about])*
            #[must_use]
            pub fn $field(mut self, $field: $of) -> $name {
                self.$field = $field;
                self
            })*
        }

        $crate::optimizers::base::has_common!($name);
    )*};
}
pub(super) use optimizers;

macro_rules! has_common {
    ($name:ident) => {
        impl AsRef<$crate::optimizers::Common> for $name {
            fn as_ref(&self) -> &$crate::optimizers::Common {
                &self.common
            }
        }

        impl AsMut<$crate::optimizers::Common> for $name {
            fn as_mut(&mut self) -> &mut $crate::optimizers::Common {
                &mut self.common
            }
        }
    };
}
pub(super) use has_common;

/// Zeros of a parameter's shape and dtype, under each of the names.
pub(super) fn zeros<const N: usize>(
    names: [&'static str; N],
    parameter: &Array,
) -> Result<Vec<(&'static str, Array)>> {
    Ok(names.map(|name| (name, parameter.zeros_like())).into())
}

/// A running mean: `part * old + (1 - part) * new`.
pub(super) fn running_mean(old: &Array, new: &Array, part: f64) -> Result<Array> {
    (old * part)?.add(&(new * (1.0 - part))?)
}

/// Checks settings: `(name, value, is valid, remedy)`.
pub(super) fn check_numbers(of: &str, numbers: &[(&str, f64, Bound)]) -> Result<()> {
    for &(name, value, bound) in numbers {
        let (right, wanted) = match bound {
            Bound::Fraction => ((0.0..1.0).contains(&value), "a number in [0, 1)"),
            Bound::NotNegative => (value >= 0.0, "a number that is not negative"),
            Bound::Positive => (value > 0.0, "a positive number"),
        };
        if !right {
            return Err(Error::value(of, format!("{name} is {value}. Pass {wanted}.")));
        }
    }
    Ok(())
}

/// The range of a number.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    Fraction,
    NotNegative,
    Positive,
}
