//! ROPE.

use crate::launch::{
    Axes, BLOCK, Dtype, Grid, Job, Kind, OpRequest, RankVariant, TOGETHER, View, Work, as_one,
    launch,
};
use crate::ops::elementwise::Map;
use crate::ops::{elementwise, headers};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::RopeAttrs;

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    elementwise::MAP,
    include_str!("../../../kernels/nn/rope.cuh"),
];

/// Maximum number of bytes that a thread moves at once.
const WIDEST: u64 = 16;
/// Bytes of a tensor that a thread has in flight.
const UNDER_WAY: u64 = 128;

/// Maximum number of rotations in a launch: queries and keys make two.
const MOST_TOGETHER: usize = 2;

/// Identifies a kernel: pairs per position, rows per thread, whether a position is one pack, the walk, and the number
/// of rotations in a launch.
type Variant = (u64, i64, bool, RankVariant, usize);

struct Rope {
    dtype: Dtype,
    pairs: i64,
    traditional: bool,
    inverse: bool,
    kernels: Kernels<Variant>,
    /// Moves the elements after the pairs.
    rest: Map<2>,
}

/// ROPE, with any strides.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    request.elementwise(3)?;
    let attributes = request.attributes::<RopeAttrs>()?;
    let dtype = request.output(0)?.dtype;
    let table = if dtype.is_half() { Dtype::Float32 } else { dtype };
    let dtypes = [request.input(0)?.dtype, request.input(1)?.dtype, request.input(2)?.dtype];
    if !dtype.is_real() || dtypes != [dtype, table, table] {
        return Err(Failure::unsupported(format!(
            "rope of {:?} into {}: the first has the output's floating dtype, the others are float64 for float64, else float32",
            dtypes.map(Dtype::name),
            dtype.name()
        )));
    }
    if request.output(0)?.ndim == 0 || attributes.pairs == 0 {
        return Err(Failure::invalid(
            "rope rotates pairs of elements of the last axis, at least one",
        ));
    }
    let word = dtype.word();
    Ok(Box::new(Rope {
        dtype,
        pairs: attributes.pairs.into(),
        traditional: attributes.traditional != 0,
        inverse: attributes.inverse != 0,
        kernels: Kernels::default(),
        rest: elementwise::conversion(word, word),
    }))
}

/// How pairs are visited; input, output, cosines and sines are walked together.
#[derive(Debug)]
struct Visit {
    /// Positions. Each has `pack` pairs in each of `rows` rows.
    axes: Axes<4>,
    /// Pairs per position.
    pack: u64,
    /// True if a position is one pack of adjacent elements; otherwise it has a pack of left
    /// elements and a pack of right ones.
    neighbours: bool,
    /// Distance from left elements to right ones, in input and output.
    apart: [i64; 2],
    /// Number of rows with the same angles that a thread processes.
    rows: i64,
    /// Distance between these rows, in input and output.
    step: [i64; 2],
}

/// A tensor's address, bytes of an element, and strides.
type Place<'a> = (u64, u64, &'a [i64]);

impl Visit {
    /// The visit of `pairs` pairs in tensors of the given shape, for at least `threads` threads.
    fn of(
        shape: &[i64],
        tensors: [Place<'_>; 4],
        (pairs, traditional): (i64, bool),
        threads: u64,
    ) -> Self {
        let last = shape.len() - 1;
        let along = tensors.map(|(_, _, strides)| strides[last]);
        let bytes = tensors[0].1;
        let packed = along[..2] == [1, 1] && along[2..] == [1, 1] && pairs > 1;
        // True if every pack of every tensor is aligned to the pack's size.
        let fits = |pack: u64| {
            let aligned = |k: usize, (address, bytes, strides): Place<'_>| {
                let elements = if k < 2 && traditional { 2 * pack } else { pack };
                let align = (elements * bytes).min(WIDEST);
                let outer = shape.iter().zip(strides).take(last).filter(|(n, _)| **n != 1);
                address.is_multiple_of(align)
                    && outer
                        .into_iter()
                        .all(|(_, s)| s.unsigned_abs().wrapping_mul(bytes).is_multiple_of(align))
            };
            (pairs as u64).is_multiple_of(pack)
                && tensors.into_iter().enumerate().all(|(k, tensor)| aligned(k, tensor))
        };
        let widest = WIDEST / bytes / if traditional { 2 } else { 1 };
        let widths = std::iter::successors(Some(widest), |n| (*n > 1).then_some(n / 2));
        let found = widths.into_iter().find(|n| packed && fits(*n));
        let (pack, neighbours) = (found.unwrap_or(1), found.is_some() && traditional);

        let mut sizes = shape.to_vec();
        sizes[last] = pairs / pack as i64;
        let strides: [Vec<i64>; 4] = std::array::from_fn(|k| {
            let mut strides = tensors[k].2.to_vec();
            strides[last] *= pack as i64 * if k < 2 && traditional { 2 } else { 1 };
            strides
        });
        let mut axes = Axes::join(&sizes, std::array::from_fn(|k| strides[k].as_slice()));
        let apart = [along[0], along[1]].map(|s| if traditional { s } else { s * pairs });
        let each = pack * bytes * 2;
        let (rows, step) = share(&mut axes, UNDER_WAY / each.max(16), threads);
        Visit { axes, pack, neighbours, apart, rows, step }
    }
}

