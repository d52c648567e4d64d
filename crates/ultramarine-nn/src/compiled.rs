//! Compiled training steps.

use crate::layers::{
    base::{Leaf, Module, Visitor},
    weights,
};
use crate::{Parameters, optimizers::Optimizer};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use ultramarine::transforms::Tree;
use ultramarine::transforms::compile::{Traced, Traces, compiles_here};
use ultramarine::{Array, Error, Result, random};

const NAME: &str = "CompiledStep";

/// A compiled step of training. Its function is called once; later calls rebuild the graph that it made, from the
/// forward pass to the update.
///
/// The function is called again if inputs have other shapes or dtypes, if parameters were frozen, or if the mode
/// changed. As with [`compile`](fn@ultramarine::transforms::compile), arrays that it captures are constants, so values
/// that differ from step to step have to be inputs. Parameters, the optimizer's state and the random state are inputs
/// and results automatically.
///
/// ```
/// use ultramarine::{Array, Dtype, KeepDims, eval};
/// use ultramarine_nn::{CompiledStep, Layer, Linear, Module, losses::{Reduction, mse_loss}, value_and_grad};
/// use ultramarine_nn::optimizers::{Adam, Optimizer};
///
/// let (mut model, mut optimizer) = (Linear::new(3, 1)?, Adam::new(0.1));
/// let step = CompiledStep::new();
/// for i in 0..10 {
///     let x = (&Array::ones(&[4, 3], Dtype::Float32)? * f64::from(i))?;
///     let y = x.sum(KeepDims(-1))?;
///     let loss: Array = step.call(&mut model, &mut optimizer, &[x, y], |model, optimizer, batch| {
///         let (loss, gradients) = value_and_grad(model, |m| {
///             mse_loss(m.forward(&batch[0]), &batch[1], Reduction::Mean)
///         })?;
///         optimizer.update(model, &gradients)?;
///         Ok(loss)
///     })?;
///     eval(&[model.arrays(), optimizer.arrays(), vec![loss]].concat())?;
/// }
/// assert_eq!(step.traces(), 1);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Debug)]
pub struct CompiledStep<R = Array> {
    /// Each trace has a result with the right structure.
    traces: Traces<R>,
}

impl<R> Default for CompiledStep<R> {
    fn default() -> Self {
        CompiledStep { traces: Traces::default() }
    }
}

/// The arrays before a step.
struct Before {
    key: [u64; 2],
    parameters: Parameters,
    state: Parameters,
    random: Array,
}

impl Before {
    fn of<M: Module, O: Optimizer>(model: &M, optimizer: &O, inputs: usize) -> Result<Before> {
        let mut hasher = DefaultHasher::new();
        let mut parameters = Parameters::new();
        model.visit(&mut Visitor::new(&mut |name, leaf| {
            name.hash(&mut hasher);
            match leaf {
                Leaf::Mode(training) => training.hash(&mut hasher),
                _ => leaf.trainable().is_some().hash(&mut hasher),
            }
            if let Some(array) = leaf.array() {
                parameters.insert(name.to_owned(), array);
            }
        }));
        let state = optimizer.state();
        state.keys().for_each(|name| name.hash(&mut hasher));
        let key = [inputs as u64, hasher.finish()];
        Ok(Before { key, parameters, state, random: random::state()? })
    }

    /// All arrays that the step depends on. The inputs come last.
    fn arrays(&self, inputs: &[Array]) -> Vec<Array> {
        let own = self.parameters.values().chain(self.state.values()).chain([&self.random]);
        own.chain(inputs).cloned().collect()
    }

    /// Assigns arrays to model and optimizer, in the order of [`Before::arrays`]. Returns the remaining arrays, which
    /// begin with the random state.
    fn assign<'a, M: Module, O: Optimizer>(
        &self,
        model: &mut M,
        optimizer: &mut O,
        arrays: &'a [Array],
    ) -> Result<&'a [Array]> {
        let (of_model, rest) = arrays.split_at(self.parameters.len());
        let (of_optimizer, rest) = rest.split_at(self.state.len());
        weights::assign(model, &renewed(&self.parameters, of_model));
        optimizer.set_state(renewed(&self.state, of_optimizer))?;
        Ok(rest)
    }
}

