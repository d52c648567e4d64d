//! The layout of a scan's work: by rows or lanes, whole or in chunks.

use crate::launch::{Axes, BLOCK, Dtype, Job, View};
use ultramarine_abi::helper::{Failure, Result};

/// The threads that process a row together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A warp, with one pack per lane; the row is no longer than that.
    Pack,
    /// A warp, tile by tile along the row.
    Warp,
    /// A block.
    Block,
}

impl Group {
    /// True for a warp.
    pub fn is_warp(self) -> bool {
        self != Self::Block
    }
}

/// How elements are walked: each lane by one thread, or each row by many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// One thread per lane; adjacent threads have adjacent lanes.
    Lanes,
    /// Many threads per row.
    Rows {
        /// True for 16 bytes at a time.
        packed: bool,
        /// The threads of a row.
        group: Group,
    },
}

impl Strategy {
    /// Elements that a lane of a warp loads at once.
    pub fn pack(self, dtype: Dtype) -> u64 {
        match self {
            Self::Rows { packed: true, .. } => 16 / dtype.bytes(),
            _ => 1,
        }
    }

    /// Packs per lane; the kernel of totals has as many as a block.
    pub fn packs(self, dtype: Dtype) -> u64 {
        match (self, self.pack(dtype)) {
            (Self::Rows { group: Group::Pack, .. }, _) => 1,
            (_, 1) => 8,
            (_, 2 | 4) => 4,
            (_, 8) => 2,
            _ => 1,
        }
    }

    /// Elements of a block's tile.
    pub fn tile(self, dtype: Dtype) -> u64 {
        u64::from(BLOCK) * self.pack(dtype) * self.packs(dtype)
    }
}

/// Maximum length of rows that may be scanned by one thread each.
const SHORT: u64 = 16;
/// Number of lanes that a warp needs.
const LANES: u64 = 32;
/// Minimum number of elements in a lane's chunk.
const CHUNK: u64 = 64;
/// Maximum size of a running value in bytes.
const RUNNING: u64 = 8;

/// The work of a scan, which depends on the shape and strides of a command.
pub struct Layout {
    /// How elements are walked.
    pub strategy: Strategy,
    /// The axes other than the scanned one, with the strides of input and output.
    pub rows: Axes<2>,
    /// Address of the first input element of the first row, in the direction of the scan.
    pub from: u64,
    /// Likewise for the output.
    pub to: u64,
    /// Number of chunks of each row.
    pub chunks: u64,
    length: u64,
    chunk: u64,
    steps: [i64; 2],
}

impl Layout {
    /// The work of a command.
    pub fn of(job: &Job<'_>, axis: usize, reverse: bool) -> Result<Self> {
        let properties = &job.device.properties;
        let device = (u64::from(properties.multiprocessors), properties.parallelism());
        Self::new(job.input(0)?, job.output(0)?, axis, reverse, device)
    }

    /// `device`: the numbers of multiprocessors, and of threads that run at once.
    fn new(
        input: &View<'_>,
        output: &View<'_>,
        axis: usize,
        reverse: bool,
        (processors, threads): (u64, u64),
    ) -> Result<Self> {
        if input.shape != output.shape || axis >= input.shape.len() {
            return Err(Failure::invalid(format!(
                "a scan along axis {axis} of {:?} to {:?}: both have one shape",
                input.shape, output.shape
            )));
        }
        let across = |all: &[i64]| -> Vec<i64> {
            all.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, n)| *n).collect()
        };
        let (shape, size) = (across(input.shape), input.dtype.bytes());
        let rows = Axes::join(&shape, [&across(input.strides), &across(output.strides)]);
        let length = input.shape[axis] as u64;
        let mut steps = [input.strides[axis], output.strides[axis]];
        let (mut from, mut to) = (input.address, output.address);
        let one_by_one = steps == [1, 1];
        let in_packs = |k: usize, address: u64| {
            let strides = rows.stride[k][..rows.count].iter();
            let ends = if reverse { length } else { 0 };
            [address, ends * size]
                .into_iter()
                .chain(strides.map(|s| s.unsigned_abs() * size))
                .all(|bytes| bytes.is_multiple_of(16))
        };
        let packed = one_by_one && in_packs(0, from) && in_packs(1, to);
        if reverse {
            let back = |step: i64| (length as i64 - 1).wrapping_mul(step).wrapping_mul(size as i64);
            (from, to) =
                (from.wrapping_add_signed(back(steps[0])), to.wrapping_add_signed(back(steps[1])));
            steps = steps.map(i64::wrapping_neg);
        }
        let strategy = strategy(&rows, length, steps, packed, input.dtype);
        let (chunk, chunks) = match strategy {
            Strategy::Lanes => parts(length, CHUNK, threads, rows.len()),
            Strategy::Rows { group: Group::Block, .. } if rows.len() < 2 * processors => {
                parts(length, strategy.tile(input.dtype), 8 * processors, rows.len())
            }
            Strategy::Rows { .. } => (length, 1),
        };
        Ok(Self { strategy, rows, from, to, chunks, length, chunk, steps })
    }

    /// Bytes of workspace for the carries of the chunks.
    pub fn workspace(&self) -> u64 {
        if self.chunks > 1 { self.rows.len() * self.chunks * RUNNING } else { 0 }
    }

    /// Number of blocks that do all the work at once.
    pub fn blocks(&self) -> u64 {
        let tasks = self.rows.len() * self.chunks;
        match self.strategy {
            Strategy::Lanes => tasks.div_ceil(u64::from(BLOCK)),
            Strategy::Rows { group, .. } if group.is_warp() => {
                tasks.div_ceil(u64::from(BLOCK) / 32)
            }
            Strategy::Rows { .. } => tasks,
        }
    }

    /// The kernels' `Line`.
    pub fn line(&self) -> [u64; 5] {
        [self.length, self.chunk, self.chunks, self.steps[0] as u64, self.steps[1] as u64]
    }

    /// `Line` and `Walk<2, 1>` for the scan of the chunks' totals.
    pub fn carry(&self) -> ([u64; 5], Vec<u64>) {
        let shape = [self.rows.len() as i64];
        let stride = [self.chunks as i64];
        let walk = Axes::join(&shape, [&stride, &stride]).parameter_in(1);
        ([self.chunks, self.chunks, 1, 1, 1], walk)
    }
}

