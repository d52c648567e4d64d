//! Products of few rows with quantized matrices whose rows are the factor's columns: `quantized/rows.cuh` and
//! `quantized/stream.cuh` on tensor cores, and `quantized/dots.cuh`.

use super::cores::{is_small, lies_along};
use super::stream::{self, Limits, Stream};
use super::{Arrangement, Call};
use crate::launch::{Device, Dtype, Grid, Job, Kind, launch};
use crate::ops::headers;
use crate::ops::quantized::Format;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::Result;

const ROWS: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../../kernels/quantized/unpack.cuh"),
    include_str!("../../../../kernels/grouped/rows.cuh"),
    include_str!("../../../../kernels/quantized/rows.cuh"),
];
const STREAM: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../../kernels/quantized/unpack.cuh"),
    include_str!("../../../../kernels/grouped/rows.cuh"),
    include_str!("../../../../kernels/quantized/rows.cuh"),
    include_str!("../../../../kernels/quantized/stream.cuh"),
];
const DOTS: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../../kernels/quantized/unpack.cuh"),
    include_str!("../../../../kernels/grouped/rows.cuh"),
    include_str!("../../../../kernels/quantized/dots.cuh"),
];

/// Rows of a tile on tensor cores, and the maximum number of rows of a product there.
const TILE: i64 = 8;
const MOST_ROWS: i64 = 16;
/// Maximum number of rows of a product by multiply-adds.
const MOST_DOTS: i64 = 8;
/// Warps of a block.
const WARPS: i64 = 8;
const THREADS: u32 = 256;
/// Columns per warp on tensor cores: if sums are scaled, and otherwise.
const COLUMNS: [i64; 2] = [16, 32];
/// Numbers of a lane, and of a warp's step along the depth, on tensor cores.
const RUN: i64 = 32;
const STEP: i64 = 128;
/// Steps of a warp that are in flight at once.
const AHEAD: i64 = 2;
/// Bytes of x and scales that are loaded at a time, and bytes of results.
const MOST_BYTES: i64 = 40 << 10;
const RESULT_BYTES: i64 = 17 << 10;
/// Maximum number of products with the same rows in one launch.
const MOST_TOGETHER: usize = 3;
/// Warps per multiprocessor that keep memory busy.
const BUSY: i64 = 20;

/// The kernels for few rows and one format of the second factor. They read each matrix once.
pub struct Few {
    dtype: Dtype,
    format: Format,
    on_cores: bool,
    /// Properties of the device, for products that are divided among all its multiprocessors.
    limits: Option<Limits>,
    kernels: Kernels<(Arrangement, Variant)>,
}

/// How sums are computed.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    /// On tensor cores, in tiles of rows and parts of the depth. If `late`, sums are scaled instead
    /// of numbers.
    Rows { tiles: i64, split: i64, late: bool },
    /// Likewise, in one block per multiprocessor, with parts of the depth that share a product.
    Stream { slots: i64 },
    /// Likewise, for several matrices at once.
    Streams { slots: i64 },
    /// By multiply-adds, for this number of rows.
    Dots(i64),
}

impl Few {
    pub fn new(device: &Device, dtype: Dtype, format: Format) -> Self {
        let on_cores = dtype.is_half() && device.properties.major >= 8;
        let streams = on_cores && device.properties.major >= 9;
        let limits = streams.then(|| Limits::of(device));
        Self { dtype, format, on_cores, limits, kernels: Kernels::default() }
    }

    /// Returns false if there are too many rows.
    pub fn run(&self, job: &Job<'_>, call: &Call<'_>) -> Result<bool> {
        let [items, rows, columns, depth] = call.sizes()?;
        let (how, rows, items) = match call.is_shared() {
            true => (Arrangement::Together, items * rows, 1),
            false => (Arrangement::Apart, rows, items),
        };
        // If many items use each matrix, tiles read it once for all of them.
        if how == Arrangement::Apart
            && call.rhs.is_some()
            && items * rows > 2 * call.factor.shape[0]
        {
            return Ok(false);
        }
        let in_runs = self.on_cores && rows <= MOST_ROWS && self.lies_in_runs(call);
        let sizes = [items, rows, columns, depth];
        if let Some(limits) = self.limits.filter(|_| in_runs)
            && let Some(stream) = Stream::of(limits, self.format, how, sizes)
        {
            let blocks = items * ((columns + stream.each - 1) / stream.each);
            return self.stream(job, call, (how, stream), blocks);
        }
        let variant = match in_runs {
            true => self.variant(job.device, call, rows, items),
            false if rows <= MOST_DOTS => Variant::Dots((rows as u64).next_power_of_two() as i64),
            false => return Ok(false),
        };
        let each = match variant {
            Variant::Rows { split, late, .. } => WARPS / split * columns_of(late),
            Variant::Stream { .. } | Variant::Streams { .. } | Variant::Dots(_) => WARPS,
        };
        let kernel = self.kernel(job, how, variant)?;
        let grid = Grid::exactly((items * ((columns + each - 1) / each)) as u64, THREADS)?;
        let words = call.words(0);
        let Variant::Rows { split, late, .. } = variant else {
            return launch!(job, &kernel, grid; words[..]).map(|()| true);
        };
        let (chunk, bytes) = self.chunk(job.device, call, if late { rows } else { 0 }, split);
        let (chunk, grid) = (chunk as i32, grid.with_room(job, &kernel, bytes as u32)?);
        launch!(job, &kernel, grid; words[..], chunk).map(|()| true)
    }

