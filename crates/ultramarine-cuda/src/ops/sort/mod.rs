//! SORT, ARG_SORT, PARTITION and ARG_PARTITION; SEARCHSORTED in `search`.

pub mod keys;
mod partition;
mod radix;
mod search;

use crate::launch::{Axes, BLOCK, Dtype, Grid, Job, MAX_AXES, OpRequest, View, Work, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source};
use partition::Partition;
use radix::Radix;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{AxisAttrs, op};

/// Headers of the kernels.
pub const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/sort/sort.cuh"),
    include_str!("../../../kernels/sort/radix.cuh"),
];

/// The rank of kernels for rows with `axes` axes. Usually all of them are joined into one.
fn rank_of(axes: usize) -> usize {
    if axes > 1 { MAX_AXES } else { 1 }
}

/// Maximum length of rows that a sorting network sorts, several in a block.
const SMALL: u64 = 512;
/// Elements per thread of a block that sorts a row.
const ITEMS: [u64; 3] = [4, 8, 16];

struct Sort {
    axis: usize,
    dtype: Dtype,
    indexed: bool,
    /// By the elements of a thread (0 for small rows), and the rank.
    kernels: Kernels<(u64, usize)>,
    long: Long,
}

/// The algorithm for rows that a block cannot sort.
enum Long {
    Sort(Box<Radix>),
    /// Scalar 0 is a rank. A full sort satisfies any rank.
    Partition(Box<Partition>),
}

/// The type of the results: elements, or their indices.
pub fn result(dtype: Dtype, indexed: bool) -> String {
    if indexed { "u32".to_owned() } else { format!("{}::T", dtype.tag()) }
}

/// Makes the work of an operation of the family.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    if request.op == op::SEARCHSORTED {
        return search::prepare(request);
    }
    request.elementwise(1)?;
    let axis = request.attributes::<AxisAttrs>()?.axis as usize;
    let (input, output) = (request.input(0)?, request.output(0)?);
    let indexed = matches!(request.op, op::ARG_SORT | op::ARG_PARTITION);
    let wanted = if indexed { Dtype::Uint32 } else { input.dtype };
    if output.dtype != wanted || axis >= input.ndim {
        return Err(Failure::invalid(format!(
            "an order along axis {axis} of {} elements of rank {} as {}: the axis is below the \
             rank, and the output is {}",
            input.dtype.name(),
            input.ndim,
            output.dtype.name(),
            wanted.name()
        )));
    }
    Ok(Box::new(Sort {
        axis,
        dtype: input.dtype,
        indexed,
        kernels: Kernels::default(),
        long: match request.op {
            op::PARTITION | op::ARG_PARTITION => {
                Long::Partition(Box::new(Partition::new(input.dtype, indexed)))
            }
            _ => Long::Sort(Box::new(Radix::new(input.dtype, indexed))),
        },
    }))
}

/// The rows of a command. Each row is sorted independently.
pub struct Rows {
    /// The axes other than the sorted one, with the strides of input and output.
    pub across: Axes<2>,
    /// Elements of a row.
    pub length: u64,
    /// Strides along a row in elements, of input and output.
    pub steps: [i64; 2],
}

impl Rows {
    /// The rows along an axis.
    pub fn of(input: &View<'_>, output: &View<'_>, axis: usize) -> Result<Self> {
        if input.shape != output.shape || axis >= input.shape.len() {
            return Err(Failure::invalid(format!(
                "an order along axis {axis} of {:?} to {:?}: both have one shape",
                input.shape, output.shape
            )));
        }
        let across = |all: &[i64]| -> Vec<i64> {
            all.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, n)| *n).collect()
        };
        let strides = [&across(input.strides)[..], &across(output.strides)[..]];
        Ok(Self {
            across: Axes::join(&across(input.shape), strides),
            length: input.shape[axis] as u64,
            steps: [input.strides[axis], output.strides[axis]],
        })
    }

    /// The kernels' `Line`.
    pub fn line(&self) -> [u64; 3] {
        [self.length, self.steps[0] as u64, self.steps[1] as u64]
    }

    /// The kernels' rank, and the `Walk` of these rows.
    pub fn walk(&self) -> (usize, Vec<u64>) {
        let rank = rank_of(self.across.count);
        (rank, self.across.parameter_in(rank))
    }

    /// True if adjacent rows are nearer in memory than adjacent elements of a row.
    fn rows_first(&self) -> bool {
        let last = self.across.count.wrapping_sub(1);
        self.across.count > 0 && self.across.stride[0][last].abs() < self.steps[0].abs()
    }
}

/// The strategy for rows of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    /// Several rows per block. Each takes this number of slots, a power of two.
    Small(u64),
    /// One row per block, with this number of elements per thread.
    Block(u64),
    /// Several blocks per row, or no sort at all.
    Long,
}

