//! SOFTMAX and LOGSUMEXP.

use super::row_kernels::{self, Form, Rows, Way};
use crate::launch::ByRoom;
use crate::launch::{Ask, Dtype, Job, Work, launch};
use crate::ops::reduce::fold;
use crate::ops::reduce::{Reduction, kernels_of, vector};
use crate::ops::text;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::AxesAttrs;

const TEXTS: &[&str] = &[
    text::NUMBER,
    text::WALK,
    fold::TEXT,
    row_kernels::TEXT,
    include_str!("../../../kernels/nn/softmax.cuh"),
];

/// The operand's dtype and the axes of a request.
fn asked(ask: &Ask<'_>) -> Result<(Dtype, u64)> {
    ask.elementwise(1)?;
    let AxesAttrs { axes, .. } = ask.attributes()?;
    let (input, output) = (ask.input(0)?, ask.output(0)?);
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
fn accumulator(dtype: Dtype) -> u64 {
    if dtype == Dtype::Float64 { 16 } else { 8 }
}

/// LOGSUMEXP: any axes, any strides.
pub fn prepare_logsumexp(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    let (dtype, axes) = asked(ask)?;
    Ok(Box::new(Reduction {
        axes,
        accumulator: accumulator(dtype),
        vector: vector(dtype),
        longest: u64::MAX,
        kernels: kernels_of(format!("LogSumExp<{}>", dtype.tag()), dtype, TEXTS),
    }))
}

struct Softmax(Rows);

/// SOFTMAX: any axes, any strides.
pub fn prepare_softmax(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    let (dtype, axes) = asked(ask)?;
    let d = dtype.tag();
    let sums = kernels_of(format!("SoftmaxSum<{d}>"), dtype, TEXTS);
    let apply = ByRoom::new(&format!("softmax {d}"), TEXTS, |room, index| {
        (
            format!(
                "const {d}::T *in, {d}::T *out, const ScaledSum<{d}::A> *sums, const Walk<3, {room}> w"
            ),
            format!("softmax_apply<{d}, {room}, {index}>(in, out, sums, w);"),
        )
    });
    let accumulator = accumulator(dtype);
    Ok(Box::new(Softmax(Rows { dtype, axes, accumulator, texts: TEXTS, sums, apply })))
}

impl Work for Softmax {
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
        match self.0.way(job, &[input, output]) {
            Way::Team(fold, team) => {
                let (template, parameters) = Default::default();
                let form = Form { name: "softmax", template, parameters };
                let (kernel, grid) = self.0.one_pass(job, &fold, team, &form)?;
                launch!(job, &kernel, grid; from, to, fold.words[..])
            }
            Way::Sums(sums) => {
                let at = self.0.first_pass(job, &sums, from)?;
                let strides = [input.strides, output.strides, &sums.strides];
                let (kernel, grid, words) = self.0.second_pass(job, input.shape, strides)?;
                launch!(job, &kernel, grid; from, to, at, words[..])
            }
        }
    }
}
