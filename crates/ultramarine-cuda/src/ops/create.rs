//! ARANGE and FILL.

use super::{elementwise, headers};
use crate::launch::{Axes, Dtype, Grid, Job, OpRequest, RankVariant, Work, launch};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::op;

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, elementwise::MAP, include_str!("../../kernels/create.cuh")];

struct Arange {
    dtype: Dtype,
    kernels: Kernels,
}

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    match request.op {
        op::FILL => prepare_fill(request),
        op::ARANGE => prepare_arange(request),
        _ => Err(super::unknown(request)),
    }
}

/// ARANGE: computed in float64 or int64, and converted as by COPY.
fn prepare_arange(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(0)?;
    let output = request.output(0)?;
    if output.ndim != 1 {
        return Err(Failure::invalid(format!("an arange of {} dimensions", output.ndim)));
    }
    Ok(Box::new(Arange { dtype: output.dtype, kernels: Kernels::default() }))
}

impl Arange {
    /// Indices have 64 bits.
    fn source(&self) -> Source {
        let whole = self.dtype == Dtype::Bool || self.dtype.is_integer();
        let (to, from) = (self.dtype.tag(), if whole { "I64" } else { "F64" });
        let parameters =
            format!("{to}::T *out, {from}::T start, {from}::T step, i64 n, i64 stride");
        Source::instance(HEADERS, "count_up", format!("{to}, {from}"), parameters)
    }
}

impl Work for Arange {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let output = job.output(0)?;
        let (start, step) = (job.scalar(0)?, job.scalar(1)?);
        let (n, stride) = (output.len(), output.strides.first().copied().unwrap_or(1));
        let kernel = self.kernels.get(&job.device.programs, (), || self.source())?;
        let grid = Grid::over(job.device, n, 4);
        launch!(job, &kernel, grid; output.address, start, step, n, stride)
    }
}

/// Elements are treated as words of the same size.
struct Fill {
    dtype: Dtype,
    kernels: Kernels<FillVariant>,
}

#[derive(Clone, Copy, PartialEq)]
enum FillVariant {
    /// Any strides.
    Elements(RankVariant),
    /// 16 bytes at a time, for two elements.
    Pairs,
}

/// FILL.
fn prepare_fill(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(0)?;
    let dtype = request.output(0)?.dtype.word();
    Ok(Box::new(Fill { dtype, kernels: Kernels::default() }))
}

impl Fill {
    fn source(&self, variant: FillVariant) -> Source {
        let FillVariant::Elements(axes) = variant else {
            return Source::instance(HEADERS, "fill_pairs", "", "u64 *out, u64 value, i64 n");
        };
        let (d, rank, index) = (self.dtype.tag(), axes.rank, axes.index());
        let parameters = format!("{d}::T *out, u64 value, const Walk<1, {rank}> w");
        Source::instance(HEADERS, "fill_elements", format!("{d}, {rank}, {index}"), parameters)
    }
}

impl Work for Fill {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let output = job.output(0)?;
        let value = job.scalar(0)?;
        let axes = Axes::of([output]);
        let count =
            usize::try_from(axes.len()).map_err(|_| Failure::invalid("too many elements"))?;
        if axes.is_contiguous(0) && self.dtype.bytes() < 8 {
            // SAFETY: the tensor is of this device, and long enough.
            return unsafe {
                job.fill(output.address, value as u32, self.dtype.bytes() as u32, count)
            };
        }
        if axes.is_contiguous(0) && output.is_aligned(16) {
            let variant = FillVariant::Pairs;
            let kernel =
                self.kernels.get(&job.device.programs, variant, || self.source(variant))?;
            let grid = Grid::over(job.device, axes.len(), 8);
            return launch!(job, &kernel, grid; output.address, value, count);
        }
        let (words, variant) = (axes.parameter(), FillVariant::Elements(axes.variant()));
        let kernel = self.kernels.get(&job.device.programs, variant, || self.source(variant))?;
        let grid = Grid::over(job.device, axes.len(), 4);
        launch!(job, &kernel, grid; output.address, value, words[..])
    }
}
