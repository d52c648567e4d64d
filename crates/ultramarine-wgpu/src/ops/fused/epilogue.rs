//! Programs whose only result is a reduction.

use super::source::operand;
use super::{Program, walked};
use crate::dtype::Dtype;
use crate::launch::{Device, Forms, Job, View, Work, row_major};
use crate::ops::reduce::Reduce;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

/// The reduction of an input, without a computation.
pub(super) struct Folded {
    pub reduce: Reduce,
    pub input: usize,
}

impl Work for Folded {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        self.reduce.workspace_of(job.device, (job.input(self.input)?, job.output(0)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        self.reduce.run_views(job, (job.input(self.input)?, job.output(0)?))
    }
}

/// The reduction of a value that the reducing kernel computes.
pub(super) struct Reduced {
    program: Program,
    code: (u32, u64),
    out: Dtype,
    forms: Forms<Reduce>,
}

impl Reduced {
    /// The reduction for a program with one output.
    pub fn new(device: &Device, program: Program, out: Dtype) -> Result<Self> {
        let code = program.reduce.ok_or_else(|| Failure::new("a program without epilogue"))?;
        let reduced = Self { program, code, out, forms: Default::default() };
        // Compiling now reports errors early.
        reduced.form(device, 1)?;
        Ok(reduced)
    }

    fn form(&self, device: &Device, axes: usize) -> Result<Arc<Reduce>> {
        self.forms.get(axes, |axes| {
            let values = operand(&self.program, self.out, axes);
            let dtypes = (self.value(), self.out);
            Reduce::of_values(device, self.code, dtypes, values).map(Arc::new)
        })
    }

    fn value(&self) -> Dtype {
        self.program.dtypes[self.program.outputs[0]]
    }

    /// The values, described as the elements of a row-major tensor that does not exist in memory.
    fn view<'a>(&self, job: &'a Job<'_>, strides: &'a [i64]) -> Result<View<'a>> {
        let input = job.input(0)?;
        let (block, shape, dtype) = (input.block.clone(), input.shape, self.value());
        Ok(View { block, offset: 0, misaligned: 0, dtype, shape, strides })
    }
}

impl Work for Reduced {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let strides = row_major(job.input(0)?.shape);
        let view = self.view(job, &strides)?;
        // All forms need the same workspace.
        self.form(job.device, 1)?.workspace_of(job.device, (&view, job.output(0)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let strides = row_major(job.input(0)?.shape);
        let view = self.view(job, &strides)?;
        let inputs: Vec<_> = job.inputs.iter().collect();
        let (axes, mut words) = walked(job, &self.program, &inputs)?;
        axes.layout(&mut words);
        // Elements are numbered with 32 bits.
        axes.elements()?;
        let blocks: Vec<_> = inputs.iter().map(|input| &input.block).collect();
        let reduce = self.form(job.device, axes.list.len())?;
        reduce.run_values(job, &blocks, (&view, job.output(0)?), &words)
    }
}
