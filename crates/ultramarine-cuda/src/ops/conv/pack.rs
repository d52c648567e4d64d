//! Copies with padded channels, made before the products, and sums of parts, computed after them.

use super::geometry::{SMALL, Tensor};
use super::headers;
use crate::launch::{Axes, Dtype, Grid, Job, launch, row_major};
use crate::program::{Kernels, Source, index};
use ultramarine_abi::helper::Result;

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/conv/sizes.cuh"),
    include_str!("../../../kernels/conv/pack.cuh"),
];

/// A copy whose last axis is padded to a multiple of 16 bytes.
#[derive(Clone, Copy)]
pub struct Copied {
    shape: [i64; 6],
    from: Tensor,
    /// Size of the last axis.
    pub padded: i64,
}

impl Copied {
    /// A copy of a tensor, if one is needed; `is_dense` asks for a copy without gaps.
    pub fn of(from: Tensor, shape: [i64; 6], bytes: u64, is_dense: bool) -> Option<Self> {
        let each = (16 / bytes) as i64;
        let padded = (shape[5] + each - 1) / each * each;
        let copied = Self { shape, from, padded };
        let dense = copied.strides();
        let fits = shape[5] == padded
            && from.address.is_multiple_of(16)
            && shape.iter().zip(from.strides).zip(dense).enumerate().all(|(d, ((n, s), dense))| {
                *n == 1 || if is_dense || d == 5 { s == dense } else { s % each == 0 }
            });
        (!fits).then_some(copied)
    }

    /// Strides of a tensor without gaps.
    pub fn dense(shape: [i64; 6]) -> [i64; 6] {
        let strides = row_major(&shape);
        std::array::from_fn(|d| strides[d])
    }

    fn strides(&self) -> [i64; 6] {
        let mut shape = self.shape;
        shape[5] = self.padded;
        Self::dense(shape)
    }

    /// The copy, at an address.
    pub fn at(&self, address: u64) -> Tensor {
        Tensor { address, strides: self.strides() }
    }

    fn lines(&self) -> i64 {
        self.shape[..5].iter().product()
    }

    pub fn bytes(&self, each: u64) -> u64 {
        ((self.lines() * self.padded) as u64 * each).next_multiple_of(256)
    }
}

/// Kernels of a plan.
pub struct Packs {
    dtype: Dtype,
    copies: Kernels<bool>,
    joins: Kernels<(usize, bool)>,
}

impl Packs {
    pub fn new(dtype: Dtype) -> Self {
        Self { dtype, copies: Kernels::default(), joins: Kernels::default() }
    }

    /// Makes a copy.
    pub fn copy(&self, job: &Job<'_>, copied: &Copied, to: u64) -> Result<()> {
        let is_wide = copied.lines() * copied.padded > SMALL;
        let kernel = self.copies.get(&job.device.programs, is_wide, || {
            let word = format!("{}::T", self.dtype.word().tag());
            let parameters = format!("const {word} *from, {word} *to, const Lines s");
            let arguments = format!("{word}, {}", index(is_wide));
            Source::instance(HEADERS, "convolve_pack", arguments, parameters)
        })?;
        let (shape, strides) = (copied.shape, copied.from.strides);
        let mut words = vec![copied.lines(), shape[5], copied.padded, strides[5]];
        words.extend_from_slice(&shape[..5]);
        words.extend_from_slice(&strides[..5]);
        let vectors = copied.bytes(self.dtype.bytes()) / 16;
        let grid = Grid::over(job.device, vectors, 1);
        launch!(job, &kernel, grid; copied.from.address, to, words[..])
    }

    /// Adds parts that lie `step` sums apart into results of a shape, from sums with the given strides. Without
    /// any parts, the results are zeros.
    pub fn join(
        &self,
        job: &Job<'_>,
        (partial, parts, step): (u64, i64, i64),
        (shape, strides): ([i64; 6], [i64; 6]),
        to: &Tensor,
    ) -> Result<()> {
        let axes = Axes::join(&shape, [&strides, &to.strides]);
        let variant = axes.variant();
        let key = (variant.rank, variant.wide);
        let kernel = self.joins.get(&job.device.programs, key, || {
            let (d, rank) = (self.dtype.tag(), variant.rank);
            let parameters = format!(
                "const {d}::A *partial, {d}::T *out, i64 parts, i64 step, const Walk<2, {rank}> w"
            );
            let arguments = format!("{d}, {rank}, {}", variant.index());
            Source::instance(HEADERS, "convolve_join", arguments, parameters)
        })?;
        let (words, grid) = (axes.parameter(), Grid::over(job.device, axes.len(), 1));
        launch!(job, &kernel, grid; partial, to.address, parts, step, words[..])
    }
}
