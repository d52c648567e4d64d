//! Programs whose anchor is a norm.
//!
//! If a row's elements stay in registers, the norm's kernel computes them instead of reading them, in the same order as
//! the plain norm. Otherwise, the norm reads them from a further output or from the workspace.

use super::source::element;
use super::{Fused, Program, walked};
use crate::launch::{AXES, Desc, Device, Job, Plan, View, Work, row_major};
use crate::ops::native::norm::{self, Norm};
use crate::ops::native::rows::{BEHIND, Rows, Team};
use crate::ops::native::variants::Variants;
use crate::shader::Tensor;
use crate::shader::source::Source;
use ultramarine_abi::fused::{Anchor, position};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::op;

struct Anchored {
    /// The program as given.
    program: Program,
    norm: Norm,
    /// By number of axes, up to [`AXES`].
    kernels: Variants<(Team, Option<usize>)>,
    /// Writes the values that the norm reads, and the further outputs.
    apart: Fused,
    /// The further output that the norm reads, unless it reads the workspace.
    read: Option<usize>,
}

/// The plan of a program with an anchor. The anchor's operands come after the program's inputs.
pub(super) fn prepare(
    device: &Device,
    program: Program,
    anchor: &Anchor,
    inputs: &[Desc],
    outputs: &[Desc],
) -> Result<Plan> {
    let bias = match (anchor.op, anchor.revision, anchor.position) {
        (op::RMS_NORM, 1, position::LAST) => false,
        (op::LAYER_NORM, 1, position::LAST) => true,
        _ => return Err(Failure::unsupported("a program that hangs on no norm")),
    };
    let operands = &inputs[program.inputs..];
    if operands.len() != 1 + usize::from(bias) || program.reduce.is_some() {
        return Err(Failure::invalid("a program with a norm of other operands, or reduced"));
    }
    let values = program.outputs.iter().map(|value| program.dtypes[*value]);
    if !values.eq(outputs.iter().map(|desc| desc.dtype)) {
        return Err(Failure::unsupported("an output of another dtype than its value"));
    }
    let norm = Norm::new(bias, operands, outputs[0])?;
    let mut written = program.clone();
    let read = program.outputs[1..].iter().position(|value| *value == program.outputs[0]);
    if read.is_some() {
        written.outputs.remove(0);
    }
    let apart = Fused::apart(written);
    // Compiling now reports errors early.
    apart.kernel(device, 1)?;
    let kind = if bias { "layer_norm" } else { "rms_norm" };
    let name = format!("a program of {} instructions | {kind}", program.steps.len());
    let work = Anchored { program, norm, kernels: Variants::default(), apart, read };
    Ok(Plan::new(name, Box::new(work)))
}

/// The norm's kernel that computes elements instead of reading them.
fn source(program: &Program, norm: &Norm, team: Team, axes: Option<usize>) -> Source {
    let names = ["out", "weight", "bias"].into_iter().take(2 + usize::from(norm.bias));
    let more: Vec<Tensor> = names.map(|name| Tensor { name, dtype: norm.dtype }).collect();
    let values = element(program, program.outputs.len() - 1, &more, BEHIND, axes);
    norm::source(values, norm.dtype, norm.bias, team)
}

impl Anchored {
    /// The team whose members hold the elements of their rows, if the device supports enough tensors.
    fn team(&self, job: &Job<'_>, rows: &Rows) -> Result<Option<Team>> {
        let properties = &job.device.context.properties;
        let team = Team::of(properties, rows)?;
        let tensors = job.inputs.len() + job.outputs.len();
        Ok((team.held > 0 && tensors < properties.buffers as usize).then_some(team))
    }

    /// The rows of the norm's tensors.
    fn rows(&self, job: &Job<'_>, value: &View<'_>) -> Result<Rows> {
        let out = job.output(0)?;
        let all = job.inputs.iter().chain(&job.outputs);
        if job.inputs.len() != self.program.inputs + 1 + usize::from(self.norm.bias)
            || all.clone().any(|view| view.shape != out.shape)
        {
            return Err(Failure::invalid("a program with a norm of tensors of several shapes"));
        }
        let mut tensors = vec![value, out];
        tensors.extend(&job.inputs[self.program.inputs..]);
        Rows::of(out.shape, &tensors, 1 << (out.shape.len() - 1))
    }
}

impl Work for Anchored {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let out = job.output(0)?;
        let strides = row_major(out.shape);
        let value = View { strides: &strides, ..out.clone() };
        let held = self.team(job, &self.rows(job, &value)?)?.is_some();
        Ok(if held || self.read.is_some() { 0 } else { out.bytes() })
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (own, operands) = job.inputs.split_at(self.program.inputs.min(job.inputs.len()));
        let (out, further) = (job.output(0)?, &job.outputs[1..]);
        let strides = row_major(out.shape);
        let value = View { offset: 0, strides: &strides, ..out.clone() };
        let rows = self.rows(job, &value)?;
        let epsilon = job.scalar(self.program.constants)?;
        let mut views: Vec<&View<'_>> = own.iter().collect();
        if let Some(team) = self.team(job, &rows)? {
            views.extend(further);
            let (axes, mut words) = walked(job, &self.program, &views)?;
            axes.layout(&mut words);
            views.push(out);
            views.extend(operands);
            let count = Some(axes.list.len().max(1)).filter(|n| *n <= AXES);
            let kernel = self.kernels.get(job.device, (team, count), |(team, count)| {
                source(&self.program, &self.norm, *team, *count)
            })?;
            let blocks: Vec<_> = views.iter().map(|view| &view.block).collect();
            return team.launch(job, &kernel, &blocks, (&rows, self.norm.number(epsilon)), &words);
        }
        let value = match self.read {
            Some(i) => further[i].clone(),
            None => View { block: job.scratch()?, ..value },
        };
        if self.read.is_none() {
            views.push(&value);
        }
        views.extend(further);
        self.apart.map(job, &views)?;
        let operands: Vec<_> = operands.iter().collect();
        self.norm.run_views(job, &value, &operands, epsilon)
    }
}