    /// Runs the product with `quantized/stream.cuh`.
    fn stream(
        &self,
        job: &Job<'_>,
        call: &Call<'_>,
        (how, stream): (Arrangement, Stream),
        blocks: i64,
    ) -> Result<bool> {
        let kernel = self.kernel(job, how, Variant::Stream { slots: stream.slots })?;
        let grid = Grid::exactly(blocks as u64, stream::THREADS)?;
        let grid = grid.with_room(job, &kernel, stream.bytes as u32)?;
        let grid = Grid { early: is_early(job, call), ..grid };
        let (words, each) = (call.words(0), stream.each as i32);
        launch!(job, &kernel, grid; words[..], each).map(|()| true)
    }

    /// The arrangement with one block per multiprocessor for products of the same rows, and the number of blocks of each
    /// product. `None` if the products do not run in this way.
    fn streams(&self, calls: &[Call<'_>]) -> Result<Option<(Stream, Vec<i64>)>> {
        let Some(limits) = self.limits.filter(|_| self.on_cores) else { return Ok(None) };
        let (mut all, mut widths) = ([1, 0, 0, 0], Vec::with_capacity(calls.len()));
        for (i, call) in calls.iter().enumerate() {
            let [items, rows, columns, depth] = call.sizes()?;
            let own = [1, items * rows, all[2] + columns, depth];
            let x =
                |call: &Call<'_>| (call.x.address, call.x.shape.to_vec(), call.x.strides.to_vec());
            let alike = i == 0 || x(call) == x(&calls[0]);
            if !alike || call.rhs.is_some() || !call.is_shared() || !self.lies_in_runs(call) {
                return Ok(None);
            }
            all = own;
            widths.push(columns);
        }
        let stream = Stream::of(limits, self.format, Arrangement::Together, all);
        let blocks = |stream: Stream| {
            widths.iter().map(|columns| (columns + stream.each - 1) / stream.each).collect()
        };
        Ok(stream.map(|stream| (stream, blocks(stream))))
    }

    /// The kind of a product that may run in one launch with others that have the same rows.
    pub fn kind(&self, call: &Call<'_>) -> Option<Kind> {
        self.streams(std::slice::from_ref(call)).ok()??;
        Some(Kind { most: MOST_TOGETHER, number: call.x.address })
    }

    /// Enqueues products of the same rows as one launch. Returns false if they have to run one by
    /// one.
    pub fn run_together(&self, jobs: &[Job<'_>], calls: &[Call<'_>]) -> Result<bool> {
        let (Some(job), [a, b, rest @ ..]) = (jobs.first(), calls) else { return Ok(false) };
        let Some((stream, blocks)) = self.streams(calls)? else { return Ok(false) };
        let c = rest.first().unwrap_or(b);
        let slots = stream.slots;
        let kernel = self.kernel(job, Arrangement::Together, Variant::Streams { slots })?;
        let grid = Grid::exactly(blocks.iter().sum::<i64>() as u64, stream::THREADS)?;
        let grid = grid.with_room(job, &kernel, stream.bytes as u32)?;
        let early = jobs.iter().zip(calls).all(|(job, call)| is_early(job, call));
        let (second, third) = (blocks[0] as i32, (blocks[0] + blocks[1]) as i32);
        let [a, b, c] = [a, b, c].map(|call| call.words(0));
        let each = stream.each as i32;
        let grid = Grid { early, ..grid };
        launch!(job, &kernel, grid; a[..], b[..], c[..], second, third, each).map(|()| true)
    }

    /// True if the operands have the layout that `quantized/rows.cuh` reads, and 31 bits are enough
    /// for offsets in a matrix.
    fn lies_in_runs(&self, call: &Call<'_>) -> bool {
        let piece = match self.format.bits {
            4 | 8 => 16,
            2 | 6 => 8,
            _ => 4,
        };
        call.x.shape[2] % RUN == 0
            && lies_along(call.x, 2, 16)
            && lies_along(call.factor, 2, piece)
            && [Some(call.factor), call.scales, call.biases]
                .into_iter()
                .flatten()
                .all(|view| is_small(view, 1))
    }

    /// Chooses as many parts of the depth as keep all multiprocessors busy.
    fn variant(&self, device: &Device, call: &Call<'_>, rows: i64, items: i64) -> Variant {
        let (columns, depth) = (call.out.shape[2], call.x.shape[2]);
        // The 32 numbers of a lane have their own group, or share it with other lanes among the four of a
        // column.
        let slots = (STEP / i64::from(self.format.group)).clamp(1, 4);
        let late = rows * slots <= TILE;
        let warps = items * ((columns + columns_of(late) - 1) / columns_of(late));
        let tiles = (rows + TILE - 1) / TILE;
        let wanted = BUSY * i64::from(device.properties.multiprocessors) / tiles;
        let least = if late { 2 } else { 4 };
        let enough =
            |split: &i64| *split >= least && warps * split >= wanted || split * 2 * STEP > depth;
        let split = [1, 2, 4].into_iter().find(enough).unwrap_or(8);
        Variant::Rows { tiles, split, late }
    }

    /// The size of a chunk of the depth, and the shared memory in bytes for a chunk and for words in flight. A chunk
    /// consists of scales and `rows` rows of x with their sums.
    fn chunk(&self, device: &Device, call: &Call<'_>, rows: i64, split: i64) -> (i64, i64) {
        let group = i64::from(self.format.group);
        let (each, tensors) = if self.format.is_affine() { (2, 2) } else { (1, 1) };
        let columns = WARPS / split * columns_of(rows > 0);
        let late = rows > 0;
        let bits = i64::from(self.format.bits);
        let ring = AHEAD * WARPS * columns_of(late) * STEP * bits / 8;
        let sums = if self.format.is_affine() { 4 } else { 0 };
        let bytes = |chunk: i64| {
            let x = rows * (2 * chunk + 64 + chunk / group * sums);
            ring + 2 * STEP + x + (chunk / group * each + 31) / 16 * 16 * tensors * columns
        };
        let least = split * STEP;
        let whole = (call.x.shape[2] + least - 1) / least * least;
        let most = i64::from(device.properties.shared_optin) - RESULT_BYTES;
        let room = (ring + MOST_BYTES).min(most);
        let fits = |steps: &i64| bytes(steps * least) <= room;
        let chunk = (1..=whole / least).rev().find(fits).unwrap_or(1) * least;
        (chunk, bytes(chunk))
    }

    fn kernel(&self, job: &Job<'_>, how: Arrangement, variant: Variant) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, (how, variant), || {
            let common = format!("{}, {}, {}", self.format.tag(), self.dtype.tag(), how.tag());
            let parameters = "const Grouped s";
            match variant {
                Variant::Rows { tiles, split, late } => {
                    let arguments = format!("{common}, {tiles}, {split}, {late}");
                    let resident = if late || tiles == 1 && self.format.bits < 8 { 3 } else { 2 };
                    let parameters = format!("{parameters}, i32 chunk");
                    Source::instance(ROWS, "quantized_rows", arguments, parameters)
                        .bounded(format!("{THREADS}, {resident}"))
                }
                Variant::Stream { slots } => {
                    let arguments = format!("{common}, {}, {slots}", stream::AHEAD);
                    let parameters = format!("{parameters}, i32 each");
                    let body = format!("quantized_stream<{arguments}>(s, each, (i32)blockIdx.x);");
                    Source::with_body(STREAM, "quantized_stream", arguments, parameters, body)
                        .waiting_itself()
                        .bounded(format!("{}, 1", stream::THREADS))
                }
                Variant::Streams { slots } => {
                    let (format, d) = (self.format.tag(), self.dtype.tag());
                    let arguments = format!("{format}, {d}, {}, {slots}", stream::AHEAD);
                    let parameters = "const Grouped a, const Grouped b, const Grouped c, i32 second, i32 third, i32 each";
                    Source::instance(STREAM, "quantized_streams", arguments, parameters)
                        .waiting_itself()
                        .bounded(format!("{}, 1", stream::THREADS))
                }
                Variant::Dots(rows) => {
                    let arguments = format!("{common}, {rows}");
                    Source::instance(DOTS, "quantized_dots", arguments, parameters).bounded(THREADS)
                }
            }
        })
    }
}

/// Returns true if the matrix's words may be loaded before the kernel that computes x has ended.
fn is_early(job: &Job<'_>, call: &Call<'_>) -> bool {
    let parts = [Some(call.factor), call.scales, call.biases];
    call.rhs.is_none() && parts.into_iter().flatten().all(|part| job.is_there_early(part))
}

/// Columns per warp on tensor cores.
fn columns_of(late: bool) -> i64 {
    if late { COLUMNS[0] } else { COLUMNS[1] }
}
