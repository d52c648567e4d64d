//! CROSS_ENTROPY and its gradient, with any strides.

use super::CHOSEN;
use super::rows::{Rows, Team, functions_of};
use super::softmax::{SOFTMAX, row_sums};
use super::variants::Variants;
use crate::dtype::Dtype;
use crate::launch::{Job, OpRequest, View, Work, count};
use crate::program::Kernel;
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

const CROSS_ENTROPY: &str = include_str!("../../../kernels/native/cross_entropy.wgsl");

/// The dtype in which sums are computed.
fn accumulated(dtype: Dtype) -> Dtype {
    if dtype == Dtype::Float64 { dtype } else { Dtype::Float32 }
}

/// Checks the dtypes of the inputs after the logits, and of the outputs.
fn check(request: &OpRequest<'_>, behind: &[Dtype], outputs: &[Dtype]) -> Result<()> {
    let dtypes = request.inputs.iter().skip(1).map(|desc| desc.dtype);
    let found = request.outputs.iter().map(|desc| desc.dtype);
    let logits = request.input(0)?;
    if !logits.dtype.is_real() {
        return Err(Failure::unsupported("cross entropy of a dtype that is not floating"));
    }
    if logits.ndim != 2 || !dtypes.eq(behind.iter().copied()) || !found.eq(outputs.iter().copied())
    {
        return Err(Failure::invalid("logits, targets and outputs do not fit"));
    }
    request.computes(&[logits.dtype])
}

struct CrossEntropy {
    dtype: Dtype,
    kernels: Variants<Team>,
}

/// The plan of CROSS_ENTROPY.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let dtype = request.input(0)?.dtype;
    check(request, &[Dtype::Int32], &[accumulated(dtype); 2])?;
    Ok(Box::new(CrossEntropy { dtype, kernels: Variants::default() }))
}

pub(super) fn source(dtype: Dtype, team: Team) -> Source {
    let wide = accumulated(dtype);
    let tensors = [("a", dtype), ("out", wide), ("targets", Dtype::Int32), ("losses", wide)];
    let tensors = tensors.map(|(name, dtype)| Tensor { name, dtype });
    let program = Program::new(&tensors).library(SOFTMAX).library(CROSS_ENTROPY).library(CHOSEN);
    let mut items = row_sums(team).to_owned();
    if team.held > 0 {
        items += &team.takes(dtype, &[("a", 0)], false);
    }
    let program = program.item(&items);
    team.program(program, dtype, 4, "cross_entropy_row").build()
}

impl Work for CrossEntropy {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (logits, targets) = (job.input(0)?, job.input(1)?);
        let (losses, logarithms) = (job.output(0)?, job.output(1)?);
        let lines = [logarithms, targets, losses];
        if lines.iter().any(|view| view.shape != &logits.shape[..1]) {
            return Err(Failure::invalid("logits, targets and losses of different shapes"));
        }
        // These tensors have one element for a whole row.
        let steps = lines.map(|view| [view.strides[0], 0]);
        let mut views: Vec<View<'_>> = vec![logits.clone()];
        let wide = lines.into_iter().zip(&steps);
        views.extend(wide.map(|(view, strides)| View {
            shape: logits.shape,
            strides,
            ..view.clone()
        }));
        let views: Vec<_> = views.iter().collect();
        let rows = Rows::of(logits.shape, &views, 0b10)?;
        let team = Team::of(&job.device.context.properties, &rows)?;
        let kernel = self.kernels.get(job.device, team, |team| source(self.dtype, *team))?;
        let blocks: Vec<_> = views.iter().map(|view| &view.block).collect();
        team.launch(job, &kernel, &blocks, (&rows, 0), &[])
    }
}

struct Gradient(Arc<Kernel>);

/// The plan of CROSS_ENTROPY_GRADIENT.
pub fn prepare_gradient(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let dtype = request.input(0)?.dtype;
    let wide = accumulated(dtype);
    check(request, &[Dtype::Int32, wide, wide], &[dtype])?;
    Ok(Box::new(Gradient(request.device.programs.get(gradient(dtype))?)))
}

pub(super) fn gradient(dtype: Dtype) -> Source {
    let wide = accumulated(dtype);
    let tensors = [
        ("a", dtype),
        ("targets", Dtype::Int32),
        ("logarithms", wide),
        ("cotangents", wide),
        ("out", dtype),
    ];
    let tensors = tensors.map(|(name, dtype)| Tensor { name, dtype });
    let program = Program::new(&tensors).library(CROSS_ENTROPY).library(CHOSEN);
    functions_of(program, dtype).body("cross_entropy_slope(i);").build()
}

impl Work for Gradient {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (logits, out) = (job.input(0)?, job.output(0)?);
        let lines = [job.input(1)?, job.input(2)?, job.input(3)?];
        if logits.shape != out.shape || lines.iter().any(|view| view.shape != &out.shape[..1]) {
            return Err(Failure::invalid("logits, targets and cotangents of different shapes"));
        }
        let mut words = vec![out.shape[1]];
        for view in [logits, out] {
            words.extend([view.offset, view.strides[0], view.strides[1]]);
        }
        words.extend(lines.iter().flat_map(|view| [view.offset, view.strides[0]]));
        let words: Vec<u32> = words.into_iter().map(|n| n as u32).collect();
        let blocks: Vec<_> = job.inputs.iter().chain([out]).map(|view| &view.block).collect();
        job.launch(&self.0, &blocks, count(out.shape.iter().copied())?, &words)
    }
}