impl Strategy {
    fn of(length: u64, dtype: Dtype) -> Self {
        if length <= SMALL {
            return Self::Small(length.next_power_of_two());
        }
        // Limited by static shared memory.
        let most = if dtype.bytes() == 8 { 8 } else { 16 };
        let fits = |items: &u64| *items <= most && length <= items * u64::from(BLOCK);
        ITEMS.into_iter().find(fits).map_or(Self::Long, Self::Block)
    }
}

impl Sort {
    /// The kernel for rows with `items` elements per thread; 0 for small rows.
    fn kernel(&self, job: &Job<'_>, items: u64, rank: usize) -> Result<Kernel> {
        self.kernels.get(&job.device.programs, (items, rank), || {
            let (d, indexed) = (self.dtype.tag(), self.indexed);
            let result = result(self.dtype, indexed);
            let tensors = format!("const {d}::T *in, {result} *out, const Line line");
            let source = match items {
                0 => Source::instance(
                    HEADERS,
                    "sort_small",
                    format!("{d}, {indexed}, {rank}"),
                    format!("{tensors}, int width, int rows_first, const Walk<2, {rank}> w"),
                ),
                _ => Source::instance(
                    HEADERS,
                    "sort_block",
                    format!("{d}, {indexed}, {items}, {rank}"),
                    format!("{tensors}, const Walk<2, {rank}> w"),
                ),
            };
            source.bounded(256)
        })
    }

    fn rows(&self, job: &Job<'_>) -> Result<(Rows, Strategy)> {
        let rows = Rows::of(job.input(0)?, job.output(0)?, self.axis)?;
        let strategy = Strategy::of(rows.length, job.input(0)?.dtype);
        Ok((rows, strategy))
    }
}

impl Work for Sort {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let (rows, strategy) = self.rows(job)?;
        match strategy {
            Strategy::Long => Ok(match &self.long {
                Long::Sort(radix) => radix.layout(&rows).bytes,
                Long::Partition(partition) => partition.workspace(job.device, &rows),
            }),
            _ => Ok(0),
        }
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (rows, strategy) = self.rows(job)?;
        if self.indexed && rows.length > 1 << 32 {
            return Err(Failure::invalid(format!(
                "indices of an axis of {} elements: uint32 counts to 2^32; sort parts of it",
                rows.length
            )));
        }
        let chosen = if let Long::Partition(_) = self.long { job.scalar(0)? } else { 0 };
        if chosen >= rows.length {
            return Err(Failure::invalid(format!(
                "rank {} of an axis of {} elements: it is 0 or more, and below their number",
                chosen as i64, rows.length
            )));
        }
        let (from, to) = (job.input(0)?.address, job.output(0)?.address);
        let (rank, walk) = rows.walk();
        let (line, count) = (rows.line(), rows.across.len());
        match strategy {
            Strategy::Small(width) => {
                let kernel = self.kernel(job, 0, rank)?;
                let (width, first) = (width as i32, i32::from(rows.rows_first()));
                let grid = Grid::line(blocks(count.div_ceil(SMALL / width as u64)), BLOCK);
                launch!(job, &kernel, grid; from, to, line[..], width, first, walk[..])
            }
            Strategy::Block(items) => {
                let kernel = self.kernel(job, items, rank)?;
                let grid = Grid::line(blocks(count), BLOCK);
                launch!(job, &kernel, grid; from, to, line[..], walk[..])
            }
            Strategy::Long => match &self.long {
                Long::Sort(radix) => radix.run(job, &rows),
                Long::Partition(partition) => partition.run(job, &rows, chosen),
            },
        }
    }
}

/// A grid of `count` blocks, or of the maximum number: the kernels loop with the grid's stride.
pub fn blocks(count: u64) -> u32 {
    count.clamp(1, i32::MAX as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_lengths() {
        let f32 = |length| Strategy::of(length, Dtype::Float32);
        assert_eq!(f32(1), Strategy::Small(1));
        assert_eq!(f32(300), Strategy::Small(512));
        assert_eq!(f32(513), Strategy::Block(4));
        assert_eq!(f32(4096), Strategy::Block(16));
        assert_eq!(f32(4097), Strategy::Long);
        assert_eq!(Strategy::of(2048, Dtype::Complex64), Strategy::Block(8));
        assert_eq!(Strategy::of(2049, Dtype::Complex64), Strategy::Long);
    }

    #[test]
    fn rows_leave_the_axis_out() {
        let view = |strides| View { address: 0, dtype: Dtype::Int8, shape: &[3, 9, 5], strides };
        let rows = Rows::of(&view(&[45, 5, 1]), &view(&[1, 3, 27]), 1).unwrap();
        assert_eq!((rows.across.count, rows.across.len()), (2, 15));
        assert_eq!(rows.line(), [9, 5, 3]);
        assert!(rows.rows_first());
        let rows = Rows::of(&view(&[45, 5, 1]), &view(&[45, 5, 1]), 2).unwrap();
        assert_eq!((rows.across.count, rows.walk().0), (1, 1));
        assert!(!rows.rows_first());
    }
}
