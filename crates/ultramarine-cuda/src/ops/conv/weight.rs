//! The gradient with respect to the weight, by `conv/weight.cuh` and `conv/elements.cuh`, or by the library for
//! convolutions of one tap.

use super::geometry::{Convolution, SMALL, Tensor, pitch};
use super::pack::Copied;
use super::product::{ELEMENTS, MOST_SUMS, STAGES};
use super::{Common, Parts, headers};
use crate::launch::{BLOCK, Grid, Job, Work, launch};
use crate::program::{Kernel, Kernels, Source, index};
use ultramarine_abi::helper::Result;

const TILES: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../kernels/conv/sizes.cuh"),
    include_str!("../../../kernels/conv/product.cuh"),
    include_str!("../../../kernels/conv/weight.cuh"),
];

/// Sizes of a tile of `conv/weight.cuh`, and the threads of a block.
const OUTPUTS: i64 = 64;
const TAPS: i64 = 128;
const THREADS: u32 = 128;
/// Blocks per multiprocessor.
const BLOCKS: i64 = 4;
/// Maximum of outputs times channels of a group for which one thread sums an element, if there are
/// many groups.
const FEW: i64 = 64;

/// The work of CONVOLVE_WEIGHT. The sizes of a command determine the kernel.
pub struct Weight {
    common: Common,
    tiles: Kernels<bool>,
    elements: Kernels<bool>,
}

/// How the gradient is computed: the output's positions are divided into parts, each with its own
/// result.
struct Plan {
    by_elements: bool,
    is_wide: bool,
    x: Option<Copied>,
    ct: Option<Copied>,
    parts: Parts,
    blocks: i64,
    /// Strides of a part's results, and their number.
    strides: [i64; 6],
    count: i64,
    /// Bytes of the copies, and of the parts.
    bytes: [u64; 3],
}

impl Weight {
    pub fn new(common: Common) -> Self {
        Self { common, tiles: Kernels::default(), elements: Kernels::default() }
    }

    fn plan(&self, job: &Job<'_>, conv: &Convolution) -> Plan {
        let [xs, ws, ys] = conv.shapes();
        let processors = i64::from(job.device.properties.multiprocessors);
        let by_elements = conv.groups > 1 && conv.outputs * conv.channels <= FEW;
        let (mut x, mut ct) = (None, None);
        if !by_elements {
            x = Copied::of(conv.x, xs, conv.bytes, false);
            ct = Copied::of(conv.y, ys, conv.bytes, pitch(&conv.y, ys).is_none());
        }
        let mut shape = ws;
        shape[1] = ct.map_or(ws[1], |ct| ct.padded);
        shape[5] = x.map_or(ws[5], |x| x.padded);
        let count: i64 = shape.iter().product();
        let rows = conv.rows();
        let most = (MOST_SUMS / (count as u64 * self.common.sum_bytes())) as i64;
        let (blocks, wanted, least) = if by_elements {
            (0, job.device.properties.parallelism() as i64 / count, 32)
        } else {
            let columns = conv.taps() * shape[5];
            let tiles = ((columns + TAPS - 1) / TAPS) * ((shape[1] + OUTPUTS - 1) / OUTPUTS);
            let blocks = tiles * conv.groups;
            (
                blocks,
                (BLOCKS * processors + blocks - 1) / blocks,
                8 * self.common.chunk() / conv.bytes as i64,
            )
        };
        let parts = Parts::of(rows, wanted.min(most).max(1), least);
        let bytes = [&x, &ct].map(|copy| copy.as_ref().map_or(0, |copy| copy.bytes(conv.bytes)));
        let sums = (count * parts.count) as u64 * self.common.sum_bytes();
        let large = |copy: &Option<Copied>| copy.is_some_and(|c| c.bytes(1) > SMALL as u64);
        let is_wide = !conv.is_small()
            || large(&x)
            || large(&ct)
            || count.saturating_mul(parts.count) > SMALL;
        Plan {
            by_elements,
            is_wide,
            x,
            ct,
            parts,
            blocks,
            strides: Copied::dense(shape),
            count,
            bytes: [bytes[0], bytes[1], sums],
        }
    }

