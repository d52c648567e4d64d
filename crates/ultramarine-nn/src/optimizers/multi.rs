//! Several optimizers for the parameters of one model.

use super::base::Optimizer;
use crate::{Gradients, Parameters};
use ultramarine::{Array, Error, Result};

type Filter = Box<dyn Fn(&str, &Array) -> bool + Send + Sync>;

/// An optimizer that distributes parameters to several optimizers, by their names and gradients.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::{Linear, optimizers::{Adam, MultiOptimizer, Muon, Optimizer}};
/// let matrices = |_: &str, gradient: &Array| gradient.ndim() >= 2;
/// let optimizer = MultiOptimizer::new(Adam::new(1e-3)).with(matrices, Muon::new(0.02));
/// assert!(optimizer.state().contains_key("states.1.step"));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub struct MultiOptimizer {
    filtered: Vec<(Filter, Box<dyn Optimizer + Send + Sync>)>,
    default: Box<dyn Optimizer + Send + Sync>,
}

impl MultiOptimizer {
    /// Makes an optimizer whose `default` updates all parameters that no other optimizer selects.
    pub fn new(default: impl Optimizer + Send + Sync + 'static) -> MultiOptimizer {
        MultiOptimizer { filtered: Vec::new(), default: Box::new(default) }
    }

    /// Adds an optimizer for the parameters that `select` returns true for. `select` gets a
    /// parameter's name and gradient. If several optimizers select a parameter, the first one
    /// updates it.
    #[must_use]
    pub fn with(
        mut self,
        select: impl Fn(&str, &Array) -> bool + Send + Sync + 'static,
        optimizer: impl Optimizer + Send + Sync + 'static,
    ) -> MultiOptimizer {
        self.filtered.push((Box::new(select), Box::new(optimizer)));
        self
    }

    /// The optimizers, in the order of their states: the default is the last.
    fn all(&self) -> impl Iterator<Item = &dyn Optimizer> {
        let filtered = self.filtered.iter().map(|(_, o)| o.as_ref() as &dyn Optimizer);
        filtered.chain([self.default.as_ref() as &dyn Optimizer])
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut (dyn Optimizer + Send + Sync + 'static)> {
        let filtered = self.filtered.iter_mut().map(|(_, o)| o.as_mut());
        filtered.chain([self.default.as_mut()])
    }

    /// The arrays of each optimizer.
    fn split(&self, arrays: &Parameters) -> Vec<Parameters> {
        let mut parts = vec![Parameters::new(); self.filtered.len() + 1];
        for (name, array) in arrays {
            let found = self.filtered.iter().position(|(select, _)| select(name, array));
            let place = found.unwrap_or(self.filtered.len());
            parts[place].insert(name.clone(), array.clone());
        }
        parts
    }
}

impl Optimizer for MultiOptimizer {
    fn apply_gradients(
        &mut self,
        gradients: &Gradients,
        parameters: &Parameters,
    ) -> Result<Parameters> {
        let parts = self.split(gradients);
        let mut updated = Parameters::new();
        for (optimizer, part) in self.all_mut().zip(&parts) {
            updated.append(&mut optimizer.apply_gradients(part, parameters)?);
        }
        Ok(updated)
    }

    fn init(&mut self, parameters: &Parameters) -> Result<()> {
        let parts = self.split(parameters);
        self.all_mut().zip(&parts).try_for_each(|(optimizer, part)| optimizer.init(part))
    }

    fn state(&self) -> Parameters {
        let numbered = self.all().enumerate().flat_map(|(i, optimizer)| {
            let own = optimizer.state().into_iter();
            own.map(move |(name, array)| (format!("states.{i}.{name}"), array))
        });
        numbered.collect()
    }

    fn set_state(&mut self, state: Parameters) -> Result<()> {
        let count = self.filtered.len() + 1;
        let mut parts = vec![Parameters::new(); count];
        for (name, array) in state {
            let place = name.strip_prefix("states.").and_then(|rest| rest.split_once('.'));
            let found =
                place.and_then(|(i, own)| Some((parts.get_mut(i.parse::<usize>().ok()?)?, own)));
            let Some((part, own)) = found else {
                let text = format!(
                    "The state has {name:?}, and names of {count} optimizers begin with states.0 to states.{}. Set the state that the optimizers had.",
                    count - 1
                );
                return Err(Error::value("MultiOptimizer", text));
            };
            part.insert(own.to_owned(), array);
        }
        self.all_mut().zip(parts).try_for_each(|(optimizer, part)| optimizer.set_state(part))
    }

    fn learning_rate(&self) -> Result<Array> {
        self.all().next().map_or_else(|| self.default.learning_rate(), Optimizer::learning_rate)
    }

    fn set_learning_rate(&mut self, rate: f64) {
        self.all_mut().for_each(|optimizer| optimizer.set_learning_rate(rate));
    }
}
