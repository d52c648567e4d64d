//! Products of few rows with matrices of few bits whose rows are columns of the factor: `quantized/rows.cuh` and
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

/// Rows of a product on tensor cores, and most of them.
const TILE: i64 = 8;
const MOST_ROWS: i64 = 16;
/// Most rows of one by multiply-adds.
const MOST_DOTS: i64 = 8;
/// Warps of a block.
const WARPS: i64 = 8;
const THREADS: u32 = 256;
/// Columns of a warp on tensor cores where sums are scaled, and of the others.
const COLUMNS: [i64; 2] = [16, 32];
/// Numbers of a lane, and of a warp's step along the depth, there.
const RUN: i64 = 32;
const STEP: i64 = 128;
/// Steps of a warp that are on their way at once.
const AHEAD: i64 = 2;
/// Bytes of x and scales that are there at a time, and of results.
const MOST_BYTES: i64 = 40 << 10;
const RESULT_BYTES: i64 = 17 << 10;
/// Most products of the same rows in one launch.
const MOST_TOGETHER: usize = 3;
/// Warps of a processor that keep memory busy.
const BUSY: i64 = 20;

/// The kernels for few rows and one format of the second factor, which read each matrix once.
pub struct Few {
    dtype: Dtype,
    format: Format,
    on_cores: bool,
    /// Properties of the device, for products that are shared out among all its processors.
    limits: Option<Limits>,
    kernels: Kernels<(Arrangement, Variant)>,
}

/// How sums are made.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    /// On tensor cores: tiles of rows, and parts of the depth. `late`: sums are scaled, not numbers.
    Rows { tiles: i64, split: i64, late: bool },
    /// The same in one block a processor: parts of the depth that share a product.
    Stream { slots: i64 },
    /// The same for several matrices at once.
    Streams { slots: i64 },
    /// By multiply-adds, of so many rows.
    Dots(i64),
}

impl Few {
    pub fn new(device: &Device, dtype: Dtype, format: Format) -> Self {
        let on_cores = dtype.is_half() && device.properties.major >= 8;
        let streams = on_cores && device.properties.major >= 9;
        let limits = streams.then(|| Limits::of(device));
        Self { dtype, format, on_cores, limits, kernels: Kernels::default() }
    }

    /// False: rows are too many.
    pub fn run(&self, job: &Job<'_>, call: &Call<'_>) -> Result<bool> {
        let [items, rows, columns, depth] = call.sizes()?;
        let (how, rows, items) = match call.is_shared() {
            true => (Arrangement::Together, items * rows, 1),
            false => (Arrangement::Apart, rows, items),
        };
        // Where many items meet each matrix, tiles read it once for all of them.
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

    /// By `quantized/stream.cuh`.
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

    /// The arrangement of one block a processor for products of the same rows, if that is how they run, and the number of
    /// blocks of each.
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

    /// The kind of a product that may run in one launch with others of the same rows.
    pub fn kind(&self, call: &Call<'_>) -> Option<Kind> {
        self.streams(std::slice::from_ref(call)).ok()??;
        Some(Kind { most: MOST_TOGETHER, number: call.x.address })
    }

    /// Enqueues products of the same rows as one launch. False: they run one by one.
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

    /// Operands lie as `quantized/rows.cuh` reads them, and 31 bits reach all of a matrix.
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

    /// As many parts of the depth as keep all processors busy.
    fn variant(&self, device: &Device, call: &Call<'_>, rows: i64, items: i64) -> Variant {
        let (columns, depth) = (call.out.shape[2], call.x.shape[2]);
        // A lane's 32 numbers have a group of their own, or share it with others of the four lanes of a column.
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

    /// A chunk of the depth, and bytes of shared memory for it and for words on their way: scales and so many rows of x,
    /// with their sums.
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

/// Returns true if the matrix's words may be asked for before the kernel that makes x has ended.
fn is_early(job: &Job<'_>, call: &Call<'_>) -> bool {
    let parts = [Some(call.factor), call.scales, call.biases];
    call.rhs.is_none() && parts.into_iter().flatten().all(|part| job.is_there_early(part))
}

/// Columns of a warp on tensor cores.
fn columns_of(late: bool) -> i64 {
    if late { COLUMNS[0] } else { COLUMNS[1] }
}
