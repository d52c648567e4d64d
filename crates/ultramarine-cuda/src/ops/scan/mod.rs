//! SCAN: running sums, products and extremes along an axis. `layout.rs` chooses how threads share
//! the rows.

mod layout;

use self::layout::{Layout, Strategy};
use crate::launch::{BLOCK, Dtype, Grid, Job, MAX_AXES, OpRequest, Work, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{ScanAttrs, reduce};

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../../kernels/scan.cuh")];

/// The rank of kernels for rows with `axes` axes. Usually all of them are joined into one.
fn rank_of(axes: usize) -> usize {
    if axes > 1 { MAX_AXES } else { 1 }
}

struct Scan {
    axis: usize,
    instance: Instance,
    /// By the kind of kernel and the rank of the rows.
    kernels: Kernels<(ScanKernel, usize)>,
}

/// The part of a scan that a kernel computes.
#[derive(Clone, Copy, PartialEq)]
enum ScanKernel {
    /// The scan itself, or the scan of each chunk.
    Scan(Strategy),
    /// Totals of chunks of rows; `packed` if they are read in packs.
    RowTotals { packed: bool },
    /// Totals of chunks of lanes.
    LaneTotals,
    /// The carries of the chunks of a row: an exclusive scan of totals, in place.
    Carry,
}

/// SCAN.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(1)?;
    let attributes: ScanAttrs = request.attributes()?;
    let (input, output) = (request.input(0)?, request.output(0)?);
    let axis = attributes.axis as usize;
    if input.dtype != output.dtype || axis >= input.ndim {
        return Err(Failure::invalid(format!(
            "a scan along axis {axis} of {} elements of rank {} as {}: the axis is below the rank \
             and both dtypes are one",
            input.dtype.name(),
            input.ndim,
            output.dtype.name()
        )));
    }
    let dtype = input.dtype;
    let exponents = dtype.is_real() || dtype.is_complex();
    if !(attributes.op <= reduce::MAX || attributes.op == reduce::LOGADDEXP && exponents) {
        return Err(Failure::unsupported(format!(
            "scan operation {} of {}: there are sum, prod, min, max, and logaddexp of floats",
            attributes.op,
            dtype.name()
        )));
    }
    let (reverse, inclusive) = (attributes.reverse != 0, attributes.inclusive != 0);
    let instance = Instance { dtype, op: attributes.op, reverse, inclusive };
    Ok(Box::new(Scan { axis, instance, kernels: Kernels::default() }))
}

/// The template arguments that all kernels of a scan share.
#[derive(Clone, Copy)]
struct Instance {
    dtype: Dtype,
    op: u32,
    reverse: bool,
    inclusive: bool,
}

impl Instance {
    fn source(self, part: ScanKernel, rank: usize) -> Source {
        let (d, op) = (self.dtype.tag(), self.op);
        let totals =
            format!("const {d}::T *in, {d}::A *totals, const Line line, const Walk<2, {rank}> w");
        match part {
            ScanKernel::Scan(strategy) => self.scan(strategy, rank),
            ScanKernel::RowTotals { packed } => {
                let e = if packed { 16 / self.dtype.bytes() } else { 1 };
                let arguments = format!("{d}, {op}, {e}, {}, {rank}", self.reverse && e > 1);
                Source::instance(HEADERS, "scan_row_totals", arguments, totals)
            }
            ScanKernel::LaneTotals => {
                Source::instance(HEADERS, "scan_lane_totals", format!("{d}, {op}, {rank}"), totals)
            }
            ScanKernel::Carry => {
                let dtype = if self.dtype.is_half() { Dtype::Float32 } else { self.dtype };
                let strategy = Strategy::Rows { packed: false, group: layout::Group::Block };
                Self { dtype, inclusive: false, reverse: false, ..self }.scan(strategy, rank)
            }
        }
    }

    fn scan(self, strategy: Strategy, rank: usize) -> Source {
        let (d, op, inclusive) = (self.dtype.tag(), self.op, self.inclusive);
        let parameters = format!(
            "const {d}::T *in, {d}::T *out, const {d}::A *carries, const Line line, \
             const Walk<2, {rank}> w"
        );
        let (e, v, one_warp) = match strategy {
            Strategy::Lanes => {
                let arguments = format!("{d}, {op}, {inclusive}, {rank}");
                return Source::instance(HEADERS, "scan_lanes", arguments, parameters);
            }
            Strategy::Rows { group, .. } => {
                (strategy.pack(self.dtype), strategy.packs(self.dtype), group.is_warp())
            }
        };
        // Single elements are walked backwards by negative strides, so only packs have to be
        // reversed.
        let reverse = self.reverse && e > 1;
        let arguments = format!("{d}, {op}, {inclusive}, {e}, {v}, {reverse}, {one_warp}, {rank}");
        Source::instance(HEADERS, "scan_rows", arguments, parameters)
    }
}

impl Scan {
    fn kernel(&self, job: &Job<'_>, part: ScanKernel, rank: usize) -> Result<Kernel> {
        let source = || self.instance.source(part, rank);
        self.kernels.get(&job.device.programs, (part, rank), source)
    }
}

impl Work for Scan {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(Layout::of(job, self.axis, self.instance.reverse)?.workspace())
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let l = Layout::of(job, self.axis, self.instance.reverse)?;
        let rank = rank_of(l.rows.count);
        let (line, walk) = (l.line(), l.rows.parameter_in(rank));
        let mut carries = 0;
        if l.chunks > 1 {
            carries = job.scratch()?;
            let totals = l.rows.len() * (l.chunks - 1);
            match l.strategy {
                Strategy::Lanes => {
                    let kernel = self.kernel(job, ScanKernel::LaneTotals, rank)?;
                    let grid = Grid::line(blocks(totals.div_ceil(u64::from(BLOCK))), BLOCK);
                    launch!(job, &kernel, grid; l.from, carries, line[..], walk[..])?;
                }
                Strategy::Rows { packed, .. } => {
                    let kernel = self.kernel(job, ScanKernel::RowTotals { packed }, rank)?;
                    let grid = Grid::line(blocks(totals), BLOCK);
                    launch!(job, &kernel, grid; l.from, carries, line[..], walk[..])?;
                }
            }
            let (line, walk) = l.carry();
            let kernel = self.kernel(job, ScanKernel::Carry, 1)?;
            let grid = Grid::line(blocks(l.rows.len()), BLOCK);
            launch!(job, &kernel, grid; carries, carries, carries, line[..], walk[..])?;
        }
        let kernel = self.kernel(job, ScanKernel::Scan(l.strategy), rank)?;
        let grid = Grid::line(blocks(l.blocks()), BLOCK);
        launch!(job, &kernel, grid; l.from, l.to, carries, line[..], walk[..])
    }
}

/// A grid of `count` blocks, or of the maximum number: the kernels loop with the grid's stride.
fn blocks(count: u64) -> u32 {
    count.clamp(1, i32::MAX as u64) as u32
}
