//! PARTITION of rows that are too long for a block to sort: a radix partition,
//! `kernels/sort/partition.cuh`.
//!
//! It reads a row once for each 11-bit digit that is needed to tell elements apart. From the third
//! digit on, it usually reads only a small part of the row. It then reads the row once more to
//! divide it, and writes it once. For float32, this moves about four times the row's bytes. A sort
//! with 8-bit digits moves nine times the row's bytes, or seventeen times for indices.

use super::keys::WorkspaceLayout;
use super::{Rows, blocks, result};
use crate::launch::{Device, Dtype, Grid, Job, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/sort/sort.cuh"),
    include_str!("../../../kernels/sort/partition.cuh"),
];

/// Threads of a block: `PARTITION_THREADS`.
const THREADS: u32 = 512;
/// Maximum length of rows that always have a single block: it takes no longer than the launches
/// that several blocks need.
const SHORT: u64 = 1 << 15;
/// Maximum length of rows that have a single block if there are enough rows for all
/// multiprocessors.
const MEDIUM: u64 = 1 << 18;
/// Minimum number of a row's elements per block, if several blocks share the row.
const CHUNK: u64 = 1 << 13;
/// Bytes of `Target` and `Share`.
const TARGET: u64 = 40;
const SHARE: u64 = 24;

/// How rows are divided among blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    /// One block per row.
    Row,
    /// This number of blocks per row.
    Shared(u64),
}

/// The work of PARTITION and ARG_PARTITION for long rows; the module's documentation describes the
/// algorithm.
pub struct Partition {
    dtype: Dtype,
    indexed: bool,
    /// By template and rank.
    kernels: Kernels<(&'static str, usize)>,
}

/// Layout of the workspace of [`Strategy::Shared`], as offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    bytes: u64,
    chunks: u64,
    chunk: u64,
    /// Bytes of the counts, which come first and must be zeroed.
    zero: u64,
    targets: u64,
    shares: u64,
    own: u64,
    lists: u64,
}

/// Number of values of a digit, and of passes.
const fn digits(dtype: Dtype) -> (u64, u64) {
    let bits = 8 * dtype.bytes();
    let digit = if bits < 11 { bits } else { 11 };
    (1 << digit, bits.div_ceil(digit))
}

impl Strategy {
    fn of(rows: u64, length: u64, multiprocessors: u64) -> Self {
        // Blocks that run at once: at least two on each multiprocessor.
        let full = 2 * multiprocessors;
        if length <= SHORT || (rows >= full && length <= MEDIUM) || rows >= 8 * full {
            return Self::Row;
        }
        Self::Shared(full.div_ceil(rows).clamp(1, length.div_ceil(CHUNK)))
    }
}

impl Partition {
    /// Nothing is compiled yet.
    pub fn new(dtype: Dtype, indexed: bool) -> Self {
        Self { dtype, indexed, kernels: Kernels::default() }
    }

    fn kernel(&self, job: &Job<'_>, template: &'static str, axes: usize) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, (template, axes), || {
            let (d, indexed) = (self.dtype.tag(), self.indexed);
            let result = result(self.dtype, indexed);
            let (from, to) = (format!("const {d}::T *in"), format!("{result} *out"));
            let (line, walk) = ("const Line line", format!("const Walk<2, {axes}> w"));
            let parts = "const PartitionParts p, u64 rank";
            let (arguments, parameters) = match template {
                "partition_row" => {
                    (format!("{d}, {indexed}"), format!("{from}, {to}, {line}, u64 rank, {walk}"))
                }
                "partition_count" => {
                    (d.to_owned(), format!("{from}, {line}, {parts}, int pass, {walk}"))
                }
                _ => (format!("{d}, {indexed}"), format!("{from}, {to}, {line}, {parts}, {walk}")),
            };
            let arguments = format!("{arguments}, {axes}");
            Source::instance(HEADERS, template, arguments, parameters)
                .bounded(format!("{THREADS}, 2"))
        })
    }

    fn strategy(&self, device: &Device, rows: &Rows) -> Strategy {
        let multiprocessors = u64::from(device.properties.multiprocessors);
        Strategy::of(rows.across.len(), rows.length, multiprocessors)
    }

    /// Bytes of the workspace for rows.
    pub fn workspace(&self, device: &Device, rows: &Rows) -> u64 {
        match self.strategy(device, rows) {
            Strategy::Shared(chunks) => self.layout(rows, chunks).bytes,
            _ => 0,
        }
    }

    fn layout(&self, rows: &Rows, chunks: u64) -> Layout {
        Layout::of(self.dtype, rows.across.len(), rows.length, chunks)
    }

    /// Partitions rows by a rank.
    pub fn run(&self, job: &Job<'_>, rows: &Rows, rank: u64) -> Result<()> {
        let (from, to) = (job.input(0)?.address, job.output(0)?.address);
        let ((axes, walk), line, count) = (rows.walk(), rows.line(), rows.across.len());
        if let Strategy::Shared(chunks) = self.strategy(job.device, rows) {
            return self.share(job, rows, rank, chunks);
        }
        let kernel = self.kernel(job, "partition_row", axes)?;
        let grid = Grid::line(blocks(count), THREADS);
        launch!(job, &kernel, grid; from, to, line[..], rank, walk[..])
    }

    fn share(&self, job: &Job<'_>, rows: &Rows, rank: u64, chunks: u64) -> Result<()> {
        let l = self.layout(rows, chunks);
        let (base, count) = (job.scratch()?, rows.across.len());
        let (from, to) = (job.input(0)?.address, job.output(0)?.address);
        let ((axes, walk), line) = (rows.walk(), rows.line());
        let places = [0, l.targets, l.shares, l.own, l.lists].map(|offset| base + offset);
        let parts: Vec<u64> = [count, l.chunks, l.chunk].into_iter().chain(places).collect();
        let words = usize::try_from(l.zero / 4).map_err(|_| Failure::invalid("too many rows"))?;
        // SAFETY: the workspace is at least this long.
        unsafe { job.fill(base, 0, 4, words) }?;
        let grid = Grid::exactly(count * l.chunks, THREADS)?;
        let kernel = self.kernel(job, "partition_count", axes)?;
        let passes = digits(self.dtype).1 as i32;
        for pass in 0..=passes {
            launch!(job, &kernel, grid; from, line[..], parts[..], rank, pass, walk[..])?;
        }
        let kernel = self.kernel(job, "partition_divide", axes)?;
        launch!(job, &kernel, grid; from, to, line[..], parts[..], rank, walk[..])
    }
}

