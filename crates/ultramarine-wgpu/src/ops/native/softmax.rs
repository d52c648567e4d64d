//! SOFTMAX and LOGSUMEXP: any axes, any strides.

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
    /// The elements are wanted, or else their sum.
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
    let tensors = ["a", "out"].map(|name| Tensor { name, dtype });
    let program = Program::new(&tensors).library(SOFTMAX);
    let function = if elements { "softmax_row" } else { "logsumexp_row" };
    team.program(program, dtype, 2, function).build()
}

impl Work for Softmax {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, out) = (job.input(0)?, job.output(0)?);
        let rows = Rows::of(input.shape, &[input, out], self.axes)?;
        let team = Team::of(&job.device.context.properties, &rows)?;
        let source = |team: &Team| source(self.dtype, self.elements, *team);
        let kernel = self.kernels.get(job.device, team, source)?;
        team.launch(job, &kernel, &[&input.block, &out.block], (&rows, 0), &[])
    }
}
