//! The operations that an executable's commands belong to, for profiles.

use super::list::{List, Stopped};
use super::{Executable, Memory};
use crate::backend::call::Exec;
use crate::dtype::Dtype;
use crate::shape::Shape;
use ultramarine_abi::Tensor;

/// An operation of an executable, or a fused program of several, as profiles show it.
#[derive(Clone, Debug)]
pub struct Task {
    /// The operation's name in MLX. For a program, the name of the last operation.
    pub op: &'static str,
    /// The operations of a program, in order. Empty for a single operation.
    pub fused: Box<[&'static str]>,
    /// Operands.
    pub inputs: Box<[(Shape, Dtype)]>,
    /// Results.
    pub outputs: Box<[(Shape, Dtype)]>,
    /// True if it is, or contains, a part of an operation that ran by simpler ones.
    pub decomposed: bool,
}

/// An observer of a run, such as a profile.
pub trait Watch {
    /// An operation begins or, inside an operation with several commands, a command.
    fn begin(&mut self, task: &Task);

    /// The operation that began last ends. `given` is the number of its commands, and the bytes
    /// that they read and write.
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
        // If the command is the whole operation, report the operation.
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

    /// Describes a single command by its tensors, as the backend sees them.
    fn command_alone(&self, number: usize) -> Task {
        let step = &self.steps[number];
        let tensor = |tensor: &Tensor| {
            let rank = tensor.dl.ndim as usize;
            // SAFETY: the sizes belong to the executable. There are as many as the rank.
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
