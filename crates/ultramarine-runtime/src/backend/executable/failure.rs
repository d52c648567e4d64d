//! A run in which a command failed: what does not depend on it is computed, as an evaluation would do.

use super::list::{List, Stopped};
use super::{Executable, Memory};
use crate::backend::{call::Exec, value::Value};
use crate::error::Error;
use std::ops::Range;
use std::sync::Arc;

/// The reason why a run did not give all outputs.
pub struct Failure {
    /// The error of the first command that failed.
    pub error: Error,
    /// The graph operation of that command.
    pub op: &'static str,
    /// No memory of the inputs was overwritten, and nothing was called: they can be used in another way.
    pub intact: bool,
    /// Each output, or why it is not there, once it is not intact. Empty: none is there.
    pub outputs: Vec<Result<Value, Error>>,
}

impl Failure {
    /// A failure before anything was overwritten.
    pub(super) fn intact(error: Error, op: &'static str) -> Failure {
        Failure { error, op, intact: true, outputs: Vec::new() }
    }

    /// The error of an array that cannot be had because of it.
    pub fn poisoned(self) -> Error {
        Error::Poisoned { op: self.op, cause: Arc::new(self.error) }
    }
}

impl From<(Error, &'static str)> for Failure {
    /// A failure after which nothing is known of any memory.
    fn from((error, op): (Error, &'static str)) -> Failure {
        Failure { error, op, intact: false, outputs: Vec::new() }
    }
}

/// Commands that failed: the error of each, with its graph operation, and by slot which of them spoiled it.
struct Spoiled {
    errors: Vec<(Arc<Error>, &'static str)>,
    slots: Vec<Option<usize>>,
    /// Of calls: one does not happen where one before it did not, since other processes count on their order.
    calls: Option<usize>,
}

impl Executable {
    /// The failure of steps. Later ones that do not depend on them are run, if inputs may have been overwritten.
    #[cold]
    pub(super) fn failed(
        &self,
        exec: &Exec,
        Stopped { steps, error }: Stopped,
        mut memory: Memory,
        mut list: List,
    ) -> Failure {
        let (op, next) = (self.steps[steps.start].op, steps.end);
        // Lists end where a run cannot be given up any more, so that it is true of all steps or of none.
        if steps.start < self.stays_from {
            return Failure::intact(error, op);
        }
        let slots = vec![None; self.slots.len()];
        let mut spoiled = Spoiled { errors: Vec::new(), slots, calls: None };
        self.spoil(&mut spoiled, steps, error.clone());
        for (i, step) in self.steps.iter().enumerate().skip(next) {
            let slots = || self.slots_of[step.tensors.clone()].iter();
            // An output that another step writes, too, may have no memory.
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
