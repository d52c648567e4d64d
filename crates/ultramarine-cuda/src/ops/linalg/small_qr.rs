//! QR of matrices that fit into a block's shared memory. cuSOLVER has no batched QR.

use super::layout::Sizes;
use crate::launch::{Axes, Dtype, Grid, Job, View, launch, rank_for};
use crate::ops::headers;
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::Result;

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::WALK,
    include_str!("../../../kernels/linalg/around.cuh"),
    include_str!("../../../kernels/linalg/qr.cuh"),
];

/// Default limit of shared memory, less what the kernel uses otherwise.
const ROOM: u64 = 46 << 10;
const THREADS: u32 = 256;

/// Kernels of a plan, by rank.
#[derive(Default)]
pub struct SmallQr(Kernels<usize>);

fn bytes(dtype: Dtype, sizes: &Sizes) -> u64 {
    let k = sizes.k();
    let elements = sizes.m * sizes.n + sizes.m * k + k;
    (elements as u64).saturating_mul(dtype.bytes())
}

impl SmallQr {
    /// True if the matrices are small enough.
    pub fn fits(dtype: Dtype, sizes: &Sizes) -> bool {
        sizes.m.max(sizes.n) <= 1024 && bytes(dtype, sizes) <= ROOM
    }

    /// Enqueues the decompositions.
    pub fn run(&self, job: &Job<'_>, sizes: &Sizes, a: &View<'_>, [q, r]: [u64; 2]) -> Result<()> {
        let batch = a.shape.len() - 2;
        let axes = Axes::<1>::join(&a.shape[..batch], [&a.strides[..batch]]);
        let (rank, dtype) = (rank_for(axes.count), a.dtype);
        let kernel = self.0.get(&job.device.programs, rank, || {
            let t = format!("{}::T", dtype.tag());
            let real = if dtype == Dtype::Float64 { "double" } else { "float" };
            let parameters = format!(
                "const {t} *in, {t} *q, {t} *r, i64 m, i64 n, i64 row, i64 col, const Walk<1, {rank}> w"
            );
            let arguments = format!("{t}, {real}, {rank}");
            Source::instance(HEADERS, "qr_small", arguments, parameters).bounded(THREADS)
        })?;
        let (row, col) = (a.strides[batch], a.strides[batch + 1]);
        let grid = Grid::exactly(sizes.count as u64, THREADS)?;
        let grid = grid.with_shared(bytes(dtype, sizes) as u32);
        let words = axes.parameter();
        launch!(job, &kernel, grid; a.address, q, r, sizes.m, sizes.n, row, col, words[..])
    }
}