/// Combines rows with the same angles, at most `most`, as long as at least `threads` threads remain. Returns the
/// number of combined rows, and their distance in input and output.
fn share(axes: &mut Axes<4>, most: u64, threads: u64) -> (i64, [i64; 2]) {
    let most = most.min(axes.len() / threads.max(1)) as i64;
    let same = (0..axes.count).filter(|d| axes.stride[2][*d] == 0 && axes.stride[3][*d] == 0);
    let divisor = |d: usize| (1..=most).rev().find(|n| axes.size[d] % n == 0).unwrap_or(1);
    let Some((d, rows)) = same.map(|d| (d, divisor(d))).max_by_key(|(_, rows)| *rows) else {
        return (1, [0, 0]);
    };
    let step = [axes.stride[0][d], axes.stride[1][d]];
    axes.size[d] /= rows;
    for strides in &mut axes.stride {
        strides[d] *= rows;
    }
    (rows, step)
}

impl Rope {
    fn checked(&self, job: &Job<'_>) -> Result<()> {
        let shape = job.output(0)?.shape;
        let (last, outer) = shape.split_last().unwrap_or((&0, &[]));
        let table = |v: &View<'_>| v.shape.split_last() == Some((&self.pairs, outer));
        let (x, cos, sin) = (job.input(0)?, job.input(1)?, job.input(2)?);
        if x.shape == shape && table(cos) && table(sin) && 2 * self.pairs <= *last {
            return Ok(());
        }
        Err(Failure::invalid(format!(
            "{} pairs of {:?} into {shape:?} by cosines and sines of {:?} and {:?}: all have one shape, but these {} as the last size, twice which is no more than there is",
            self.pairs, x.shape, cos.shape, sin.shape, self.pairs
        )))
    }

    fn source(&self, (pack, rows, neighbours, axes, several): Variant) -> Source {
        let (d, rank) = (self.dtype.tag(), axes.rank);
        let index = axes.index();
        let arguments = format!("{d}, {pack}, {rows}, {neighbours}, {rank}, {index}, {several}");
        let parameters =
            format!("const Several<Rotation<{d}, {rank}>, {several}> all, i32 inverse");
        Source::instance(HEADERS, "rope_rotate", arguments, parameters)
    }

    /// The kernel of a rotation as one of `several`, its arguments, and its blocks.
    fn rotation(&self, job: &Job<'_>, several: usize) -> Result<(Variant, Vec<u64>, u64)> {
        self.checked(job)?;
        let all = [job.input(0)?, job.output(0)?, job.input(1)?, job.input(2)?];
        let places = all.map(|v| (v.address, v.dtype.bytes(), v.strides));
        let threads = job.device.properties.parallelism();
        let visit = Visit::of(all[0].shape, places, (self.pairs, self.traditional), threads);
        let mut words = all.map(|v| v.address).to_vec();
        words.extend(visit.apart.iter().chain(&visit.step).map(|n| *n as u64));
        words.extend(visit.axes.parameter());
        let walk = visit.axes.variant();
        let variant = (visit.pack, visit.rows, visit.neighbours, walk, several);
        Ok((variant, words, visit.axes.len().div_ceil(BLOCK.into())))
    }

    /// Enqueues rotations as one launch. Returns false if their kernels differ.
    fn rotate(&self, jobs: &[Job<'_>]) -> Result<bool> {
        let all = as_one(jobs, |job| self.rotation(job, jobs.len()))?;
        let (Some(job), Some((variant, words, blocks))) = (jobs.first(), all) else {
            return Ok(false);
        };
        let kernel = self.kernels.get(&job.device.programs, variant, || self.source(variant))?;
        let grid = Grid::exactly(blocks, BLOCK)?.of_several(jobs.len());
        let inverse = i32::from(self.inverse);
        launch!(job, &kernel, grid; words[..], inverse)?;
        Ok(true)
    }

    /// True if there are no elements after the pairs.
    fn is_whole(&self, job: &Job<'_>) -> bool {
        job.outputs.first().is_some_and(|out| out.shape.last() == Some(&(2 * self.pairs)))
    }
}

impl Work for Rope {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        self.rotate(std::slice::from_ref(job))?;
        self.run_rest(job)
    }

    fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        let fits = self.is_whole(job) && job.outputs[0].len() <= TOGETHER;
        let how = u64::from(self.inverse) | u64::from(self.traditional) << 1;
        let number = how | (self.pairs as u64) << 2 | u64::from(self.dtype as u8) << 40;
        fits.then_some(Kind { most: MOST_TOGETHER, number })
    }

    fn run_together(&self, jobs: &[Job<'_>]) -> Result<bool> {
        // A replay may have other sizes.
        Ok(jobs.iter().all(|job| self.is_whole(job)) && self.rotate(jobs)?)
    }
}

impl Rope {
    /// Copies the elements after the pairs.
    fn run_rest(&self, job: &Job<'_>) -> Result<()> {
        let (from, to) = (job.input(0)?, job.output(0)?);
        let mut shape = to.shape.to_vec();
        let Some(last) = shape.last_mut().filter(|n| **n > 2 * self.pairs) else { return Ok(()) };
        *last -= 2 * self.pairs;
        let dtype = self.dtype.word();
        let behind = |view: &View<'_>| {
            let step = view.strides.last().map_or(0, |s| 2 * self.pairs * s);
            let bytes = step * dtype.bytes() as i64;
            view.address.wrapping_add_signed(bytes)
        };
        let part =
            |view| View { address: behind(view), dtype, shape: &shape, strides: view.strides };
        self.rest.run(job, [part(from), part(to)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::row_major;

    const HEADS: [i64; 4] = [8, 32, 2048, 128];
    /// A table of 64 pairs, for all heads.
    const TABLE: [i64; 4] = [0, 0, 64, 1];

    fn visit(bytes: u64, shape: &[i64], input: &[i64], pairs: i64, traditional: bool) -> Visit {
        let (out, table) = (row_major(shape), TABLE.map(|s| if s > 1 { pairs } else { s }));
        let table = (4096, bytes.max(4), &table[4 - shape.len()..]);
        let tensors = [(256, bytes, input), (512, bytes, &out[..]), table, table];
        Visit::of(shape, tensors, (pairs, traditional), 1000)
    }

    fn of_heads(bytes: u64, pairs: i64, traditional: bool) -> Visit {
        visit(bytes, &HEADS, &row_major(&HEADS), pairs, traditional)
    }

    fn sizes(visit: &Visit) -> &[i64] {
        &visit.axes.size[..visit.axes.count]
    }

    #[test]
    fn a_thread_moves_packs_of_several_heads() {
        let halves = of_heads(2, 64, false);
        assert_eq!((halves.pack, halves.rows, halves.neighbours), (8, 4, false));
        assert_eq!((sizes(&halves), halves.apart), (&[64, 2048, 8][..], [64, 64]));
        assert_eq!(halves.step, [2048 * 128; 2]);
        let floats = of_heads(4, 64, false);
        assert_eq!((floats.pack, floats.rows, sizes(&floats)), (4, 4, &[64, 2048, 16][..]));
        assert_eq!(of_heads(8, 64, false).pack, 2);
    }

    #[test]
    fn neighbours_are_one_pack() {
        let halves = of_heads(2, 64, true);
        assert_eq!((halves.pack, halves.rows, halves.neighbours), (4, 8, true));
        // Rows of pairs are contiguous, as rows of angles are.
        assert_eq!((sizes(&halves), halves.apart), (&[32, 2048 * 16][..], [1, 1]));
        assert_eq!((of_heads(4, 64, true).pack, of_heads(8, 64, true).pack), (2, 1));
        assert!(of_heads(8, 64, true).neighbours);
    }

    #[test]
    fn packs_are_as_wide_as_all_begin() {
        assert_eq!((of_heads(2, 12, false).pack, of_heads(2, 12, true).pack), (4, 4));
        assert_eq!((of_heads(4, 2, false).pack, of_heads(2, 3, false).pack), (2, 1));
        assert!(!of_heads(2, 1, true).neighbours);
        let odd = visit(2, &[4, 6, 65], &[390, 65, 1], 32, false);
        assert_eq!((odd.pack, odd.neighbours), (1, false));
        let transpose = visit(2, &[4, 6, 64], &[384, 1, 6], 32, true);
        assert_eq!((transpose.pack, transpose.neighbours, transpose.apart), (1, false, [6, 1]));
        assert_eq!(transpose.axes.stride[0][transpose.axes.count - 1], 12);
        // The first of two axes has one element, so its stride does not matter.
        let one = visit(2, &[1, 6, 64], &[3, 64, 1], 32, false);
        assert_eq!(one.pack, 8);
    }

    #[test]
    fn rows_are_shared_where_threads_remain() {
        let shape = [6, 2048, 128];
        let six = visit(2, &shape, &row_major(&shape), 64, false);
        assert_eq!((six.rows, sizes(&six)), (3, &[2, 2048, 8][..]));
        let shape = [6, 16, 128];
        let few = visit(2, &shape, &row_major(&shape), 64, false);
        assert_eq!((few.rows, sizes(&few)), (1, &[6, 16, 8][..]));
        let shape = [7, 2048, 128];
        assert_eq!(visit(2, &shape, &row_major(&shape), 64, false).rows, 1);
    }
}
