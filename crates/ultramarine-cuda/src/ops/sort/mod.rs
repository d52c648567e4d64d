//! SORT, ARG_SORT, PARTITION and ARG_PARTITION.

pub mod keys;
mod partition;
mod radix;

use crate::launch::{Ask, Axes, BLOCK, Dtype, Grid, Job, MAX_AXES, View, Work, launch};
use crate::ops::text;
use crate::program::{Lazy, Source};
use partition::Select;
use radix::Radix;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{AxisAttrs, op};

/// The kernels' texts.
pub const TEXTS: &[&str] = &[
    text::NUMBER,
    text::WALK,
    include_str!("../../../kernels/sort/sort.cuh"),
    include_str!("../../../kernels/sort/radix.cuh"),
];

/// Numbers of axes of rows that kernels are compiled for: mostly they join to one.
pub const ROOMS: [usize; 2] = [1, MAX_AXES];

/// Rows up to this length are sorted by a network, several in a block.
const SMALL: u64 = 512;
/// Elements of each thread of a block that sorts a row.
const ITEMS: [u64; 3] = [4, 8, 16];

struct Sort {
    axis: usize,
    indexed: bool,
    small: [Lazy; 2],
    block: [[Lazy; 2]; ITEMS.len()],
    long: Long,
}

/// What does rows that a block cannot sort.
enum Long {
    Sort(Box<Radix>),
    /// Scalar 0 is a rank, which a sort satisfies whatever it is.
    Select(Box<Select>),
}

/// The type of what is written: elements, or where they were.
pub fn result(dtype: Dtype, indexed: bool) -> String {
    if indexed { "u32".to_owned() } else { format!("{}::T", dtype.tag()) }
}

/// One of the four.
pub fn prepare(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    ask.elementwise(1)?;
    let axis = ask.attributes::<AxisAttrs>()?.axis as usize;
    let (input, output) = (ask.input(0)?, ask.output(0)?);
    let indexed = matches!(ask.op, op::ARG_SORT | op::ARG_PARTITION);
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
    let d = input.dtype.tag();
    let result = result(input.dtype, indexed);
    let kernel = |what: &str, more: &str, passed: &str, room: usize| {
        let name = format!("sort {what} {d} {indexed} {room}");
        let tail = format!(
            "extern \"C\" __global__ void __launch_bounds__(256) kernel(const {d}::T *in, \
             {result} *out, const Line line, {more}const Walk<2, {room}> w) {{ \
             {what}, {room}>(in, out, line, {passed}w); }}\n"
        );
        Lazy::new(Source::new(name, TEXTS, tail))
    };
    let small = |room| {
        let what = format!("sort_small<{d}, {indexed}");
        kernel(&what, "int width, int rows_first, ", "width, rows_first, ", room)
    };
    let block = |items, room| kernel(&format!("sort_block<{d}, {indexed}, {items}"), "", "", room);
    Ok(Box::new(Sort {
        axis,
        indexed,
        small: ROOMS.map(small),
        block: ITEMS.map(|items| ROOMS.map(|room| block(items, room))),
        long: match ask.op {
            op::PARTITION | op::ARG_PARTITION => {
                Long::Select(Box::new(Select::new(input.dtype, indexed)))
            }
            _ => Long::Sort(Box::new(Radix::new(input.dtype, indexed))),
        },
    }))
}

/// The rows of a command.
pub struct Rows {
    /// The axes across: strides of input and output.
    pub across: Axes<2>,
    /// Elements of a row.
    pub length: u64,
    /// Element strides along a row, of input and output.
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

    /// The place in [`ROOMS`], and the kernels' `Walk`.
    pub fn walk(&self) -> (usize, Vec<u64>) {
        let room = usize::from(self.across.count > ROOMS[0]);
        (room, self.across.parameter_in(ROOMS[room]))
    }

    /// Whether neighbours across lie nearer than those along a row.
    fn rows_first(&self) -> bool {
        let last = self.across.count.wrapping_sub(1);
        self.across.count > 0 && self.across.stride[0][last].abs() < self.steps[0].abs()
    }
}

