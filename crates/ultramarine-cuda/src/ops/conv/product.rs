//! Convolutions, and their gradients with respect to the input. They are computed by tiles of `conv/halo.cuh` or
//! `conv/product.cuh`, by `conv/depthwise.cuh` or `conv/elements.cuh`, or, if they have one tap, by the library.

use super::geometry::{Convolution, SMALL};
use super::pack::Copied;
use super::{Common, Parts, depthwise, halo, headers};
use crate::launch::{BLOCK, Grid, Job, Work, launch};
use crate::program::{Kernels, Source, index};
use ultramarine_abi::helper::Result;

const TILES: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../kernels/conv/sizes.cuh"),
    include_str!("../../../kernels/conv/product.cuh"),
];
pub(super) const ELEMENTS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/conv/sizes.cuh"),
    include_str!("../../../kernels/conv/elements.cuh"),
];

/// `ROWS` of `conv/product.cuh`, and the gap in bytes between rows there.
const ROWS: i64 = 128;
const GAP: i64 = 16;
/// Results per thread.
const EACH: i64 = 64;
/// Chunks in flight or loaded.
pub(super) const STAGES: i64 = 2;

/// Maximum number of a group's outputs for which each element has its own thread, if tiles would be mostly empty:
/// because there are many groups, or because sums have at most `SHORT` terms.
const FEW_OUTPUTS: i64 = 8;
/// Length of short sums; see `FEW_OUTPUTS`.
const SHORT: i64 = 64;

/// Maximum bytes of partial sums: more parts cost more than they gain.
pub(super) const MOST_SUMS: u64 = 64 << 20;

/// The work of CONVOLVE and CONVOLVE_INPUT. The sizes of a command determine the kernel.
pub struct Forward {
    common: Common,
    tiles: Kernels<Tile>,
    halos: Kernels<(halo::Tile, bool)>,
    depthwise: Kernels<depthwise::Variant>,
    elements: Kernels<bool>,
}

/// Parameters of a compiled kernel.
#[derive(Clone, Copy, PartialEq)]
struct Tile {
    columns: i64,
    is_wide: bool,
}

/// How tiles compute a convolution.
struct Plan {
    tile: Tile,
    /// The ranges, if tiles of `conv/halo.cuh` compute it.
    ranges: Option<halo::Ranges>,
    x: Option<Copied>,
    w: Option<Copied>,
    /// Parts of the chunks.
    parts: Parts,
    blocks: u64,
    /// Bytes of the copies, and of the partial sums.
    bytes: [u64; 3],
}

impl Forward {
    pub fn new(common: Common) -> Self {
        let (tiles, halos, depthwise, elements) = Default::default();
        Self { common, tiles, halos, depthwise, elements }
    }

    /// True if tensor cores compute it.
    fn on_cores(&self) -> bool {
        self.common.dtype.is_half() || self.common.shortens
    }

    fn is_by_elements(conv: &Convolution) -> bool {
        let depth = conv.taps() * conv.channels;
        depth == 0 || conv.outputs <= FEW_OUTPUTS && (conv.groups > 1 || depth <= SHORT)
    }