fn strategy(rows: &Axes<2>, length: u64, steps: [i64; 2], packed: bool, dtype: Dtype) -> Strategy {
    let across = |k: usize| match rows.count {
        0 => i64::MAX as u64,
        count => rows.stride[k][count - 1].unsigned_abs(),
    };
    // Adjacent lanes are nearer in memory than the elements of a lane: in the output or, on a tie,
    // in the input.
    let lanes_together = match across(1).cmp(&steps[1].unsigned_abs()) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => across(0) < steps[0].unsigned_abs(),
        std::cmp::Ordering::Greater => false,
    };
    if rows.len() >= LANES && (length <= SHORT || lanes_together) {
        return Strategy::Lanes;
    }
    let group = |group| Strategy::Rows { packed, group };
    if length <= 32 * group(Group::Pack).pack(dtype) {
        return group(Group::Pack);
    }
    match length {
        ..=256 => group(Group::Warp),
        ..=1024 if rows.len() >= 64 => group(Group::Warp),
        _ => group(Group::Block),
    }
}

/// Divides rows into chunks of whole units, about `wanted` for all rows, with at least 2 units
/// each. Returns the elements of a chunk and the chunks of a row.
fn parts(length: u64, unit: u64, wanted: u64, rows: u64) -> (u64, u64) {
    let most = (length / (2 * unit)).max(1);
    let chunks = (wanted / rows.max(1)).clamp(1, most);
    if chunks == 1 {
        return (length, 1);
    }
    let chunk = length.div_ceil(chunks).next_multiple_of(unit);
    (chunk, length.div_ceil(chunk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::row_major;

    fn layout(shape: &[i64], axis: usize, reverse: bool, dtype: Dtype) -> Layout {
        let strides = row_major(shape);
        let view = |address| View { address, dtype, shape, strides: &strides };
        Layout::new(&view(4096), &view(1 << 40), axis, reverse, (100, 200_000)).unwrap()
    }

    #[test]
    fn chunks_cover_rows_in_whole_units() {
        for (length, unit, wanted, rows) in
            [(1, 64, 1000, 1), (10_000, 64, 9, 1), (1 << 33, 4096, 800, 3), (8191, 4096, 800, 1)]
        {
            let (chunk, chunks) = parts(length, unit, wanted, rows);
            assert!(chunk * chunks >= length && chunk * (chunks - 1) < length, "{length}");
            assert!(chunks == 1 || chunk % unit == 0, "{length}: {chunk}");
            assert!(chunks * rows <= wanted.max(rows));
        }
    }

    #[test]
    fn ways_of_shapes() {
        let rows = |packed, group| Strategy::Rows { packed, group };
        let f32 = |shape: &[i64], axis| layout(shape, axis, false, Dtype::Float32).strategy;
        assert_eq!(f32(&[1 << 20], 0), rows(true, Group::Block));
        assert_eq!(f32(&[1000, 128], 1), rows(true, Group::Pack));
        assert_eq!(f32(&[1000, 512], 1), rows(true, Group::Warp));
        assert_eq!(f32(&[1000, 513], 1), rows(false, Group::Warp), "rows between two packs");
        assert_eq!(f32(&[1000, 8], 1), Strategy::Lanes);
        assert_eq!(f32(&[1000, 64], 0), Strategy::Lanes);
        assert_eq!(f32(&[1000, 2], 0), rows(false, Group::Block), "too few for a warp");
        assert_eq!(f32(&[7], 0), rows(true, Group::Pack));
    }

    #[test]
    fn few_long_rows_are_cut() {
        assert!(layout(&[1 << 24], 0, false, Dtype::Float32).chunks > 500);
        assert_eq!(layout(&[1000, 1 << 14], 1, false, Dtype::Float32).chunks, 1);
        let lanes = layout(&[1 << 16, 64], 0, false, Dtype::Float32);
        assert!(lanes.chunks > 400);
        assert_eq!(lanes.workspace(), 64 * lanes.chunks * 8);
    }

    #[test]
    fn reversed_scans_begin_at_the_end() {
        let l = layout(&[3, 40], 1, true, Dtype::Float32);
        assert_eq!((l.from, l.steps), (4096 + 39 * 4, [-1, -1]));
        assert_eq!(l.strategy, Strategy::Rows { packed: true, group: Group::Pack });
        // Such rows end within a pack.
        let l = layout(&[3, 42], 1, true, Dtype::Float32);
        assert!(matches!(l.strategy, Strategy::Rows { packed: false, .. }));
    }
}
