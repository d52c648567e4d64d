//! SOFTMAX and LOGSUMEXP.

use super::row_kernels::{self, Form, RowKernels, Strategy};
use crate::launch::{Dtype, Job, OpRequest, RankVariant, Work, launch};
use crate::ops::headers;
use crate::ops::reduce::fold;
use crate::ops::reduce::{Reduction, kernels_of, vector};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AxesAttrs;

/// The kernels' header.
pub const HEADER: &str = include_str!("../../../kernels/nn/softmax.cuh");
const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, fold::HEADER, row_kernels::HEADER, HEADER];

/// The operand's dtype and the axes of a request.
fn asked(request: &OpRequest<'_>) -> Result<(Dtype, u64)> {
    request.elementwise(1)?;
    let AxesAttrs { axes, .. } = request.attributes()?;
    let (input, output) = (request.input(0)?, request.output(0)?);
    if input.dtype != output.dtype || !input.dtype.is_real() {
        return Err(Failure::unsupported(format!(
            "of {} into {}: the exponentials' dtypes are floating, and the output's is the input's",
            input.dtype.name(),
            output.dtype.name()
        )));
    }
    Ok((input.dtype, axes))
}

/// Bytes of `ScaledSum`.
pub fn accumulator(dtype: Dtype) -> u64 {
    if dtype == Dtype::Float64 { 16 } else { 8 }
}

/// LOGSUMEXP, along any axes and with any strides.
pub fn prepare_logsumexp(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let (dtype, axes) = asked(request)?;
    Ok(Box::new(Reduction {
        axes,
        accumulator: accumulator(dtype),
        vector: vector(dtype),
        longest: u64::MAX,
        kernels: kernels_of(format!("LogSumExp<{}>", dtype.tag()), dtype, HEADERS),
        copy: None,
    }))
}

struct Softmax(RowKernels);

/// SOFTMAX, along any axes and with any strides.
pub fn prepare_softmax(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let (dtype, axes) = asked(request)?;
    let sums = kernels_of(format!("SoftmaxSum<{}>", dtype.tag()), dtype, HEADERS);
    let (accumulator, apply) = (accumulator(dtype), Kernels::default());
    Ok(Box::new(Softmax(RowKernels { dtype, axes, accumulator, headers: HEADERS, sums, apply })))
}

impl Softmax {
    /// The second pass.
    fn apply(&self, variant: RankVariant) -> Source {
        let (d, rank, index) = (self.0.dtype.tag(), variant.rank, variant.index());
        let parameters = format!(
            "const {d}::T *in, {d}::T *out, const ScaledSum<{d}::A> *sums, const Walk<3, {rank}> w"
        );
        Source::instance(HEADERS, "softmax_apply", format!("{d}, {rank}, {index}"), parameters)
    }
}

impl Work for Softmax {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(self.0.workspace(job, &[job.input(0)?, job.output(0)?]))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (input, output) = (job.input(0)?, job.output(0)?);
        if input.shape != output.shape {
            return Err(Failure::invalid(format!(
                "softmax of {:?} into {:?}",
                input.shape, output.shape
            )));
        }
        let (from, to) = (input.address, output.address);
        match self.0.strategy(job, &[input, output]) {
            Strategy::Team(fold, team) => {
                let (arguments, parameters) = Default::default();
                let form = Form { template: "softmax_rows", arguments, parameters };
                let (kernel, grid) = self.0.one_pass(job, &fold, team, &form)?;
                launch!(job, &kernel, grid; from, to, fold.words[..])
            }
            Strategy::Sums(sums) => {
                let at = self.0.first_pass(job, &sums, from)?;
                let strides = [input.strides, output.strides, &sums.strides];
                let (kernel, grid, words) =
                    self.0.second_pass(job, input.shape, strides, |v| self.apply(v))?;
                launch!(job, &kernel, grid; from, to, at, words[..])
            }
        }
    }
}