    fn plan(&self, job: &Job<'_>, conv: &Convolution) -> Plan {
        let [xs, ws, _] = conv.shapes();
        let x = Copied::of(conv.x, xs, conv.bytes, false);
        let w = Copied::of(conv.w, ws, conv.bytes, true);
        let processors = i64::from(job.device.properties.multiprocessors);
        let blocks = |columns: i64| {
            let down = (conv.rows() + ROWS - 1) / ROWS;
            conv.groups * down * ((conv.outputs + columns - 1) / columns)
        };
        let columns = match conv.outputs {
            ..=32 => 32,
            65.. if blocks(128) >= 2 * processors => 128,
            _ => 64,
        };
        let (chunk, padded) = (self.common.chunk(), w.map_or(conv.channels, |w| w.padded));
        let chunks = (conv.taps() * padded * conv.bytes as i64 + chunk - 1) / chunk;
        let sums = (conv.rows() * conv.groups * conv.outputs) as u64 * self.common.sum_bytes();
        let wanted = (2 * processors / blocks(columns)).min((MOST_SUMS / sums.max(1)) as i64);
        let mut parts = Parts::of(chunks, wanted.max(1), 2);
        let mut blocks = blocks(columns);
        let mut padded_conv = Convolution { channels: padded, ..*conv };
        if let Some(x) = &x {
            padded_conv.x = x.at(0);
        }
        let device = &job.device.properties;
        // The general kernel's tiles have smaller parts, and therefore more of them if there are
        // few tiles.
        let ranges = halo::Ranges::of(&padded_conv, self.on_cores(), device, sums)
            .filter(|r| 2 * r.blocks * r.parts.count >= processors.min(blocks * parts.count));
        if let Some(ranges) = &ranges {
            (parts, blocks) = (ranges.parts, ranges.blocks);
        }
        let is_wide = !conv.is_small() || x.is_some_and(|x| x.bytes(1) > SMALL as u64);
        let sums = if parts.count > 1 { sums * parts.count as u64 } else { 0 };
        let bytes = [&x, &w].map(|copy| copy.as_ref().map_or(0, |copy| copy.bytes(conv.bytes)));
        Plan {
            tile: Tile { columns, is_wide },
            ranges,
            x,
            w,
            parts,
            blocks: (blocks * parts.count) as u64,
            bytes: [bytes[0], bytes[1], sums],
        }
    }

    fn run_tiles(&self, job: &Job<'_>, conv: &Convolution, copy_input: bool) -> Result<()> {
        let plan = self.plan(job, conv);
        let mut conv = *conv;
        let (output, [_, _, shape]) = (conv.y, conv.shapes());
        let scratch = if plan.bytes == [0; 3] { 0 } else { job.scratch()? };
        if let Some(x) = &plan.x {
            if copy_input {
                self.common.packs.copy(job, x, scratch)?;
            }
            (conv.x, conv.channels) = (x.at(scratch), x.padded);
        }
        if let Some(w) = &plan.w {
            let to = scratch + plan.bytes[0];
            self.common.packs.copy(job, w, to)?;
            (conv.w, conv.channels) = (w.at(to), w.padded);
        }
        let is_split = plan.parts.count > 1;
        let partial = if is_split { scratch + plan.bytes[0] + plan.bytes[1] } else { 0 };
        match &plan.ranges {
            Some(ranges) => self.launch_halo(job, &conv, &plan, ranges, partial)?,
            None => self.launch_tiles(job, &conv, &plan, partial)?,
        }
        if !is_split {
            return Ok(());
        }
        let step = shape.iter().product();
        let sums = Copied::dense(shape);
        self.common.packs.join(job, (partial, plan.parts.count, step), (shape, sums), &output)
    }

    fn launch_tiles(
        &self,
        job: &Job<'_>,
        conv: &Convolution,
        plan: &Plan,
        partial: u64,
    ) -> Result<()> {
        let Tile { columns, is_wide } = plan.tile;
        let (threads, d, chunk) =
            (ROWS * columns / EACH, self.common.dtype.tag(), self.common.chunk());
        let kernel = self.tiles.get(&job.device.programs, plan.tile, || {
            let on_cores = self.on_cores();
            let arguments =
                format!("{d}, {}, {columns}, {chunk}, {STAGES}, {on_cores}", index(is_wide));
            let parameters = format!(
                "const {d}::T *x, const {d}::T *w, {d}::T *y, {d}::A *partial, i64 part, const Convolution s"
            );
            Source::instance(TILES, "convolve_tiles", arguments, parameters).bounded(threads)
        })?;
        let rows = ROWS * if is_wide { 32 } else { 16 };
        let shared = (STAGES * (ROWS + columns) * (chunk + GAP) + rows) as u32;
        let grid = Grid::exactly(plan.blocks, threads as u32)?.with_room(job, &kernel, shared)?;
        let (part, words) = (plan.parts.each, conv.words());
        launch!(job, &kernel, grid; conv.x.address, conv.w.address, conv.y.address, partial, part, words[..])
    }

