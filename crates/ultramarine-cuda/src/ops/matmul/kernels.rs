//! Our own products: tiles for any matrices, and two ways to multiply a matrix and a vector.

use super::product::Product;
use crate::launch::{Axes, BLOCK, Dtype, Grid, Job, MAX_AXES, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source, index};
use ultramarine_abi::helper::Result;

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../../kernels/matmul.cuh")];

/// Side of a tile, as `matmul.cuh` has it.
const TILE: u64 = 64;
/// Threads that make one result where results are few.
const WIDE_TEAM: u32 = 256;
/// The same where they are many.
const WARP: u32 = 32;

/// Addresses of the first elements of `a`, `b` and `out`.
pub type Addresses = [u64; 3];

/// The rank of kernels for batches of so many axes.
fn rank_of(axes: usize) -> usize {
    if axes > 1 { MAX_AXES } else { 1 }
}

/// Products of matrices of one dtype, over any strides.
pub struct Products {
    dtype: Dtype,
    /// By what they do, the rank of the batch and whether indices have 64 bits.
    kernels: Kernels<(ProductKernel, usize, bool)>,
}

/// The part of a product that a kernel computes.
#[derive(Clone, Copy, PartialEq)]
enum ProductKernel {
    /// A product of matrices.
    Tiles,
    /// One of a matrix and a vector, by threads along the results.
    Columns,
    /// The same, by teams of threads for each result; 16 bytes are read at once if so.
    Rows { team: u32, packed: bool },
}

/// How a matrix and a vector are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// `k` lies together: teams of threads go along it; 16 bytes at a time if so.
    Rows {
        /// 16 bytes at a time.
        packed: bool,
    },
    /// Results lie together: threads go along them.
    Columns,
}

impl Products {
    /// Of elements of a dtype that is not bool.
    pub fn new(dtype: Dtype) -> Self {
        Self { dtype, kernels: Kernels::default() }
    }

    fn kernel(&self, job: &Job<'_>, part: ProductKernel, p: &Product) -> Result<Kernel> {
        let (rank, wide) = (rank_of(p.batch.count), !p.is_small());
        self.kernels.get(&job.device.programs, (part, rank, wide), || {
            let (d, index) = (self.dtype.tag(), index(wide));
            let common = format!("{d}, {rank}, {index}");
            let lines = format!(
                "const {d}::T *matrix, const {d}::T *vector, {d}::T *out, const Lines s, const Walk<3, {rank}> w"
            );
            match part {
                ProductKernel::Tiles => {
                    let parameters = format!(
                        "const {d}::T *a, const {d}::T *b, {d}::T *out, const Sides s, const Walk<3, {rank}> w"
                    );
                    Source::instance(HEADERS, "multiply_tiles", common, parameters)
                }
                ProductKernel::Columns => Source::instance(HEADERS, "multiply_columns", common, lines),
                ProductKernel::Rows { team, packed } => {
                    let arguments = format!("{common}, {team}, {packed}");
                    Source::instance(HEADERS, "multiply_rows", arguments, lines)
                }
            }
        })
    }

    /// Enqueues a product.
    pub fn run(&self, job: &Job<'_>, product: &Product, at: Addresses) -> Result<()> {
        if product.n == 1 {
            return self.vector(job, product, at);
        }
        if product.m == 1 {
            return self.vector(job, &product.transposed(), [at[1], at[0], at[2]]);
        }
        let p = product;
        let kernel = self.kernel(job, ProductKernel::Tiles, p)?;
        let tiles = (p.m as u64).div_ceil(TILE) * (p.n as u64).div_ceil(TILE) * p.batch.len();
        let sides = [p.m, p.n, p.k, p.a[0], p.a[1], p.b[0], p.b[1], p.out[0], p.out[1]];
        let (batch, grid) = (p.batch.parameter_in(rank_of(p.batch.count)), grid(tiles));
        launch!(job, &kernel, grid; at[0], at[1], at[2], sides, batch[..])
    }

    /// Enqueues a product with `n` of 1.
    fn vector(&self, job: &Job<'_>, p: &Product, at: Addresses) -> Result<()> {
        let lines = [p.m, p.k, p.a[0], p.a[1], p.b[0], p.out[0]];
        let (results, batch) =
            (p.m as u64 * p.batch.len(), p.batch.parameter_in(rank_of(p.batch.count)));
        let (part, blocks) = match how(p, self.dtype.bytes(), at) {
            Vector::Columns => (ProductKernel::Columns, (p.m as u64).div_ceil(32) * p.batch.len()),
            Vector::Rows { packed } => {
                let few = results * u64::from(WARP) < job.device.properties.parallelism();
                let wide = few && p.k >= 8 * i64::from(WIDE_TEAM);
                let team = if wide { WIDE_TEAM } else { WARP };
                (ProductKernel::Rows { team, packed }, results.div_ceil(u64::from(BLOCK / team)))
            }
        };
        let kernel = self.kernel(job, part, p)?;
        launch!(job, &kernel, grid(blocks); at[0], at[1], at[2], lines, batch[..])
    }
}

/// Blocks that go on by the grid's size.
fn grid(blocks: u64) -> Grid {
    Grid::line(blocks.min(i32::MAX as u64) as u32, BLOCK)
}

/// How a product with `n` of 1 is made.
pub fn how(p: &Product, bytes: u64, at: Addresses) -> Vector {
    let [row, col] = p.a.map(i64::unsigned_abs);
    let whole = |elements: i64| elements.unsigned_abs().wrapping_mul(bytes).is_multiple_of(16);
    let batch_fits =
        p.batch.stride[..2].iter().all(|s| s[..p.batch.count].iter().all(|s| whole(*s)));
    // The stride of an axis of size 1 leads nowhere.
    let row_fits = p.m == 1 || whole(p.a[0]);
    let together = p.a[1] == 1 && (p.b[0] == 1 || p.k == 1);
    let aligned = at[..2].iter().all(|address| address.is_multiple_of(16));
    let packed = together && row_fits && batch_fits && aligned;
    match col <= row || p.m == 1 {
        true => Vector::Rows { packed },
        false => Vector::Columns,
    }
}

/// Copies of operands inside of the workspace.
pub struct Packer {
    dtype: Dtype,
    kernels: Kernels<(usize, bool)>,
}

impl Packer {
    /// Of elements of so many bytes as the dtype has.
    pub fn new(dtype: Dtype) -> Self {
        Self { dtype: dtype.word(), kernels: Kernels::default() }
    }

    /// Enqueues a copy from one address to another.
    pub fn run(&self, job: &Job<'_>, axes: &Axes<2>, from: u64, to: u64) -> Result<()> {
        let (rank, wide) = (rank_of(axes.count), !axes.is_small());
        let kernel = self.kernels.get(&job.device.programs, (rank, wide), || {
            let (d, index) = (self.dtype.tag(), index(wide));
            let parameters = format!("const {d}::T *in, {d}::T *out, const Walk<2, {rank}> w");
            Source::instance(HEADERS, "pack_operand", format!("{d}, {rank}, {index}"), parameters)
        })?;
        let (words, grid) = (axes.parameter_in(rank), Grid::over(job.device, axes.len(), 4));
        launch!(job, &kernel, grid; from, to, words[..])
    }
}
