//! Operations along rows, in one of two ways. If a row is one contiguous axis and fits in the registers of a
//! team of threads, one pass is enough (`kernels/nn/row_kernels.cuh`). Otherwise, a reduction computes packed
//! sums ([`crate::ops::reduce::fold`]), and a second pass processes the elements.

use crate::launch::{Axes, Dtype, Grid, Job, RankVariant, View, launch, row_major};
use crate::ops::reduce::FoldKernels;
use crate::ops::reduce::fold::{Fold, Kind, Problem};
use crate::ops::reduce::vector;
use crate::program::{Kernel, Kernels, Source};
use ultramarine_abi::helper::Result;

/// `kernels/nn/row_kernels.cuh`; it comes after `reduce.cuh`.
pub const HEADER: &str = include_str!("../../../kernels/nn/row_kernels.cuh");

/// The threads that hold a row in registers; each has `times` groups of `vector` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Team {
    /// Threads per row.
    pub threads: u64,
    /// The template argument `E`.
    pub times: u64,
    /// The template argument `V`.
    pub vector: u64,
}

impl Team {
    /// The smallest team that holds `count` elements, if there is one. `words` is the number of
    /// registers per element.
    fn of(count: u64, most: u64, words: u64) -> Option<Self> {
        let mut vector = most;
        while !count.is_multiple_of(vector) {
            vector /= 2;
        }
        let held = |(threads, registers): (u64, u64)| {
            let times = count.div_ceil(vector).div_ceil(threads).next_power_of_two();
            (times * vector * words <= registers).then_some(Self { threads, times, vector })
        };
        [(32, 32), (256, 32), (1024, 32)].into_iter().find_map(held)
    }

    /// Threads of a block.
    pub fn block(self) -> u64 {
        self.threads.max(256)
    }

    /// The grid of a kernel that processes `rows` rows.
    pub fn grid(self, rows: u64) -> Grid {
        let blocks = rows.div_ceil(self.block() / self.threads).min(1 << 30);
        Grid::line(blocks as u32, self.block() as u32)
    }
}

/// The rows of a tensor, as a reduction to packed sums.
pub struct Sums {
    fold: Fold,
    /// The sums' strides over the tensor's shape.
    pub strides: Vec<i64>,
    bytes: u64,
}

/// How a command runs: rows that fit into registers take one pass, others two.
pub enum Strategy {
    /// One pass.
    Team(Box<Fold>, Team),
    /// Two passes.
    Sums(Box<Sums>),
}

/// The kernel of the single pass: `TEMPLATE<D, rank, index, threads, times, vector>`. Its first
/// parameters are the input and the output, and its last one is the walk.
pub struct Form {
    /// `TEMPLATE`.
    pub template: &'static str,
    /// Further template arguments: before the rank, and after the vector.
    pub arguments: [String; 2],
    /// Further parameters.
    pub parameters: String,
}

/// An operation along rows, such as softmax: the kernels of both strategies.
pub struct RowKernels {
    /// The dtype of all tensors.
    pub dtype: Dtype,
    /// Bit `i`: rows extend along axis `i`.
    pub axes: u64,
    /// Bytes of a row's sums.
    pub accumulator: u64,
    /// Headers of all kernels.
    pub headers: &'static [&'static str],
    /// The reduction.
    pub sums: FoldKernels,
    /// The kernels of the second pass.
    pub apply: Kernels<RankVariant>,
}

