//! Handles a run in which a command fails: computes everything that does not depend on the command,
//! as an evaluation would.

use super::list::{List, Stopped};
use super::{Executable, Memory};
use crate::backend::{call::Exec, value::Value};
use crate::error::Error;
use std::ops::Range;
use std::sync::Arc;

/// The reason why a run did not produce all outputs.
pub struct Failure {
    /// The error of the first command that failed.
    pub error: Error,
    /// The graph operation of that command.
    pub op: &'static str,
    /// True if no memory of the inputs was overwritten, and nothing was called. The inputs can then
    /// be used in another way.
    pub intact: bool,
    /// If not intact: each output, or the error because of which it is missing. Empty if there are
    /// no outputs.
    pub outputs: Vec<Result<Value, Error>>,
}

impl Failure {
    /// Makes a failure that occurred before anything was overwritten.
    pub(super) fn intact(error: Error, op: &'static str) -> Failure {
        Failure { error, op, intact: true, outputs: Vec::new() }
    }

    /// Returns the error of an array that depends on the failed command.
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

/// The commands that failed: their errors with the graph operations, and for each slot the failed
/// command that spoiled it.
struct Spoiled {
    errors: Vec<(Arc<Error>, &'static str)>,
    slots: Vec<Option<usize>>,
    /// The failed command that spoiled the calls. A call must not happen if an earlier call did
    /// not, because other processes rely on the order.
    calls: Option<usize>,
}

impl Executable {
    /// Handles the failure of steps. If inputs may have been overwritten, runs the later steps that
    /// do not depend on them.
    #[cold]
    pub(super) fn failed(
        &self,
        exec: &Exec,
        Stopped { steps, error }: Stopped,
        mut memory: Memory,
        mut list: List,
    ) -> Failure {
        let (op, next) = (self.steps[steps.start].op, steps.end);
        // A list ends at the point from which on a run cannot be given up, so either all its steps
        // are before that point, or none is.
        if steps.start < self.stays_from {
            return Failure::intact(error, op);
        }
        let slots = vec![None; self.slots.len()];
        let mut spoiled = Spoiled { errors: Vec::new(), slots, calls: None };
        self.spoil(&mut spoiled, steps, error.clone());
        for (i, step) in self.steps.iter().enumerate().skip(next) {
            let slots = || self.slots_of[step.tensors.clone()].iter();
            // An output that another step writes too may have no memory.
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