/// How rows of a length are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Several in a block; each takes so many places, a power of two.
    Small(u64),
    /// Each by a block, which has that of [`ITEMS`].
    Block(usize),
    /// Each by many blocks, or not sorted at all.
    Long,
}

impl Way {
    fn of(length: u64, dtype: Dtype) -> Self {
        if length <= SMALL {
            return Self::Small(length.next_power_of_two());
        }
        // What shared memory holds without asking for more.
        let most = if dtype.bytes() == 8 { 8 } else { 16 };
        let fits = |items: &u64| *items <= most && length <= items * u64::from(BLOCK);
        ITEMS.iter().position(fits).map_or(Self::Long, Self::Block)
    }
}

impl Sort {
    fn rows(&self, job: &Job<'_>) -> Result<(Rows, Way)> {
        let rows = Rows::of(job.input(0)?, job.output(0)?, self.axis)?;
        let way = Way::of(rows.length, job.input(0)?.dtype);
        Ok((rows, way))
    }
}

impl Work for Sort {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let (rows, way) = self.rows(job)?;
        match way {
            Way::Long => Ok(match &self.long {
                Long::Sort(radix) => radix.layout(&rows).bytes,
                Long::Select(select) => select.workspace(job.device, &rows),
            }),
            _ => Ok(0),
        }
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (rows, way) = self.rows(job)?;
        if self.indexed && rows.length > 1 << 32 {
            return Err(Failure::invalid(format!(
                "indices of an axis of {} elements: uint32 counts to 2^32; sort parts of it",
                rows.length
            )));
        }
        let rank = if let Long::Select(_) = self.long { job.scalar(0)? } else { 0 };
        if rank >= rows.length {
            return Err(Failure::invalid(format!(
                "rank {} of an axis of {} elements: it is 0 or more, and below their number",
                rank as i64, rows.length
            )));
        }
        let (from, to) = (job.input(0)?.address, job.output(0)?.address);
        let (room, walk) = rows.walk();
        let (line, count) = (rows.line(), rows.across.len());
        match way {
            Way::Small(width) => {
                let kernel = self.small[room].get(&job.device.programs)?;
                let (width, first) = (width as i32, i32::from(rows.rows_first()));
                let grid = Grid::line(blocks(count.div_ceil(SMALL / width as u64)), BLOCK);
                launch!(job, &kernel, grid; from, to, line[..], width, first, walk[..])
            }
            Way::Block(items) => {
                let kernel = self.block[items][room].get(&job.device.programs)?;
                let grid = Grid::line(blocks(count), BLOCK);
                launch!(job, &kernel, grid; from, to, line[..], walk[..])
            }
            Way::Long => match &self.long {
                Long::Sort(radix) => radix.run(job, &rows),
                Long::Select(select) => select.run(job, &rows, rank),
            },
        }
    }
}

/// A grid of so many blocks, or as many as there can be: the kernels go on by the grid's size.
pub fn blocks(count: u64) -> u32 {
    count.clamp(1, i32::MAX as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_lengths() {
        let f32 = |length| Way::of(length, Dtype::Float32);
        assert_eq!(f32(1), Way::Small(1));
        assert_eq!(f32(300), Way::Small(512));
        assert_eq!(f32(513), Way::Block(0));
        assert_eq!(f32(4096), Way::Block(2));
        assert_eq!(f32(4097), Way::Long);
        assert_eq!(Way::of(2048, Dtype::Complex64), Way::Block(1));
        assert_eq!(Way::of(2049, Dtype::Complex64), Way::Long);
    }

    #[test]
    fn rows_leave_the_axis_out() {
        let view = |strides| View { address: 0, dtype: Dtype::Int8, shape: &[3, 9, 5], strides };
        let rows = Rows::of(&view(&[45, 5, 1]), &view(&[1, 3, 27]), 1).unwrap();
        assert_eq!((rows.across.count, rows.across.len()), (2, 15));
        assert_eq!(rows.line(), [9, 5, 3]);
        assert!(rows.rows_first());
        let rows = Rows::of(&view(&[45, 5, 1]), &view(&[45, 5, 1]), 2).unwrap();
        assert_eq!((rows.across.count, rows.walk().0), (1, 0));
        assert!(!rows.rows_first());
    }
}
