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

/// Columns of a block that sums over rows, and its rows of threads.
const COLUMNS: u64 = 32;
const LINES: u64 = 8;
/// Registers for a thread's part of a row: for x, for the cotangent, and for the sums over rows.
const HELD: u64 = 80;
/// Numbers of threads that may hold a row. Blocks with teams of 32 process eight rows at once,
/// others one.
const TEAMS: [u32; 4] = [32, 128, 256, 512];
/// Minimum number of rows of a part.
const FEWEST: u64 = 8;

struct Gradient {
    dtype: Dtype,
    centered: bool,
    /// True if gradients with respect to weight and bias are requested.
    parameters: bool,
    /// By a team's threads, its packs, and the elements of a pack.
    held: Kernels<(u32, u32, u32)>,
    /// By the number of adjacent elements that a thread loads at once.
    rows: Kernels<u32>,
    /// Likewise.
    columns: Kernels<u32>,
    sums: Kernels,
}

/// The division of a gradient's work.
#[derive(Clone, Copy)]
struct Cut {
    /// Adjacent elements that a thread loads at once.
    vector: u32,
    /// The number of threads that hold a row, and of packs of each; `None` if a row is read again
    /// for each sum.
    held: Option<(u32, u32)>,
    /// Rows of a part.
    each: u64,
    parts: u64,
    /// Sums of a part for the weight, and as many for the bias.
    width: u64,
}

/// RMS_NORM_GRADIENT, or LAYER_NORM_GRADIENT if `centered`, with any strides.
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
    Ok(Box::new(Gradient {
        dtype,
        centered,
        parameters: attributes.parameters == 1,
        held: Kernels::default(),
        rows: Kernels::default(),
        columns: Kernels::default(),
        sums: Kernels::default(),
    }))
}

impl Gradient {
    /// Rows and strides, as in the kernels' `NormGradient`.
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

    /// Bytes of a number in the arithmetic's dtype.
    fn size(&self) -> u64 {
        if self.dtype == Dtype::Float64 { 8 } else { 4 }
    }

    fn cut(&self, job: &Job<'_>, rows: u64, n: u64) -> Result<Cut> {
        let (x, weight, t, out) = (job.input(0)?, job.input(1)?, job.input(2)?, job.output(0)?);
        let vector = self.vector([x, t, out], weight, n);
        let v = u64::from(vector);
        // Rounded up a little, because each number of packs needs its own kernel.
        let packs = |team: u32| match n.div_ceil(v).div_ceil(u64::from(team)) {
            few @ 0..=4 => few,
            many => many.next_multiple_of(4),
        };
        let registers = |packs: u64| packs * v * (2 * self.size() + 2 * self.dtype.bytes()) / 4;
        let team = TEAMS.into_iter().find(|team| registers(packs(*team)) <= HELD);
        // Blocks of small teams are small, so more of them run at once.
        let wanted = match team {
            Some(32) => 256,
            Some(128) => 1024,
            _ => 512,
        };
        let each = rows.div_ceil(wanted).max(FEWEST).next_multiple_of(FEWEST);
        let held = team.map(|team| (team, packs(team) as u32));
        let width = held.map_or(n, |(team, packs)| u64::from(team * packs * vector));
        Ok(Cut { vector, held, each, parts: rows.div_ceil(each), width })
    }

    /// Bytes of the rows' means and scales, and of the sums of the parts.
    fn bytes(&self, cut: &Cut, rows: u64) -> [u64; 2] {
        let stats = if cut.held.is_some() { 0 } else { 2 * rows * self.size() };
        let sums = if self.parameters { cut.parts * 2 * cut.width * self.size() } else { 0 };
        [stats.next_multiple_of(256), sums]
    }

