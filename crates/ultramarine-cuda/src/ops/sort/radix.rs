//! Rows that are sorted by many blocks each, one digit at a time: `kernels/sort/radix.cuh`.

use super::{HEADERS, Rows, blocks, result};
use crate::launch::{BLOCK, Dtype, Grid, Job, launch};
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};

/// Number of elements that a block counts.
const SECTION: u64 = 1 << 15;
/// Bytes of the tickets and of the mask of passes, with padding.
const CONTROL: u64 = 256;
/// Number of values of a digit.
const DIGITS: u64 = 256;

/// The work of SORT and ARG_SORT for long rows: a radix sort by many blocks, one digit at a time.
pub struct Radix {
    dtype: Dtype,
    indexed: bool,
    /// By template, whether counts have 64 bits, and rank.
    kernels: Kernels<(&'static str, bool, usize)>,
}

/// Layout of the workspace, as offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Total size.
    pub bytes: u64,
    /// Bytes at the workspace's start that must be zeroed.
    zero: u64,
    tiles: u64,
    wide: bool,
    first: u64,
    status: u64,
    values: [u64; 2],
    indices: [u64; 2],
}

impl Radix {
    /// Nothing is compiled yet.
    pub fn new(dtype: Dtype, indexed: bool) -> Self {
        Self { dtype, indexed, kernels: Kernels::default() }
    }

    fn kernel(
        &self,
        job: &Job<'_>,
        key @ (template, wide, rank): (&'static str, bool, usize),
    ) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, key, || {
            let (d, indexed) = (self.dtype.tag(), self.indexed);
            let (c, items) = (if wide { "u64" } else { "u32" }, items(self.dtype));
            let result = result(self.dtype, indexed);
            let (arguments, parameters) = match template {
                "radix_count" => (
                    format!("{d}, {c}, {rank}"),
                    format!(
                        "const {d}::T *in, const Line line, const Parts p, const Walk<2, {rank}> w"
                    ),
                ),
                "radix_places" => {
                    (c.to_owned(), "i64 length, int passes, const Parts p".to_owned())
                }
                _ => (
                    format!("{d}, {c}, {indexed}, {items}, {rank}"),
                    format!(
                        "const {d}::T *in, {result} *out, const Line line, const Parts p, int pass, \
                         const Walk<2, {rank}> w"
                    ),
                ),
            };
            Source::instance(HEADERS, template, arguments, parameters).bounded(256)
        })
    }

    /// The workspace for rows.
    pub fn layout(&self, rows: &Rows) -> Layout {
        Layout::of(self.dtype, self.indexed, rows.across.len(), rows.length)
    }

    /// Sorts rows.
    pub fn run(&self, job: &Job<'_>, rows: &Rows) -> Result<()> {
        let l = self.layout(rows);
        let (base, count) = (job.scratch()?, rows.across.len());
        let (from, to) = (job.input(0)?.address, job.output(0)?.address);
        let parts: Vec<u64> = [count, l.tiles]
            .into_iter()
            .chain([0, l.first, l.status].map(|offset| base + offset))
            .chain(l.values.into_iter().chain(l.indices).map(|offset| base + offset))
            .collect();
        let words = usize::try_from(l.zero / 4).map_err(|_| Failure::invalid("too many rows"))?;
        // SAFETY: the workspace is at least this long.
        unsafe { job.fill(base, 0, 4, words) }?;
        let (wide, (rank, walk)) = (l.wide, rows.walk());
        let (line, passes) = (rows.line(), self.dtype.bytes() as i32);

        let kernel = self.kernel(job, ("radix_count", wide, rank))?;
        let grid = Grid::line(blocks(count * rows.length.div_ceil(SECTION)), BLOCK);
        launch!(job, &kernel, grid; from, line[..], parts[..], walk[..])?;
        let kernel = self.kernel(job, ("radix_places", wide, 1))?;
        let (length, grid) = (rows.length, Grid::line(blocks(count * passes as u64), BLOCK));
        launch!(job, &kernel, grid; length, passes, parts[..])?;
        let kernel = self.kernel(job, ("radix_pass", wide, rank))?;
        let grid = Grid::exactly(count * l.tiles, BLOCK)?;
        for pass in 0..passes {
            launch!(job, &kernel, grid; from, to, line[..], parts[..], pass, walk[..])?;
        }
        Ok(())
    }
}

/// Elements of a tile per thread.
fn items(dtype: Dtype) -> u64 {
    if dtype.bytes() == 8 { 12 } else { 16 }
}

impl Layout {
    fn of(dtype: Dtype, indexed: bool, rows: u64, length: u64) -> Self {
        let passes = dtype.bytes();
        let tiles = length.div_ceil(items(dtype) * u64::from(BLOCK));
        // Two bits of each count are used as flags.
        let wide = length >= 1 << 30;
        let count = if wide { 8 } else { 4 };
        let mut end = CONTROL;
        let mut take = |bytes: u64| {
            let at = end;
            end += bytes.next_multiple_of(256);
            at
        };
        let first = take(passes * rows * DIGITS * count);
        let status = take(passes * rows * tiles * DIGITS * count);
        let zero = status + (passes * rows * tiles * DIGITS * count).next_multiple_of(256);
        // One pass sorts from the input to the output; two passes need one intermediate buffer.
        let mut room =
            |k: u64, bytes: u64| if passes > k + 1 { take(rows * length * bytes) } else { 0 };
        let values = [room(0, dtype.bytes()), room(1, dtype.bytes())];
        let indices = if indexed { [room(0, 4), room(1, 4)] } else { [0; 2] };
        Self { bytes: end, zero, tiles, wide, first, status, values, indices }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_workspace_are_apart() {
        for (dtype, indexed, rows, length) in [
            (Dtype::Uint8, true, 3, 5000),
            (Dtype::Float16, true, 1, 70_001),
            (Dtype::Float32, false, 7, 4097),
            (Dtype::Complex64, true, 2, (1 << 30) + 5),
        ] {
            let l = Layout::of(dtype, indexed, rows, length);
            let (passes, count) = (dtype.bytes(), if l.wide { 8 } else { 4 });
            let table = passes * rows * DIGITS * count;
            let mut parts = vec![(0, CONTROL), (l.first, table), (l.status, table * l.tiles)];
            let places = (passes - 1).min(2) as usize;
            parts.extend(l.values[..places].iter().map(|at| (*at, rows * length * dtype.bytes())));
            let of_indices = if indexed { places } else { 0 };
            parts.extend(l.indices[..of_indices].iter().map(|at| (*at, rows * length * 4)));
            parts.sort_unstable();
            for pair in parts.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{dtype:?}: {pair:?}");
            }
            assert!(parts.iter().all(|(at, bytes)| at % 256 == 0 && at + bytes <= l.bytes));
            assert!(l.status + table * l.tiles <= l.zero && l.zero <= l.bytes);
            assert_eq!(l.wide, length >= 1 << 30);
        }
    }
}
