//! The operations to which an executable's commands belong, as profiles show them.

use super::list::{List, Stopped};
use super::{Executable, Memory};
use crate::backend::call::Exec;
use crate::dtype::Dtype;
use crate::shape::Shape;
use ultramarine_abi::Tensor;

/// An operation of an executable, or a fused program of several, as profiles show it.
#[derive(Clone, Debug)]
pub struct Task {
    /// MLX's name of the operation. For a program, the name of its last operation.
    pub op: &'static str,
    /// The operations of a program, in order. Empty for a single operation.
    pub fused: Box<[&'static str]>,
    /// Shapes and dtypes of the operands.
    pub inputs: Box<[(Shape, Dtype)]>,
    /// Shapes and dtypes of the results.
    pub outputs: Box<[(Shape, Dtype)]>,
    /// True if it is, or contains, a part of an operation that ran as simpler operations.
    pub decomposed: bool,
}

/// An observer of a run, such as a profile.
pub trait Watch {
    /// Called when an operation begins. Inside of an operation with several commands, it is also
    /// called when a command begins.
    fn begin(&mut self, task: &Task);

    /// Called when the operation that began last has submitted its commands. `given` is their
    /// number, and the bytes that they read and write.
    fn end(&mut self, given: [u64; 3]);
}

impl Executable {
    /// Runs a step, and notifies the observer.
    pub(super) fn watched_step(
        &self,
        exec: &Exec,
        number: usize,
        (memory, list): (&mut Memory, &mut List),
        watch: &mut dyn Watch,
    ) -> Result<usize, Stopped> {
        let at = self.tasks.partition_point(|(steps, _)| steps.end <= number);
        let task = self.tasks.get(at).filter(|(steps, _)| steps.contains(&number));
        if let Some((steps, task)) = task
            && steps.start == number
        {
            watch.begin(task);
        }
        // If the command is the only one of its operation, report only the operation.
        let alone = task.is_some_and(|(steps, _)| steps.len() == 1);
        if !alone {
            watch.begin(&self.command_alone(number));
        }
        let next = self.run_list(exec, number..number + 1, memory, list)?;
        if !alone {
            watch.end(self.given(number..number + 1));
        }
        if let Some((steps, _)) = task
            && steps.end == number + 1
        {
            watch.end(self.given(steps.clone()));
        }
        Ok(next)
    }

    /// Returns the number of steps, and the bytes that they read and write.
    fn given(&self, steps: std::ops::Range<usize>) -> [u64; 3] {
        let count = steps.len() as u64;
        let add = |[n, read, written]: [u64; 3], bytes: (u64, u64)| {
            [n, read + bytes.0, written + bytes.1]
        };
        self.steps[steps].iter().map(|s| s.bytes).fold([count, 0, 0], add)
    }

    /// Describes a single command: its tensors as the backend sees them.
    fn command_alone(&self, number: usize) -> Task {
        let step = &self.steps[number];
        let tensor = |tensor: &Tensor| {
            let rank = tensor.dl.ndim as usize;
            // SAFETY: the sizes are the executable's own, and there are as many as the rank says.
            let sizes = unsafe { std::slice::from_raw_parts(tensor.dl.shape, rank) };
            let dtype = Dtype::from_dl_with(tensor.dl.dtype, tensor.flags.into());
            (sizes.iter().map(|n| *n as usize).collect(), dtype.unwrap_or(Dtype::Uint8))
        };
        let (inputs, outputs) = self.tensors[step.tensors.clone()].split_at(step.inputs);
        Task {
            op: step.op,
            fused: Box::default(),
            inputs: inputs.iter().map(tensor).collect(),
            outputs: outputs.iter().map(tensor).collect(),
            decomposed: false,
        }
    }
}
