//! REDUCE and ARG_REDUCE.

mod fold;
mod steps;

use crate::dtype::Dtype;
use crate::launch::{Device, Job, OpRequest, View, Work};
use crate::memory::Block;
use crate::program::Kernel;
use crate::shader::{Program, Tensor};
use fold::Fold;
use std::sync::Arc;
use steps::{Steps, extreme_items};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{self, ArgReduceAttrs, OpId, ReduceAttrs, arg_reduce, op};

pub use steps::limits;

const FOLD: &str = include_str!("../../../kernels/reduce/fold.wgsl");
const ARG: &str = include_str!("../../../kernels/reduce/arg.wgsl");

/// A reduction.
pub struct Reduce {
    each: Arc<Kernel>,
    merge: Arc<Kernel>,
    axes: u64,
    /// Bytes of a partial result; of ARG_REDUCE those of an index.
    partial: u64,
    /// The merge looks at the elements again.
    rereads: bool,
    /// Cut into segments.
    cuts: bool,
}

/// The plan of REDUCE.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let attributes: ReduceAttrs = request.attributes()?;
    let (dtype, out) = (request.input(0)?.dtype, request.output(0)?.dtype);
    request.computes(&[dtype])?;
    Ok(Box::new(Reduce::new(request.device, attributes.op, attributes.axes, (dtype, out))?))
}

/// The plan of ARG_REDUCE.
pub fn prepare_arg(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let attributes: ArgReduceAttrs = request.attributes()?;
    let (input, out) = (request.input(0)?, request.output(0)?.dtype);
    check(request.op, attributes.op, input.dtype, out)?;
    request.computes(&[input.dtype])?;
    if attributes.axis as usize >= input.ndim {
        return Err(Failure::invalid(format!("axis {} of {}", attributes.axis, input.ndim)));
    }
    let dtype = input.dtype;
    let max = attributes.op == arg_reduce::ARGMAX;
    let build = |call: &str| {
        let tensors = [Tensor { name: "a", dtype }, Tensor { name: "out", dtype: out }];
        let mut program = Program::new(&tensors).array("partial", "u32").library(FOLD).library(ARG);
        for item in extreme_items(dtype, max) {
            program = program.item(&item);
        }
        request.device.programs.get(program.body(call).build())
    };
    Ok(Box::new(Reduce {
        each: build("arg_each(i);")?,
        merge: build("arg_merge(i);")?,
        axes: 1 << attributes.axis,
        partial: 4,
        rereads: true,
        // Imaginary NaNs have no order, so parts of complex numbers have none.
        cuts: dtype != Dtype::Complex64,
    }))
}

/// Refuses what the schema does not have.
fn check(op: OpId, code: u32, dtype: Dtype, out: Dtype) -> Result<()> {
    let unknown = || Failure::unsupported(format!("reduction {code} of {}", dtype.name()));
    let row = schema::find(op).ok_or_else(unknown)?;
    let known = row.code(code).filter(|known| {
        known.dtypes & dtype.bit() != 0 && row.output_of(Some(known), dtype as usize) == out.bit()
    });
    known.map(|_| ()).ok_or_else(unknown)
}

impl Reduce {
    /// The reduction by a code over a mask of axes, from one dtype to another.
    pub fn new(
        device: &Device,
        code: u32,
        axes: u64,
        (dtype, out): (Dtype, Dtype),
    ) -> Result<Self> {
        let tensors = [Tensor { name: "a", dtype }, Tensor { name: "out", dtype: out }];
        Self::of_values(device, (code, axes), (dtype, out), Program::new(&tensors))
    }

    /// Likewise of the values that the program's `load_a` gives. Its last tensor is `out`.
    pub fn of_values(
        device: &Device,
        (code, axes): (u32, u64),
        (dtype, out): (Dtype, Dtype),
        values: Program<'_>,
    ) -> Result<Self> {
        check(op::REDUCE, code, dtype, out)?;
        let steps = Steps::of(code, dtype, device.context.properties.float64);
        let build = |program: Program<'_>, call: &str| {
            let mut program = program.array("partial", "W").library(FOLD).library(steps::SUMS);
            for item in &steps.items {
                program = program.item(item);
            }
            device.programs.get(program.body(call).build())
        };
        let out = Tensor { name: "out", dtype: out };
        Ok(Self {
            each: build(values, "fold_each(i);")?,
            merge: build(Program::new(&[out]), "fold_merge(i);")?,
            axes,
            partial: steps.wide_bytes,
            rereads: false,
            cuts: true,
        })
    }

    /// Bytes of workspace.
    pub fn workspace_of(&self, device: &Device, views: (&View<'_>, &View<'_>)) -> Result<u64> {
        let fold = Fold::of(device, views, self.axes, self.cuts)?;
        Ok(match fold.segments {
            1 => 0,
            n => u64::from(n) * u64::from(fold.outputs) * self.partial,
        })
    }

    /// Enqueues the reduction of a tensor; partial results go to the command's workspace.
    pub fn run_views(&self, job: &Job<'_>, views: (&View<'_>, &View<'_>)) -> Result<()> {
        self.run_values(job, &[&views.0.block], views, &[])
    }

    /// Likewise of values, for which the kernel reads these tensors, and `more` words behind those of the reduction. They
    /// are numbered as the elements of the view.
    pub fn run_values(
        &self,
        job: &Job<'_>,
        tensors: &[&Arc<Block>],
        views: (&View<'_>, &View<'_>),
        more: &[u32],
    ) -> Result<()> {
        let fold = Fold::of(job.device, views, self.axes, self.cuts)?;
        let out = &views.1.block;
        let mut words = fold.words();
        words.extend_from_slice(more);
        if fold.segments == 1 {
            // The partial results are not touched.
            return job.launch(&self.each, &[tensors, &[out, out]].concat(), fold.outputs, &words);
        }
        let partial = job.scratch()?;
        let all = [tensors, &[out, &partial]].concat();
        job.launch(&self.each, &all, fold.outputs * fold.segments, &words)?;
        let merged = if self.rereads { &all } else { &all[tensors.len()..] };
        job.launch(&self.merge, merged, fold.outputs, &words)
    }
}

impl Work for Reduce {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        self.workspace_of(job.device, (job.input(0)?, job.output(0)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        self.run_views(job, (job.input(0)?, job.output(0)?))
    }
}
