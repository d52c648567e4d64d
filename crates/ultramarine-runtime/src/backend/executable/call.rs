//! Calls among the commands of an executable: work that the host has to start anew in each run,
//! such as a collective.

use super::list::Stopped;
use super::recording::aside;
use super::{Executable, Memory, Step};
use crate::backend::call::{Exec, Operand};
use crate::backend::{Plan, value::Value};
use crate::device::Stream;
use crate::dtype::Dtype;
use crate::error::Result;
use crate::shape::{Shape, Strides};
use smallvec::SmallVec;
use std::sync::Arc;

/// Work that is given to a device by other functions than those for commands.
pub trait Callable: Send + Sync {
    /// The stream of the device on which the work runs. `None` means the stream of the run.
    fn stream(&self) -> Option<Stream>;

    /// Enqueues the work on the stream of `exec`, without waiting for it.
    ///
    /// # Errors
    /// Those of the backend.
    fn call(&self, exec: &Exec, inputs: &[Operand<'_>], outputs: &[Operand<'_>]) -> Result<()>;
}

/// The part of a step that differs between commands and calls.
pub(super) enum Work {
    Command(Arc<Plan>),
    Call(Call),
}

/// A call, with the layouts of its inputs and outputs.
pub(super) struct Call {
    pub work: Arc<dyn Callable>,
    pub layouts: Box<[Layout]>,
}

/// The layout of a tensor in its slot.
pub(super) struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
    dtype: Dtype,
}

impl Layout {
    pub fn of(t: &Operand<'_>) -> Layout {
        let (shape, strides) = (Shape::from_slice(t.shape), t.value.strides.clone());
        Layout { shape, strides, offset: t.value.offset, dtype: t.dtype }
    }
}

impl Step {
    /// Returns the plan, if the step is a command.
    pub(super) fn plan(&self) -> Option<&Arc<Plan>> {
        match &self.work {
            Work::Command(plan) => Some(plan),
            Work::Call(_) => None,
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.work, Work::Call(_))
    }
}

impl Exec {
    /// Calls `work`, whose stream is this one. If this thread is recording, each run of the
    /// recorded executable calls `work` again, in this order.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn call(
        &self,
        work: Arc<dyn Callable>,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
    ) -> Result<()> {
        aside(|| work.call(self, inputs, outputs))?;
        super::with(|recording| recording.call(work, self.op.get(), inputs, outputs));
        Ok(())
    }
}

impl Executable {
    /// Makes the call of a step. Returns the index of the next step.
    pub(super) fn run_call(
        &self,
        exec: &Exec,
        (number, call): (usize, &Call),
        memory: &mut Memory,
    ) -> Result<usize, Stopped> {
        let step = &self.steps[number];
        let called = self.take(exec, step, memory).and_then(|()| {
            exec.op.set(step.op);
            let slots = &self.slots_of[step.tensors.clone()];
            let value = |(slot, layout): (&u32, &Layout)| Value {
                buffer: memory.buffer(*slot).clone(),
                offset: layout.offset + memory.offsets[*slot as usize],
                strides: layout.strides.clone(),
            };
            let values: SmallVec<[Value; 2]> = slots.iter().zip(&call.layouts).map(value).collect();
            let each = values.iter().zip(&call.layouts);
            let operands: SmallVec<[Operand<'_>; 2]> = each
                .map(|(value, Layout { shape, dtype, .. })| Operand { value, shape, dtype: *dtype })
                .collect();
            let (inputs, outputs) = operands.split_at(step.inputs);
            let other = call.work.stream().filter(|stream| exec.program_stream() != Some(*stream));
            let Some(stream) = other else {
                call.work.call(exec, inputs, outputs)?;
                return exec.settle();
            };
            for output in outputs.iter().filter(|output| output.value.buffer.bytes() > 0) {
                // The memory belongs to this run's stream, whose earlier work may still use it.
                exec.stream
                    .map_or(Ok(()), |own| own.mark_written(step.op, &output.value.buffer))?;
            }
            let beside = Exec::new(self.device, stream)?;
            beside.op.set(step.op);
            call.work.call(&beside, inputs, outputs)?;
            beside.settle()
        });
        let stopped = |error| Stopped { steps: number..number + 1, error };
        called.map_err(stopped)?;
        self.free(step, memory);
        Ok(number + 1)
    }
}
