//! A run in which a command failed. Results that do not depend on the failure are still computed,
//! as in an evaluation.

use super::list::{List, Stopped};
use super::{Executable, Memory};
use crate::backend::{call::Exec, value::Value};
use crate::error::Error;
use std::ops::Range;
use std::sync::Arc;

/// The reason why a run did not return all outputs.
pub struct Failure {
    /// The error of the first command that failed.
    pub error: Error,
    /// The graph operation of that command.
    pub op: &'static str,
    /// True if no memory of the inputs was overwritten and nothing was called. The inputs can then
    /// still be used.
    pub intact: bool,
    /// If the run is not intact: each output, or the error for its absence. Empty if there are no
    /// outputs at all.
    pub outputs: Vec<Result<Value, Error>>,
}

impl Failure {
    /// Makes a failure of a run in which nothing was overwritten.
    pub(super) fn intact(error: Error, op: &'static str) -> Failure {
        Failure { error, op, intact: true, outputs: Vec::new() }
    }

    /// Returns the error of an array that could not be computed because of this failure.
    pub fn poisoned(self) -> Error {
        Error::Poisoned { op: self.op, cause: Arc::new(self.error) }
    }
}

impl From<(Error, &'static str)> for Failure {
    /// Makes a failure after which the content of all memory is unknown.
    fn from((error, op): (Error, &'static str)) -> Failure {
        Failure { error, op, intact: false, outputs: Vec::new() }
    }
}

/// Commands that failed: the error and the graph operation of each; and for each slot, the failed
/// command that spoiled it.
struct Spoiled {
    errors: Vec<(Arc<Error>, &'static str)>,
    slots: Vec<Option<usize>>,
    /// The failed command that affects all later calls. After a call that was not made, no later
    /// call is made, because other processes rely on the order of calls.
    calls: Option<usize>,
}

impl Executable {
    /// Returns the failure of steps. If inputs may have been overwritten, first runs the later
    /// steps that do not depend on the failed ones.
    #[cold]
    pub(super) fn failed(
        &self,
        exec: &Exec,
        Stopped { steps, error }: Stopped,
        mut memory: Memory,
        mut list: List,
    ) -> Failure {
        let (op, next) = (self.steps[steps.start].op, steps.end);
        // A list never extends over the step from which on a run cannot be given up. So the
        // condition holds for all steps of the list or for none.
        if steps.start < self.stays_from {
            return Failure::intact(error, op);
        }
        let slots = vec![None; self.slots.len()];
        let mut spoiled = Spoiled { errors: Vec::new(), slots, calls: None };
        self.spoil(&mut spoiled, steps, error.clone());
        for (i, step) in self.steps.iter().enumerate().skip(next) {
            let slots = || self.slots_of[step.tensors.clone()].iter();
            // Check outputs too: an output that another step also writes may have no memory.
            let cause = slots().find_map(|slot| spoiled.slots[*slot as usize]);
            match cause.or(spoiled.calls.filter(|_| step.is_call())) {
                Some(cause) => {
                    spoiled.calls = spoiled.calls.or(step.is_call().then_some(cause));
                    slots()
                        .skip(step.inputs)
                        .for_each(|s| spoiled.slots[*s as usize] = Some(cause));
                }
                None => {
                    if let Err(Stopped { steps, error }) =
                        self.run_list(exec, i..i + 1, &mut memory, &mut list)
                    {
                        self.spoil(&mut spoiled, steps, error);
                    }
                }
            }
        }
        let output = |output: &super::Output| match spoiled.slots[output.slot as usize] {
            Some(cause) => {
                let (cause, op) = &spoiled.errors[cause];
                Err(Error::Poisoned { op, cause: cause.clone() })
            }
            None => self.output(exec, output, &memory),
        };
        let outputs = self.outputs.iter().map(output).collect();
        Failure { error, op, intact: false, outputs }
    }

    fn spoil(&self, spoiled: &mut Spoiled, steps: Range<usize>, error: Error) {
        let cause = spoiled.errors.len();
        spoiled.errors.push((Arc::new(error), self.steps[steps.start].op));
        for step in &self.steps[steps] {
            spoiled.calls = spoiled.calls.or(step.is_call().then_some(cause));
            for slot in &self.slots_of[step.tensors.clone()][step.inputs..] {
                spoiled.slots[*slot as usize] = Some(cause);
            }
        }
    }
}
