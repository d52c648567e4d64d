//! RMS_NORM and LAYER_NORM, with any strides.

use super::rows::{Rows, Team};
use super::variants::Variants;
use crate::dtype::Dtype;
use crate::launch::{Desc, Job, OpRequest, View, Work};
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Result};

const NORM: &str = include_str!("../../../kernels/native/norm.wgsl");

/// A norm along rows; with a bias, it is a layer norm.
pub struct Norm {
    /// The dtype of all tensors.
    pub dtype: Dtype,
    /// True if there is a bias.
    pub bias: bool,
    kernels: Variants<Team>,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>, bias: bool) -> Result<Box<dyn Work>> {
    request.elementwise(2 + usize::from(bias))?;
    let norm = Norm::new(bias, &request.inputs, request.output(0)?)?;
    request.computes(&[norm.dtype])?;
    Ok(Box::new(norm))
}

/// The kernel of a norm. `load_a` reads the first tensor; the other tensors are `out`, `weight` and
/// `bias`.
pub fn source(program: Program<'_>, dtype: Dtype, bias: bool, team: Team) -> Source {
    let mut items = format!("const CENTERED: bool = {bias};\n");
    let function = match team.held {
        0 => {
            let shifted = if bias { "x + load_bias(place(3u, j))" } else { "x" };
            items += &format!("fn shifted(x: R, j: u32) -> R {{ return {shifted}; }}\n");
            "norm_row"
        }
        _ => {
            let read = [("a", 0), ("weight", 2), ("bias", 3)];
            items += &team.takes(dtype, &read[..2 + usize::from(bias)], true);
            let shifted = if bias { "x + take_bias(j, live)" } else { "x" };
            items += &format!(
                "fn four_shifted(x: vec4<R>, j: u32, live: bool) -> vec4<R> {{ return {shifted}; }}\n"
            );
            "norm_held"
        }
    };
    let program = program.library(NORM).item(&items);
    team.program(program, dtype, 3 + usize::from(bias), function).build()
}

impl Norm {
    /// The norm for inputs with these descriptions.
    pub fn new(bias: bool, inputs: &[Desc], out: Desc) -> Result<Self> {
        let dtype = out.dtype;
        if !dtype.is_real() || inputs.iter().any(|d| d.dtype != dtype) {
            return Err(Failure::unsupported("norms are of one floating dtype"));
        }
        if out.ndim == 0 {
            return Err(Failure::invalid("norms are of the last axis, a scalar has none"));
        }
        Ok(Self { dtype, bias, kernels: Variants::default() })
    }

    /// Enqueues the norm of x with weight and bias.
    pub fn run_views(
        &self,
        job: &Job<'_>,
        x: &View<'_>,
        rest: &[&View<'_>],
        epsilon: u64,
    ) -> Result<()> {
        let out = job.output(0)?;
        let mut all = vec![x, out];
        all.extend(rest);
        if let Some(other) = all.iter().find(|view| view.shape != out.shape) {
            let text =
                format!("a norm of {:?} into {:?}: all have one shape", other.shape, out.shape);
            return Err(Failure::invalid(text));
        }
        let rows = Rows::of(out.shape, &all, 1 << (out.shape.len() - 1))?;
        let team = Team::of(&job.device.context.properties, &rows)?.with_vectors(&rows, all.len());
        let kernel = self.kernels.get(job.device, team, |team| self.source(*team))?;
        let blocks: Vec<_> = all.iter().map(|view| &view.block).collect();
        team.launch(job, &kernel, &blocks, (&rows, self.number(epsilon)), &[])
    }

    /// Epsilon in the form that kernels use.
    pub fn number(&self, epsilon: u64) -> u64 {
        match self.dtype {
            Dtype::Float64 => epsilon,
            _ => (f64::from_bits(epsilon) as f32).to_bits().into(),
        }
    }

    fn source(&self, team: Team) -> Source {
        let names = ["a", "out", "weight", "bias"].into_iter().take(3 + usize::from(self.bias));
        let tensors: Vec<Tensor> = names.map(|name| Tensor { name, dtype: self.dtype }).collect();
        source(team.tensors(Program::new(&[]), &tensors), self.dtype, self.bias, team)
    }
}

impl Work for Norm {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let rest =
            (1..2 + usize::from(self.bias)).map(|i| job.input(i)).collect::<Result<Vec<_>>>()?;
        self.run_views(job, job.input(0)?, &rest, job.scalar(0)?)
    }
}