    fn launch_halo(
        &self,
        job: &Job<'_>,
        conv: &Convolution,
        plan: &Plan,
        ranges: &halo::Ranges,
        partial: u64,
    ) -> Result<()> {
        let (tile, is_wide) = (ranges.tile, plan.tile.is_wide);
        let kernel = self.halos.get(&job.device.programs, (tile, is_wide), || {
            halo::source(tile, self.common.dtype, is_wide)
        })?;
        let grid = Grid::exactly(plan.blocks, tile.threads())?;
        let grid = grid.with_room(job, &kernel, ranges.shared)?;
        let (part, halo, words) = (plan.parts.each, ranges.words(), halo::in_places(*conv).words());
        launch!(job, &kernel, grid; conv.x.address, conv.w.address, conv.y.address, partial, part, halo, words[..])
    }

    fn run_elements(&self, job: &Job<'_>, conv: &Convolution) -> Result<()> {
        let processors = i64::from(job.device.properties.multiprocessors);
        if let Some(blocks) = depthwise::Blocks::of(conv, self.common.sum_bytes(), processors) {
            return self.run_depthwise(job, conv, &blocks);
        }
        let is_wide = !conv.is_small();
        let kernel = self.elements.get(&job.device.programs, is_wide, || {
            let d = self.common.dtype.tag();
            let parameters =
                format!("const {d}::T *x, const {d}::T *w, {d}::T *y, const Convolution s");
            let arguments = format!("{d}, {}", index(is_wide));
            Source::instance(ELEMENTS, "convolve_elements", arguments, parameters).bounded(BLOCK)
        })?;
        let n = (conv.rows() * conv.groups * conv.outputs) as u64;
        let (grid, words) = (Grid::over(job.device, n, 1), conv.words());
        launch!(job, &kernel, grid; conv.x.address, conv.w.address, conv.y.address, words[..])
    }

    fn run_depthwise(
        &self,
        job: &Job<'_>,
        conv: &Convolution,
        blocks: &depthwise::Blocks,
    ) -> Result<()> {
        let variant = blocks.variant;
        let source = || depthwise::source(variant, self.common.dtype);
        let kernel = self.depthwise.get(&job.device.programs, variant, source)?;
        let grid = Grid::exactly(blocks.count, BLOCK)?.with_room(job, &kernel, blocks.shared)?;
        let (width, words) = (blocks.width, conv.words());
        launch!(job, &kernel, grid; conv.x.address, conv.w.address, conv.y.address, width, words[..])
    }
}

impl Work for Forward {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _entered = job.device.enter()?;
        if let Some(call) = self.common.network(job)? {
            return Ok(call.workspace());
        }
        let mut most = 0;
        for conv in self.common.phases(job)? {
            if Self::is_by_elements(&conv) {
                continue;
            }
            // If the library refuses, tiles compute it.
            let library = self.common.library_bytes(job, &conv);
            most = most.max(library).max(self.plan(job, &conv).bytes.iter().sum());
        }
        Ok(most)
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        if let Some(call) = self.common.network(job)? {
            return call.run(job);
        }
        let mut copy_input = true;
        for conv in self.common.phases(job)? {
            if Self::is_by_elements(&conv) {
                self.run_elements(job, &conv)?;
                continue;
            }
            if self.common.by_library(job, &conv)? {
                // The library may have overwritten the input's copy.
                copy_input = true;
                continue;
            }
            self.run_tiles(job, &conv, copy_input)?;
            copy_input = false;
        }
        Ok(())
    }
}
