//! SOFTMAX and LOGSUMEXP, along any axes and with any strides.

use super::rows::{Rows, Team};
use super::variants::Variants;
use crate::dtype::Dtype;
use crate::launch::{Job, OpRequest, Work};
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AxesAttrs;

/// Softmax of a row.
pub const SOFTMAX: &str = include_str!("../../../kernels/native/softmax.wgsl");

struct Softmax {
    dtype: Dtype,
    axes: u64,
    /// True if the elements are computed (softmax), false if their sum is (logsumexp).
    elements: bool,
    kernels: Variants<Team>,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>, elements: bool) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let AxesAttrs { axes, .. } = request.attributes()?;
    let (input, out) = (request.input(0)?, request.output(0)?);
    if input.dtype != out.dtype || !input.dtype.is_real() {
        return Err(Failure::unsupported("exponentials of a dtype that is not floating"));
    }
    request.computes(&[input.dtype])?;
    Ok(Box::new(Softmax { dtype: input.dtype, axes, elements, kernels: Variants::default() }))
}

pub(super) fn source(dtype: Dtype, elements: bool, team: Team) -> Source {
    let (a, out) = (Tensor { name: "a", dtype }, Tensor { name: "out", dtype });
    let program = Program::new(&[]).library(SOFTMAX);
    let program = match elements {
        true => team.tensors(program, &[a, out]),
        // Only `a` may be read as vectors, which are bound last.
        false if team.vectors => team.tensors(program.tensors(&[out]), &[a]),
        false => program.tensors(&[a, out]),
    };
    let function = match (elements, team.held > 0) {
        (true, true) => "softmax_held",
        (true, false) => "softmax_row",
        (false, _) => "logsumexp_row",
    };
    let mut items = if elements { String::new() } else { row_sums(team).to_owned() };
    if team.held > 0 {
        items += &team.takes(dtype, &[("a", 0)], elements);
    }
    team.program(program.item(&items), dtype, 2, function).build()
}

/// The function `row_sums` of a team.
pub(super) fn row_sums(team: Team) -> &'static str {
    match team.held {
        0 => {
            "fn row_sums(row: u32, lane: u32, live: bool, local: u32) -> vec2<R> { return sums_by_turns(row, lane, live, local); }\n"
        }
        _ => {
            "fn row_sums(row: u32, lane: u32, live: bool, local: u32) -> vec2<R> { return sums_held(row, lane, live, local); }\n"
        }
    }
}

impl Work for Softmax {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, out) = (job.input(0)?, job.output(0)?);
        let rows = Rows::of(input.shape, &[input, out], self.axes)?;
        let team = Team::of(&job.device.context.properties, &rows)?;
        let team = team.with_vectors(&rows, if self.elements { 2 } else { 1 });
        let source = |team: &Team| source(self.dtype, self.elements, *team);
        let kernel = self.kernels.get(job.device, team, source)?;
        let blocks = match self.elements || !team.vectors {
            true => [&input.block, &out.block],
            false => [&out.block, &input.block],
        };
        team.launch(job, &kernel, &blocks, (&rows, 0), &[])
    }
}
