//! RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT.

use super::row_kernels;
use crate::launch::{Dtype, Grid, Job, OpRequest, View, Work, launch};
use crate::ops::headers;
use crate::ops::reduce::{fold, vector};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::NormGradientAttrs;

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    fold::HEADER,
    row_kernels::HEADER,
    include_str!("../../../kernels/nn/norm.cuh"),
    include_str!("../../../kernels/nn/norm_gradient.cuh"),
];

/// Columns of a block that sums over rows, and its lines of threads.
const COLUMNS: u64 = 32;
const LINES: u64 = 8;
/// Registers for a thread's part of x, and as many for its part of the cotangent.
const HELD: u32 = 32;
/// Blocks of a processor that sum over rows.
const EACH: u64 = 4;

struct Gradient {
    dtype: Dtype,
    centered: bool,
    /// Gradients by weight and bias are wanted.
    parameters: bool,
    /// For a team's threads, how often it reads to have all of a row, and neighbours that a thread reads at once.
    rows: Kernels<(u32, u32, u32)>,
    /// For neighbours that a thread reads at once.
    columns: Kernels<u32>,
    sums: Kernels,
}

/// RMS_NORM_GRADIENT, or LAYER_NORM_GRADIENT if `centered`: any strides.
pub fn prepare(request: &OpRequest<'_>, centered: bool) -> Result<Box<dyn Work>> {
    let attributes: NormGradientAttrs = request.attributes()?;
    let dtype = request.input(0)?.dtype;
    let outputs = if centered { 3 } else { 2 };
    let ranks = [2, 1, 2, 2, 1, 1];
    let mut fits = (request.inputs.len(), request.outputs.len()) == (3, outputs);
    for (d, rank) in request.inputs.iter().chain(&request.outputs).zip(ranks) {
        fits &= d.dtype == dtype && d.ndim == rank;
    }
    if !fits {
        return Err(Failure::invalid(
            "a norm's gradient of other tensors than of rows of one dtype",
        ));
    }
    if !dtype.is_real() || attributes.parameters > 1 {
        return Err(Failure::unsupported(format!("norms' gradients of {}", dtype.name())));
    }
    let (rows, columns, sums) = (Kernels::default(), Kernels::default(), Kernels::default());
    let parameters = attributes.parameters == 1;
    Ok(Box::new(Gradient { dtype, centered, parameters, rows, columns, sums }))
}

/// How sums over rows are cut: rows of a part, and parts.
fn parts(job: &Job<'_>, rows: u64, n: u64) -> (u64, u64) {
    let wanted = u64::from(job.device.properties.multiprocessors) * EACH;
    // A thread has one column or two.
    let parts = wanted.div_ceil(n.div_ceil(2 * COLUMNS)).min(rows.div_ceil(4 * LINES)).max(1);
    let each = rows.div_ceil(parts);
    (each, rows.div_ceil(each))
}

impl Gradient {
    /// Rows and strides, as the kernels' `NormGradient`.
    fn sizes(&self, job: &Job<'_>) -> Result<[u64; 11]> {
        let (x, weight, t) = (job.input(0)?, job.input(1)?, job.input(2)?);
        let (out, by_weight) = (job.output(0)?, job.output(1)?);
        let by_bias = if self.centered { job.output(2)? } else { by_weight };
        let &[rows, n] = x.shape else {
            return Err(Failure::invalid("a norm's gradient of what is not rows"));
        };
        let lines = [t, out].iter().all(|view| view.shape == x.shape);
        if !lines || [weight, by_weight, by_bias].iter().any(|view| view.shape != [n]) {
            return Err(Failure::invalid(format!(
                "a norm's gradient of {:?} with tensors of other shapes",
                x.shape
            )));
        }
        let of = |view: &View<'_>| [view.strides[0], view.strides[1]];
        let ([pitch, step], [t_pitch, t_step], [out_pitch, out_step]) = (of(x), of(t), of(out));
        let each = [weight, by_weight, by_bias].map(|view| view.strides[0]);
        let all =
            [rows, n, pitch, step, t_pitch, t_step, out_pitch, out_step, each[0], each[1], each[2]];
        Ok(all.map(|n| n as u64))
    }

    /// Registers of a number.
    fn words(&self) -> u32 {
        if self.dtype == Dtype::Float64 { 2 } else { 1 }
    }