    fn run_parts(&self, job: &Job<'_>, conv: &Convolution) -> Result<()> {
        let plan = self.plan(job, conv);
        let (mut conv, scratch) = (*conv, job.scratch()?);
        let (gradient, [_, shape, _]) = (conv.w, conv.shapes());
        let copy = |copied: &Option<Copied>, to: u64| -> Result<Option<(Tensor, i64)>> {
            let Some(copied) = copied else { return Ok(None) };
            self.common.packs.copy(job, copied, to)?;
            Ok(Some((copied.at(to), copied.padded)))
        };
        if let Some(made) = copy(&plan.x, scratch)? {
            (conv.x, conv.channels) = made;
        }
        if let Some(made) = copy(&plan.ct, scratch + plan.bytes[0])? {
            (conv.y, conv.outputs) = made;
        }
        let partial = scratch + plan.bytes[0] + plan.bytes[1];
        let (part, words) = (plan.parts.each, conv.words());
        let (x, ct) = (conv.x.address, conv.y.address);
        if plan.by_elements {
            let kernel = self.elements(job, plan.is_wide)?;
            let grid = Grid::over(job.device, (plan.count * plan.parts.count) as u64, 1);
            launch!(job, &kernel, grid; x, ct, partial, part, words[..])?;
        } else {
            let kernel = self.tiles(job, plan.is_wide)?;
            let [_, _, ys] = conv.shapes();
            let pitch = pitch(&conv.y, ys).unwrap_or(0);
            let (bytes, rows) = (conv.bytes as i64, self.common.chunk() / conv.bytes as i64);
            let place = if plan.is_wide { 32 } else { 16 };
            // Rows of half dtypes have gaps of 16 bytes.
            let gap = if self.common.dtype.is_half() { 32 } else { 0 };
            let stage = rows * ((OUTPUTS + TAPS) * bytes + gap);
            let shared = (STAGES * stage + 2 * rows * place) as u32;
            let blocks = (plan.blocks * plan.parts.count) as u64;
            let grid = Grid::exactly(blocks, THREADS)?.with_room(job, &kernel, shared)?;
            launch!(job, &kernel, grid; x, ct, partial, part, pitch, words[..])?;
        }
        let parts = (partial, plan.parts.count, plan.count);
        self.common.packs.join(job, parts, (shape, plan.strides), &gradient)
    }

    fn elements(&self, job: &Job<'_>, is_wide: bool) -> Result<Kernel> {
        self.elements.get(&job.device.programs, is_wide, || {
            let d = self.common.dtype.tag();
            let parameters = format!(
                "const {d}::T *x, const {d}::T *ct, {d}::A *partial, i64 part, const Convolution s"
            );
            let arguments = format!("{d}, {}", index(is_wide));
            Source::instance(ELEMENTS, "convolve_weight_elements", arguments, parameters)
                .bounded(BLOCK)
        })
    }

    fn tiles(&self, job: &Job<'_>, is_wide: bool) -> Result<Kernel> {
        self.tiles.get(&job.device.programs, is_wide, || {
            let (d, on_cores) = (self.common.dtype.tag(), self.common.dtype.is_half());
            let parameters = format!(
                "const {d}::T *x, const {d}::T *ct, {d}::A *partial, i64 part, i64 pitch, const Convolution s"
            );
            let chunk = self.common.chunk();
            let arguments = format!("{d}, {}, {chunk}, {STAGES}, {on_cores}", index(is_wide));
            Source::instance(TILES, "convolve_weight_tiles", arguments, parameters).bounded(THREADS)
        })
    }
}

impl Work for Weight {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _entered = job.device.enter()?;
        if let Some(call) = self.common.network(job)? {
            return Ok(call.workspace());
        }
        let mut most = 0;
        for conv in self.common.phases(job)?.iter().filter(|conv| conv.taps() > 0) {
            // If the library refuses, kernels compute it.
            let library = self.common.library_bytes(job, conv);
            most = most.max(library).max(self.plan(job, conv).bytes.iter().sum());
        }
        Ok(most)
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        if let Some(call) = self.common.network(job)? {
            return call.run(job);
        }
        let whole = Convolution::of(job, self.common.role, self.common.flip)?;
        if whole.axes.iter().any(|axis| axis.gaps > 1) {
            // Some taps may meet no elements.
            let [_, shape, _] = whole.shapes();
            let none = (whole.w.address, 0, 0);
            self.common.packs.join(job, none, (shape, Copied::dense(shape)), &whole.w)?;
        }
        for conv in whole.phases().iter().filter(|conv| conv.taps() > 0) {
            if !self.common.by_library(job, conv)? {
                self.run_parts(job, conv)?;
            }
        }
        Ok(())
    }
}