impl Layout {
    fn of(dtype: Dtype, rows: u64, length: u64, chunks: u64) -> Self {
        let (values, passes) = digits(dtype);
        // A multiple of the elements in 16 bytes, so that each chunk is aligned like its row.
        let chunk = length.div_ceil(chunks).next_multiple_of(64);
        let chunks = length.div_ceil(chunk);
        let shares = rows * chunks;
        let mut workspace = WorkspaceLayout::default();
        let zero = passes * rows * (values + 2) * 8;
        workspace.take(zero);
        let targets = workspace.take(passes * rows * TARGET);
        let places = [SHARE, values * 4, chunk / 4 * dtype.bytes()];
        // The second pass is the first to write a list, which only a third pass reads.
        let lists = u64::from(passes > 2);
        let [shares, own, lists] =
            [shares * places[0], shares * places[1], lists * shares * places[2]]
                .map(|bytes| workspace.take(bytes));
        Self { bytes: workspace.bytes, chunks, chunk, zero, targets, shares, own, lists }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_rows() {
        let of = |rows, length| Strategy::of(rows, length, 100);
        assert_eq!(of(4096, 16384), Strategy::Row);
        assert_eq!(of(1, 32768), Strategy::Row);
        assert_eq!(of(1, 32769), Strategy::Shared(5));
        assert_eq!(of(1, 1 << 24), Strategy::Shared(200));
        assert_eq!(of(8, 1 << 24), Strategy::Shared(25));
        assert_eq!(of(199, 100_000), Strategy::Shared(2));
        assert_eq!(of(200, 100_000), Strategy::Row);
        assert_eq!(of(200, 1 << 20), Strategy::Shared(1));
        assert_eq!(of(1600, 1 << 20), Strategy::Row);
    }

    #[test]
    fn digits_cover_the_key() {
        assert_eq!(digits(Dtype::Bool), (256, 1));
        assert_eq!(digits(Dtype::Bfloat16), (2048, 2));
        assert_eq!(digits(Dtype::Float32), (2048, 3));
        assert_eq!(digits(Dtype::Complex64), (2048, 6));
    }

    #[test]
    fn parts_of_the_workspace_are_apart_and_chunks_cover_the_row() {
        for (dtype, rows, length, chunks) in [
            (Dtype::Int8, 3, 40_000, 5),
            (Dtype::Float16, 1, 70_001, 7),
            (Dtype::Float32, 7, (1 << 31) + 12_345, 38),
            (Dtype::Float64, 1, 1 << 24, 264),
        ] {
            let l = Layout::of(dtype, rows, length, chunks);
            let (values, passes) = digits(dtype);
            assert!(l.chunks <= chunks && l.chunk.is_multiple_of(64));
            assert!((l.chunks - 1) * l.chunk < length && length <= l.chunks * l.chunk);
            let blocks = rows * l.chunks;
            let list = if passes > 2 { l.chunk / 4 * dtype.bytes() } else { 0 };
            let parts = [
                (0, passes * rows * (values + 2) * 8),
                (l.targets, passes * rows * TARGET),
                (l.shares, blocks * SHARE),
                (l.own, blocks * values * 4),
                (l.lists, blocks * list),
            ];
            assert_eq!(l.zero, parts[0].1);
            for pair in parts.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{dtype:?}: {pair:?}");
            }
            let (at, bytes) = parts[4];
            assert!(at + bytes <= l.bytes && parts.iter().all(|(at, _)| at.is_multiple_of(256)));
        }
    }
}
