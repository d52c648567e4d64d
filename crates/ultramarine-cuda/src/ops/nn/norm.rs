//! RMS_NORM and LAYER_NORM.

use super::row_kernels::{self, Form, RowKernels, Strategy, Sums, Team};
use crate::launch::{Desc, Dtype, Job, OpRequest, RankVariant, View, Work, launch};
use crate::ops::headers;
use crate::ops::reduce::fold;
use crate::ops::reduce::kernels_of;
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};

/// `kernels/nn/norm.cuh`; it comes after `row_kernels.cuh`.
pub const HEADER: &str = include_str!("../../../kernels/nn/norm.cuh");
const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, fold::HEADER, row_kernels::HEADER, HEADER];

/// The tensors in the kernels' order: input, output, weight and bias.
type Tensors<'j> = Vec<&'j View<'j>>;

/// A norm along rows; with a bias, it is a layer norm.
pub struct Norm {
    /// True if there is a bias.
    pub bias: bool,
    /// Its kernels.
    pub rows: RowKernels,
}

/// RMS_NORM, with any strides.
pub fn prepare_rms_norm(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    prepare(request, false)
}

/// LAYER_NORM, with any strides.
pub fn prepare_layer_norm(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    prepare(request, true)
}

fn prepare(request: &OpRequest<'_>, bias: bool) -> Result<Box<dyn Work>> {
    request.elementwise(2 + usize::from(bias))?;
    Ok(Box::new(Norm::new(bias, &request.inputs, request.output(0)?)?))
}

impl Norm {
    /// The norm of inputs of these dtypes.
    pub fn new(bias: bool, inputs: &[Desc], output: Desc) -> Result<Self> {
        let dtype = output.dtype;
        if !dtype.is_real() || inputs.iter().any(|d| d.dtype != dtype) {
            return Err(Failure::unsupported(format!(
                "norms of {} into {}: all have one floating dtype",
                inputs.first().map_or("nothing", |d| d.dtype.name()),
                dtype.name()
            )));
        }
        let Some(last) = output.ndim.checked_sub(1) else {
            return Err(Failure::invalid("norms are of the last axis, a scalar has none"));
        };
        let d = dtype.tag();
        let op = if bias { "Moments" } else { "Squares" };
        let words = if bias { 3 } else { 1 };
        let rows = RowKernels {
            dtype,
            axes: 1 << last,
            accumulator: words * if dtype == Dtype::Float64 { 8 } else { 4 },
            headers: HEADERS,
            sums: kernels_of(format!("{op}<{d}>"), dtype, HEADERS),
            apply: Kernels::default(),
        };
        Ok(Self { bias, rows })
    }

    fn tensors<'j>(&self, job: &'j Job<'_>) -> Result<Tensors<'j>> {
        let mut all = vec![job.input(0)?, job.output(0)?, job.input(1)?];
        if self.bias {
            all.push(job.input(2)?);
        }
        Ok(all)
    }

    /// The second pass.
    fn apply(&self, variant: RankVariant) -> Source {
        let (d, rank, index) = (self.rows.dtype.tag(), variant.rank, variant.index());
        let (bias, (k, moments)) = match self.bias {
            true => (true, (5, format!("Distances<{d}::A>"))),
            false => (false, (4, format!("{d}::A"))),
        };
        let arguments = format!("{d}, {bias}, {moments}, {k}, {rank}, {index}");
        let parameters = format!(
            "const {d}::T *in, {d}::T *out, const {d}::T *weight, const {d}::T *bias, const {moments} *moments, double eps, i64 count, const Walk<{k}, {rank}> w"
        );
        Source::instance(HEADERS, "norm_apply", arguments, parameters)
    }

    /// How a command is computed.
    pub fn strategy(&self, job: &Job<'_>) -> Result<Strategy> {
        Ok(self.rows.strategy(job, &self.tensors(job)?))
    }

    fn run_rows(
        &self,
        job: &Job<'_>,
        all: &[&View<'_>],
        fold: &fold::Fold,
        team: Team,
    ) -> Result<()> {
        let d = self.rows.dtype.tag();
        let along = fold.along.as_deref().unwrap_or_default();
        let one = along.iter().enumerate().fold(0, |mask, (k, s)| mask | i32::from(*s == 0) << k);
        let form = Form {
            template: "norm_rows",
            arguments: [format!("{}, ", all.len()), format!(", {one}")],
            parameters: format!("const {d}::T *weight, const {d}::T *bias, double eps, "),
        };
        let (kernel, grid) = self.rows.one_pass(job, fold, team, &form)?;
        let (input, output, weight) = (all[0].address, all[1].address, all[2].address);
        let bias = all.get(3).map_or(0, |v| v.address);
        let eps = f64::from_bits(job.scalar(0)?);
        launch!(job, &kernel, grid; input, output, weight, bias, eps, fold.words[..])
    }

    fn run_sums(&self, job: &Job<'_>, all: &[&View<'_>], sums: &Sums) -> Result<()> {
        let (input, output, weight) = (all[0].address, all[1].address, all[2].address);
        let at = self.rows.first_pass(job, sums, input)?;
        let shape = all[0].shape;
        let (x, y, w, m) = (all[0].strides, all[1].strides, all[2].strides, &sums.strides[..]);
        let apply = |variant| self.apply(variant);
        let (bias, (kernel, grid, words)) = match all.get(3) {
            Some(bias) => (
                bias.address,
                self.rows.second_pass(job, shape, [x, y, w, bias.strides, m], apply)?,
            ),
            None => (0, self.rows.second_pass(job, shape, [x, y, w, m], apply)?),
        };
        let eps = f64::from_bits(job.scalar(0)?);
        let count = shape.last().copied().unwrap_or(1);
        launch!(job, &kernel, grid; input, output, weight, bias, at, eps, count, words[..])
    }
}

impl Work for Norm {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(self.rows.workspace(job, &self.tensors(job)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let all = self.tensors(job)?;
        if let Some(other) = all.iter().find(|v| v.shape != all[1].shape) {
            return Err(Failure::invalid(format!(
                "a norm of {:?} into {:?}: all have one shape",
                other.shape, all[1].shape
            )));
        }
        match self.rows.strategy(job, &all) {
            Strategy::Team(fold, team) => self.run_rows(job, &all, &fold, team),
            Strategy::Sums(sums) => self.run_sums(job, &all, &sums),
        }
    }
}