    /// Bytes of the rows' means and scales, and of the sums of parts.
    fn bytes(&self, job: &Job<'_>, rows: u64, n: u64) -> [u64; 2] {
        let size = 4 * u64::from(self.words());
        let sums = if self.parameters { parts(job, rows, n).1 * 2 * n * size } else { 0 };
        [(2 * rows * size).next_multiple_of(256), sums]
    }

    /// Neighbours that a thread reads at once.
    fn vector(&self, all: [&View<'_>; 3], weight: &View<'_>, n: u64) -> u32 {
        let v = u64::from(vector(self.dtype));
        let packs = |view: &&View<'_>| {
            view.strides[1] == 1
                && view.is_aligned(16)
                && (view.strides[0] as u64).is_multiple_of(v)
        };
        let weight = weight.strides[0] == 1 && weight.is_aligned(16);
        if n.is_multiple_of(v) && weight && all.iter().all(packs) { v as u32 } else { 1 }
    }
}

impl Work for Gradient {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let [rows, n, ..] = self.sizes(job)?;
        Ok(self.bytes(job, rows, n).iter().sum())
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let words = self.sizes(job)?;
        let [rows, n, ..] = words;
        let (x, weight, t, out) = (job.input(0)?, job.input(1)?, job.input(2)?, job.output(0)?);
        let v = self.vector([x, t, out], weight, n);
        let reads = n.div_ceil(u64::from(v));
        let team: u32 = match reads {
            0..=128 => 32,
            129..=2048 => 256,
            _ => 1024,
        };
        let times = reads.div_ceil(u64::from(team)).next_power_of_two() as u32;
        let held = if times * v * self.words() <= HELD { times } else { 0 };
        let threads = team.max(256);
        let (d, centered, programs) = (self.dtype.tag(), self.centered, &job.device.programs);
        let stats = job.scratch()?;
        let partial = stats + self.bytes(job, rows, n)[0];
        let kernel = self.rows.get(programs, (team, held, v), || {
            let parameters = format!(
                "const {d}::T *x, const {d}::T *weight, const {d}::T *cotangent, {d}::T *out, {d}::A *stats, double eps, \
                 const NormGradient s"
            );
            let arguments = format!("{d}, {centered}, {team}, {held}, {v}");
            Source::instance(HEADERS, "norm_gradient_rows", arguments, parameters)
                .bounded(threads.to_string())
        })?;
        let grid = Grid::exactly(rows.div_ceil(u64::from(threads / team)).min(1 << 20), threads)?;
        let eps = f64::from_bits(job.scalar(0)?);
        let [from, weight, cotangent, to] = [x, weight, t, out].map(|view| view.address);
        launch!(job, &kernel, grid; from, weight, cotangent, to, stats, eps, words[..])?;
        if !self.parameters {
            return Ok(());
        }
        let (each, parts) = parts(job, rows, n);
        // A thread reads four bytes of a half.
        let v = if v > 1 && self.dtype.is_half() { 2 } else { 1 };
        let kernel = self.columns.get(programs, v, || {
            let parameters = format!(
                "const {d}::T *x, const {d}::T *cotangent, const {d}::A *stats, {d}::A *partial, i64 each, const NormGradient s"
            );
            Source::instance(HEADERS, "norm_gradient_columns", format!("{d}, {v}"), parameters)
        })?;
        let grid =
            Grid::exactly(n.div_ceil(COLUMNS * u64::from(v)) * parts, (COLUMNS * LINES) as u32)?;
        launch!(job, &kernel, grid; from, cotangent, stats, partial, each, words[..])?;
        let kernel = self.sums.get(programs, (), || {
            let parameters = format!(
                "const {d}::A *partial, {d}::T *by_weight, {d}::T *by_bias, i64 parts, const NormGradient s"
            );
            let arguments = format!("{d}, {centered}");
            Source::instance(HEADERS, "norm_gradient_sums", arguments, parameters)
        })?;
        let by_weight = job.output(1)?.address;
        let by_bias = if centered { job.output(2)?.address } else { 0 };
        let grid = Grid::over(job.device, 2 * n, 1);
        launch!(job, &kernel, grid; partial, by_weight, by_bias, parts, words[..])
    }
}