    /// Adjacent elements that a thread loads at once.
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
        Ok(self.bytes(&self.cut(job, rows, n)?, rows).iter().sum())
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let words = self.sizes(job)?;
        let [rows, n, ..] = words;
        let cut = self.cut(job, rows, n)?;
        let bytes = self.bytes(&cut, rows);
        let stats = if bytes == [0, 0] { 0 } else { job.scratch()? };
        let partial = stats + bytes[0];
        match cut.held {
            Some(held) => self.held(job, &cut, held, partial, words)?,
            None => self.read_again(job, &cut, [stats, partial], words)?,
        }
        if !self.parameters {
            return Ok(());
        }
        let (d, centered, programs) = (self.dtype.tag(), self.centered, &job.device.programs);
        let kernel = self.sums.get(programs, (), || {
            let parameters = format!(
                "const {d}::A *partial, {d}::T *by_weight, {d}::T *by_bias, i64 parts, i64 width, i32 team, i32 vector, \
                 const NormGradient s"
            );
            let arguments = format!("{d}, {centered}");
            Source::instance(HEADERS, "norm_gradient_sums", arguments, parameters).bounded("1024")
        })?;
        let by_weight = job.output(1)?.address;
        let by_bias = if centered { job.output(2)?.address } else { 0 };
        let sums = if centered { 2 * cut.width } else { cut.width };
        let (team, vector) = cut.held.map_or((1, 1), |(team, _)| (team, cut.vector));
        let (parts, width) = (cut.parts, cut.width);
        let grid = Grid::exactly(sums.div_ceil(32), 1024)?;
        launch!(job, &kernel, grid; partial, by_weight, by_bias, parts, width, team, vector, words[..])
    }
}

impl Gradient {
    /// Computes the gradient with respect to x and the sums of the parts, for rows that teams hold.
    fn held(
        &self,
        job: &Job<'_>,
        cut: &Cut,
        (team, packs): (u32, u32),
        partial: u64,
        words: [u64; 11],
    ) -> Result<()> {
        let (d, centered, parameters) = (self.dtype.tag(), self.centered, self.parameters);
        let threads = if team == 32 { 256 } else { team };
        let v = cut.vector;
        let kernel = self.held.get(&job.device.programs, (team, packs, v), || {
            let arguments = format!("{d}, {centered}, {parameters}, {team}, {packs}, {v}");
            let parameters = format!(
                "const {d}::T *x, const {d}::T *weight, const {d}::T *cotangent, {d}::T *out, {d}::A *partial, double eps, \
                 i64 each, const NormGradient s"
            );
            Source::instance(HEADERS, "norm_gradient_held", arguments, parameters)
                .bounded(threads.to_string())
        })?;
        // Without sums over rows, a block gets only as many rows as it processes at once.
        let each = match parameters {
            true => cut.each,
            false => u64::from(threads / team).max(words[0].div_ceil(1 << 30)),
        };
        let grid = Grid::exactly(words[0].div_ceil(each), threads)?;
        let [x, weight, t] = [0, 1, 2].map(|i| job.inputs[i].address);
        let (out, eps) = (job.output(0)?.address, f64::from_bits(job.scalar(0)?));
        launch!(job, &kernel, grid; x, weight, t, out, partial, eps, each, words[..])
    }

    /// Likewise, for rows that are read again for each sum.
    fn read_again(
        &self,
        job: &Job<'_>,
        cut: &Cut,
        [stats, partial]: [u64; 2],
        words: [u64; 11],
    ) -> Result<()> {
        let [rows, n, ..] = words;
        let (d, centered, programs) = (self.dtype.tag(), self.centered, &job.device.programs);
        let v = cut.vector;
        let kernel = self.rows.get(programs, v, || {
            let parameters = format!(
                "const {d}::T *x, const {d}::T *weight, const {d}::T *cotangent, {d}::T *out, {d}::A *stats, double eps, \
                 const NormGradient s"
            );
            let arguments = format!("{d}, {centered}, {v}");
            Source::instance(HEADERS, "norm_gradient_rows", arguments, parameters).bounded("1024")
        })?;
        let grid = Grid::exactly(rows.min(1 << 20), 1024)?;
        let [x, weight, t] = [0, 1, 2].map(|i| job.inputs[i].address);
        let (out, eps) = (job.output(0)?.address, f64::from_bits(job.scalar(0)?));
        launch!(job, &kernel, grid; x, weight, t, out, stats, eps, words[..])?;
        if !self.parameters {
            return Ok(());
        }
        // A thread loads four bytes of a half dtype.
        let v = if v > 1 && self.dtype.is_half() { 2 } else { 1 };
        let kernel = self.columns.get(programs, v, || {
            let parameters = format!(
                "const {d}::T *x, const {d}::T *cotangent, const {d}::A *stats, {d}::A *partial, i64 each, const NormGradient s"
            );
            Source::instance(HEADERS, "norm_gradient_columns", format!("{d}, {v}"), parameters)
        })?;
        let blocks = n.div_ceil(COLUMNS * u64::from(v)) * cut.parts;
        let (grid, each) = (Grid::exactly(blocks, (COLUMNS * LINES) as u32)?, cut.each);
        launch!(job, &kernel, grid; x, t, stats, partial, each, words[..])
    }
}