impl RowKernels {
    /// How a command runs on tensors of one shape: the input, the output, and others, which may
    /// have one element for a whole row.
    pub fn strategy(&self, job: &Job<'_>, all: &[&View<'_>]) -> Strategy {
        match self.in_registers(job, all, |k| k < 2) {
            Some((fold, team)) => Strategy::Team(Box::new(fold), team),
            None => Strategy::Sums(Box::new(self.in_sums(job, all[0]))),
        }
    }

    fn fold(&self, job: &Job<'_>, all: &[&View<'_>], out: &[i64]) -> Fold {
        let strides: Vec<&[i64]> = all.iter().map(|v| v.strides).collect();
        let places: Vec<(u64, u64)> = all.iter().map(|v| (v.address, v.dtype.bytes())).collect();
        Fold::of(
            &job.device.properties,
            &Problem {
                shape: all[0].shape,
                strides: &strides,
                places: &places,
                out,
                axes: self.axes,
                vector: vector(self.dtype),
            },
        )
    }

    /// The fold and the team for one pass, if a row is one contiguous axis that fits in registers; all tensors are walked
    /// together. `dense` returns true for tensors that must not have one element for a whole row.
    pub fn in_registers(
        &self,
        job: &Job<'_>,
        all: &[&View<'_>],
        dense: impl Fn(usize) -> bool,
    ) -> Option<(Fold, Team)> {
        let fold = self.fold(job, all, &vec![0; all[0].shape.len()]);
        let along = fold.along.as_ref()?;
        let fits = |(k, s): (usize, &i64)| *s == 1 || *s == 0 && !dense(k);
        let packed = along.iter().enumerate().all(fits);
        let by_rows = matches!(fold.variant.kind, Kind::Rows(_));
        let words = if self.dtype == Dtype::Float64 { 2 } else { 1 };
        let team = Team::of(fold.count, fold.variant.vector.into(), words)?;
        (packed && by_rows).then_some((fold, team))
    }

    fn in_sums(&self, job: &Job<'_>, input: &View<'_>) -> Sums {
        let gone = |i: usize| self.axes >> i & 1 == 1;
        let kept: Vec<i64> =
            input.shape.iter().enumerate().map(|(i, n)| if gone(i) { 1 } else { *n }).collect();
        let mut strides = row_major(&kept);
        strides.iter_mut().enumerate().filter(|(i, _)| gone(*i)).for_each(|(_, s)| *s = 0);
        let fold = self.fold(job, &[input], &strides);
        let bytes = (fold.outputs * self.accumulator).next_multiple_of(256);
        Sums { fold, strides, bytes }
    }

    /// Bytes of workspace.
    pub fn workspace(&self, job: &Job<'_>, all: &[&View<'_>]) -> u64 {
        match self.strategy(job, all) {
            Strategy::Team(..) => 0,
            Strategy::Sums(sums) => sums.bytes + sums.fold.workspace(self.accumulator),
        }
    }

    /// The kernel of the single pass, and its grid.
    pub fn one_pass(
        &self,
        job: &Job<'_>,
        fold: &Fold,
        team: Team,
        form: &Form,
    ) -> Result<(Kernel, Grid)> {
        let (d, k, kept) = (self.dtype.tag(), fold.variant.tensors, fold.variant.ranks.0);
        let (index, Team { threads, times, vector }) = (fold.variant.index(), team);
        let Form { template, arguments: [before, behind], parameters } = form;
        let arguments =
            format!("{d}, {before}{kept}, {index}, {threads}, {times}, {vector}{behind}");
        let parameters =
            format!("const {d}::T *in, {d}::T *out, {parameters}const Fold<{k}, {kept}, 1> w");
        let source = Source::instance(self.headers, template, arguments, parameters);
        let kernel = job.device.programs.kernel(&source.bounded(team.block()))?;
        Ok((kernel, team.grid(fold.outputs)))
    }

    /// Enqueues the reduction; returns the address of the sums.
    pub fn first_pass(&self, job: &Job<'_>, sums: &Sums, from: u64) -> Result<u64> {
        let (fold, at) = (&sums.fold, job.scratch()?);
        let partial = at + sums.bytes;
        let kernel = self.sums.get(&job.device.programs, &fold.variant)?;
        launch!(job, &kernel, fold.grid(); from, at, partial, fold.words[..])?;
        self.sums.merge(job, fold, at, partial)?;
        Ok(at)
    }

    /// The kernel of the second pass, its grid and its walk.
    pub fn second_pass<const K: usize>(
        &self,
        job: &Job<'_>,
        shape: &[i64],
        strides: [&[i64]; K],
        source: impl FnOnce(RankVariant) -> Source,
    ) -> Result<(Kernel, Grid, Vec<u64>)> {
        let axes = Axes::join(shape, strides);
        let variant = axes.variant();
        let kernel = self.apply.get(&job.device.programs, variant, || source(variant))?;
        Ok((kernel, Grid::over(job.device, axes.len(), 4), axes.parameter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_the_smallest_team() {
        let team = |count, most, words| {
            Team::of(count, most, words).map(|t| (t.threads, t.times, t.vector))
        };
        assert_eq!(team(512, 4, 1), Some((32, 4, 4)));
        assert_eq!(team(768, 8, 1), Some((32, 4, 8)));
        assert_eq!(team(4096, 4, 1), Some((256, 4, 4)));
        assert_eq!(team(4098, 4, 1), Some((256, 16, 2)));
        assert_eq!(team(32_768, 8, 1), Some((1024, 4, 8)));
        assert_eq!(team(32_768, 2, 2), None);
        assert_eq!(team(33, 4, 1), Some((32, 2, 1)));
        assert_eq!(team(40_000, 4, 1), None);
    }
}
