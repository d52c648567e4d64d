//! Transforms of adjacent columns whose length is a power of two, by this crate's own kernel. cuFFT does not support such
//! nested batches, and the kernel applies the factor at no cost.

use super::HEADERS;
use crate::launch::{Axes, Grid, Job, View, launch, rank_for};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::Result;

/// Supported lengths.
const LENGTHS: core::ops::RangeInclusive<i64> = 16..=2048;
/// Minimum number of adjacent columns for which the kernel is worth it.
const LEAST: i64 = 8;
/// Elements of a block that fit in the default shared memory, and the minimum number of columns of
/// a block.
const TILE: i64 = 4096;
const NARROW: i64 = 8;

/// Columns of a transform.
#[derive(Clone, Debug)]
pub struct Columns {
    n: i64,
    /// Number of adjacent columns.
    count: i64,
    /// Distance between a column's elements, in elements.
    step: [i64; 2],
    outer: Axes<2>,
}

impl Columns {
    /// The columns of a complex transform along an axis. `None` if cuFFT has to do it.
    pub fn of(axis: usize, views: [&View<'_>; 2]) -> Option<Self> {
        let n = views[0].shape[axis];
        let step = views.map(|v| v.strides[axis]);
        if !LENGTHS.contains(&n) || n.count_ones() != 1 {
            return None;
        }
        let without = |values: &[i64]| -> Vec<i64> {
            values.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, v)| *v).collect()
        };
        let strides = views.map(|v| without(v.strides));
        let all = Axes::<2>::join(&without(views[0].shape), [&strides[0], &strides[1]]);
        let beside = |d: &usize| all.stride.iter().all(|s| s[*d] == 1) && all.size[*d] >= LEAST;
        let side = (0..all.count).find(beside)?;
        let rest = |values: &[i64]| -> Vec<i64> {
            (0..all.count).filter(|d| *d != side).map(|d| values[d]).collect()
        };
        let [from, to] = [rest(&all.stride[0]), rest(&all.stride[1])];
        let outer = Axes::join(&rest(&all.size), [&from, &to]);
        Some(Self { n, count: all.size[side], step, outer })
    }

    /// Columns per block.
    fn width(&self) -> i64 {
        // A block has at most 1024 threads, and each thread has 8 elements.
        (TILE / self.n).clamp(NARROW, 32).min(8 * 1024 / self.n)
    }
}

/// The kernels of a plan.
#[derive(Default)]
pub struct ColumnKernels(Kernels<(i64, usize)>);

impl ColumnKernels {
    /// Enqueues a transform in a direction, 1 or -1, multiplied by a factor.
    pub fn run(
        &self,
        job: &Job<'_>,
        columns: &Columns,
        sign: i32,
        factor: f32,
        [from, to]: [u64; 2],
    ) -> Result<()> {
        let Columns { n, count, step, outer } = columns;
        let (width, rank) = (columns.width(), rank_for(outer.count));
        let threads = n / 8 * width;
        let kernel = self.0.get(&job.device.programs, (*n, rank), || {
            let parameters = format!(
                "const complex64 *in, complex64 *out, float factor, i64 step_in, i64 step_out, i64 columns, \
                 i64 tiles, const Walk<2, {rank}> w"
            );
            let arguments = format!("{n}, {width}, {sign}, {rank}");
            Source::instance(HEADERS, "fft_columns", arguments, parameters).bounded(threads)
        })?;
        let tiles = (count + width - 1) / width;
        let shared = (n + n / 8) * width * 8;
        let grid = Grid::exactly(outer.len() * tiles as u64, threads as u32)?;
        let grid = grid.with_room(job, &kernel, shared as u32)?;
        let words = outer.parameter();
        launch!(job, &kernel, grid; from, to, factor, step[0], step[1], *count, tiles, words[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Dtype, row_major};

    fn of(shape: &[i64], axis: usize) -> Option<Columns> {
        let strides = row_major(shape);
        let view = View { address: 256, dtype: Dtype::Complex64, shape, strides: &strides };
        Columns::of(axis, [&view, &view])
    }

    #[test]
    fn columns_lie_side_by_side() {
        let found = of(&[64, 512, 500], 1).unwrap();
        assert_eq!((found.n, found.count, found.step, found.outer.len()), (512, 500, [500; 2], 64));
        assert_eq!(of(&[32, 5, 7], 0).map(|c| (c.count, c.outer.len())), Some((35, 1)));
        for (shape, axis) in
            [([4, 32, 64], 2), ([4, 32, 7], 1), ([4, 24, 64], 1), ([4, 4096, 64], 1)]
        {
            assert!(of(&shape, axis).is_none(), "{shape:?}");
        }
    }

    #[test]
    fn blocks_are_no_larger_than_they_can_be() {
        let width = |n: i64| Columns { n, ..of(&[512, 512], 0).unwrap() }.width();
        assert_eq!([16, 64, 256, 512, 1024, 2048].map(width), [32, 32, 16, 8, 8, 4]);
    }
}