/// The same names with other arrays.
fn renewed(names: &Parameters, arrays: &[Array]) -> Parameters {
    names.keys().cloned().zip(arrays.iter().cloned()).collect()
}

impl<R: Tree> CompiledStep<R> {
    /// Makes a step without graphs. The first [`CompiledStep::call`] traces the function.
    pub fn new() -> Self {
        CompiledStep::default()
    }

    /// Returns the number of kept graphs: one for each signature of the inputs.
    pub fn traces(&self) -> usize {
        self.traces.len()
    }

    /// Runs a step, by the function or by the graph that it built before. Each call has to pass the same function.
    ///
    /// # Errors
    /// The function's error; parameters and the optimizer's state are then unchanged. [`Error::Value`] if the function
    /// changes their names.
    pub fn call<M: Module, O: Optimizer>(
        &self,
        model: &mut M,
        optimizer: &mut O,
        inputs: &[Array],
        f: impl FnOnce(&mut M, &mut O, &[Array]) -> Result<R>,
    ) -> Result<R> {
        if !compiles_here() {
            return f(model, optimizer, inputs);
        }
        let mut before = Before::of(model, optimizer, inputs.len())?;
        let known = self.traces.call(&before.key, &before.arrays(inputs), false)?;
        let (outputs, trace) = match known {
            Some(called) => called,
            None => {
                // Otherwise, entries that the first update adds to the state would not be inputs.
                optimizer.init(&model.trainable_parameters())?;
                before = Before::of(model, optimizer, inputs.len())?;
                let all = before.arrays(inputs);
                let traced = self.trace(&before, model, optimizer, &all, f);
                before.assign(model, optimizer, &all)?;
                let (traced, like, reusable) = traced?;
                let (outputs, trace) = (traced.call(&all)?, Arc::new((traced, like)));
                if reusable {
                    self.traces.keep(&before.key, &all, false, trace.clone());
                }
                (outputs, trace)
            }
        };
        let rest = before.assign(model, optimizer, &outputs)?;
        let (state, results) = rest.split_first().ok_or_else(changed)?;
        random::set_state(state)?;
        trace.1.rebuild(&mut results.iter().cloned()).ok_or_else(changed)
    }

    /// Calls the function with stand-ins for the arrays. Model and optimizer contain the stand-ins afterwards.
    fn trace<M: Module, O: Optimizer>(
        &self,
        before: &Before,
        model: &mut M,
        optimizer: &mut O,
        all: &[Array],
        f: impl FnOnce(&mut M, &mut O, &[Array]) -> Result<R>,
    ) -> Result<(Traced, R, bool)> {
        let mut like = None;
        let run = |given: &[Array]| {
            let rest = before.assign(model, optimizer, given)?;
            let (state, inputs) = rest.split_first().ok_or_else(changed)?;
            let _random = random::StateScope::new(state)?;
            let made = f(model, optimizer, inputs)?;
            let (parameters, state) = (model.parameters(), optimizer.state());
            if !parameters.keys().eq(before.parameters.keys())
                || !state.keys().eq(before.state.keys())
            {
                return Err(changed());
            }
            let mut outputs: Vec<Array> =
                parameters.into_values().chain(state.into_values()).collect();
            outputs.push(random::state()?);
            made.leaves(&mut outputs);
            // Only the structure is kept, so replace the arrays.
            like = made.rebuild(&mut std::iter::repeat_with(|| Array::scalar(0.0f32)));
            Ok(outputs)
        };
        let (traced, reusable) = Traced::new(run, all, false)?;
        Ok((traced, like.ok_or_else(changed)?, reusable))
    }
}

fn changed() -> Error {
    let text =
        "The step changes names of parameters or of the optimizer's state. Do that between steps.";
    Error::value(NAME, text)
}
