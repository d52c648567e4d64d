//! Fused programs: a kernel of its own for each, and for an epilogue a reduction of the value in the workspace.

mod program;
mod source;

pub use program::{INSTRUCTIONS, Program};
pub use source::TENSORS;

use source::AXES;

use super::reduce::Reduce;
use crate::dtype::Dtype;
use crate::launch::{Axes, Desc, Device, Job, Plan, View, Work, row_major};
use crate::memory::Block;
use crate::program::Kernel;
use std::sync::{Arc, OnceLock};
use ultramarine_abi::helper::{Failure, Result};

/// Alignment of what lies in the workspace, in bytes.
const APART: u64 = 64;

struct Fused {
    program: Program,
    /// Kernels for any axes, and for each number of them; made when they are needed.
    kernels: [OnceLock<Result<Arc<Kernel>>>; AXES + 1],
    /// The epilogue of output 0, and the dtype of its operand.
    fold: Option<(Reduce, Dtype)>,
}

/// The plan of a program.
pub fn prepare(
    device: &Device,
    program: Program,
    inputs: &[Desc],
    outputs: &[Desc],
) -> Result<Plan> {
    let rank = inputs.first().map(|desc| desc.ndim);
    if inputs.iter().chain(outputs).any(|desc| Some(desc.ndim) != rank) {
        return Err(Failure::invalid("tensors of a program have one rank"));
    }
    if program.dtypes.contains(&Dtype::Float64) && !device.context.properties.float64 {
        return Err(Failure::unsupported("the device has no arithmetic of float64"));
    }
    let tensors = program.tensors();
    let mut fold = None;
    for (i, (desc, value)) in outputs.iter().zip(&tensors[program.inputs..]).enumerate() {
        match program.reduce.filter(|_| i == 0) {
            Some((code, axes)) => {
                let reduce = Reduce::new(device, code, axes, (*value, desc.dtype))?;
                fold = Some((reduce, *value));
            }
            None if desc.dtype == *value => {}
            None => return Err(Failure::unsupported("an output of another dtype than its value")),
        }
    }
    let name = format!("a program of {} instructions", program.steps.len());
    fold = match (fold, &program.outputs[..]) {
        // Nothing is computed: the reduction of an input.
        (Some((reduce, _)), [input]) if *input < program.inputs => {
            return Ok(Plan::new(name, Box::new(Folded { reduce, input: *input })));
        }
        (fold, _) => fold,
    };
    let work = Fused { program, kernels: Default::default(), fold };
    // Whether it compiles.
    work.kernel(device, 1)?;
    Ok(Plan::new(name, Box::new(work)))
}

/// The reduction of an input.
struct Folded {
    reduce: Reduce,
    input: usize,
}

impl Work for Folded {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        self.reduce.workspace_of(job.device, (job.input(self.input)?, job.output(0)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        self.reduce.run_views(job, (job.input(self.input)?, job.output(0)?))
    }
}

/// Most tensors of a program on a device.
pub fn most_tensors(properties: &crate::vulkan::Properties) -> usize {
    TENSORS.min(properties.buffers as usize - 1)
}

impl Fused {
    /// The kernel for layouts of so many axes.
    fn kernel(&self, device: &Device, axes: usize) -> Result<Arc<Kernel>> {
        let axes = Some(axes).filter(|n| *n <= AXES);
        let slot = &self.kernels[axes.unwrap_or(0)];
        slot.get_or_init(|| device.programs.get(source::source(&self.program, axes))).clone()
    }

    /// Output 0 before it is reduced: row-major, in the workspace behind the reduction's partial results.
    fn operand<'a>(
        &self,
        job: &'a Job<'_>,
        memory: Arc<Block>,
        strides: &'a [i64],
    ) -> Result<Option<View<'a>>> {
        let Some((reduce, dtype)) = &self.fold else { return Ok(None) };
        let shape = job.input(0)?.shape;
        let mut view =
            View { block: memory, offset: 0, misaligned: 0, dtype: *dtype, shape, strides };
        let partial = reduce.workspace_of(job.device, (&view, job.output(0)?))?;
        view.offset = (partial.next_multiple_of(APART) / dtype.bytes()) as i64;
        Ok(Some(view))
    }
}

impl Work for Fused {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let strides = row_major(job.input(0)?.shape);
        let view = self.operand(job, job.input(0)?.block.clone(), &strides)?;
        Ok(view.map_or(0, |view| view.byte_offset() + view.bytes()))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let strides = row_major(job.input(0)?.shape);
        let value = match self.fold {
            Some(_) => self.operand(job, job.scratch()?, &strides)?,
            None => None,
        };
        let mut views: Vec<&View<'_>> = job.inputs.iter().chain(&job.outputs).collect();
        if let Some(value) = &value {
            views[self.program.inputs] = value;
        }
        if views.len() > TENSORS || self.program.inputs != job.inputs.len() {
            return Err(Failure::invalid("a command with another number of tensors"));
        }
        let shape = job.input(0)?.shape;
        let strides = |d: usize| {
            let mut all = [0; TENSORS];
            all.iter_mut().zip(&views).for_each(|(to, view)| *to = view.strides[d]);
            all
        };
        let mut offsets = [0; TENSORS];
        offsets.iter_mut().zip(&views).for_each(|(to, view)| *to = view.offset);
        let axes = shape.iter().enumerate().map(|(d, n)| (*n, strides(d)));
        let axes = Axes::<TENSORS>::join(offsets, axes);
        let mut words = Vec::new();
        for i in 0..self.program.constants {
            let bits = job.scalar(i)?;
            words.extend([bits as u32, (bits >> 32) as u32]);
        }
        axes.words(&mut words);
        let blocks: Vec<_> = views.iter().map(|view| &view.block).collect();
        axes.divisors(&mut words);
        let kernel = self.kernel(job.device, axes.list.len().max(1))?;
        job.launch(&kernel, &blocks, axes.elements()?, &words)?;
        match (&self.fold, &value) {
            (Some((reduce, _)), Some(value)) => reduce.run_views(job, (value, job.output(0)?)),
            _ => Ok(()),
        }
    }
}
