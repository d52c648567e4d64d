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
/// Threads that make one result where results are few: a block.
const WIDE_TEAM: u32 = 256;
/// The same where they are many, and how many such teams a block has.
const WARP: u32 = 32;
const WARPS: u32 = 4;

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
    /// The same, by teams of threads for each result; early, or not.
    Rows(Team, bool),
}

/// The threads that make one result along `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Team {
    threads: u32,
    /// Parts of 16 bytes that a thread reads at once: 8, 4, 2 or 1. 0: it reads elements.
    packs: u32,
}

impl Team {
    /// For so many results of `k` products of elements of so many bytes.
    fn of(results: u64, k: i64, bytes: u64, packed: bool, parallelism: u64) -> Self {
        let k = k as u64;
        if !packed {
            let wide = results * u64::from(WARP) < parallelism && k >= 8 * u64::from(WIDE_TEAM);
            return Self { threads: if wide { WIDE_TEAM } else { WARP }, packs: 0 };
        }
        let packs = k * bytes / 16;
        // Blocks are worth their barriers while they run at once, and all threads have something to read.
        let wide =
            results * u64::from(WIDE_TEAM) * 4 <= parallelism * 3 && packs >= u64::from(WIDE_TEAM);
        let (threads, most) = if wide { (WIDE_TEAM, 4) } else { (WARP, 8) };
        // As many as whole teams have.
        let each = (packs / u64::from(threads)).clamp(1, most) as u32;
        Self { threads, packs: 1 << each.ilog2() }
    }

    /// Threads of a block.
    fn block(self) -> u32 {
        self.threads.max(WARP * WARPS)
    }

    /// The bounds of the kernel. Registers have to hold what is read at once: the compiler would rather save them, and wait
    /// for each part.
    fn bounds(self) -> String {
        match (self.packs, self.threads) {
            (..4, _) => self.block().to_string(),
            (_, WIDE_TEAM) => format!("{}, 4", self.block()),
            _ => format!("{}, 1", self.block()),
        }
    }
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
                ProductKernel::Rows(team, early) => {
                    let arguments = format!("{common}, {}, {}, {early}", team.threads, team.packs);
                    let source = Source::instance(HEADERS, "multiply_rows", arguments, lines)
                        .bounded(team.bounds());
                    if early { source.waiting_itself() } else { source }
                }
            }
        })
    }

    /// Enqueues a product. `early`: its first, or second, factor is the same all through the job's graph.
    pub fn run(
        &self,
        job: &Job<'_>,
        product: &Product,
        at: Addresses,
        early: [bool; 2],
    ) -> Result<()> {
        if product.n == 1 {
            return self.vector(job, product, at, early[0]);
        }
        if product.m == 1 {
            return self.vector(job, &product.transposed(), [at[1], at[0], at[2]], early[1]);
        }
        let p = product;
        let kernel = self.kernel(job, ProductKernel::Tiles, p)?;
        let tiles = (p.m as u64).div_ceil(TILE) * (p.n as u64).div_ceil(TILE) * p.batch.len();
        let sides = [p.m, p.n, p.k, p.a[0], p.a[1], p.b[0], p.b[1], p.out[0], p.out[1]];
        let (batch, grid) = (p.batch.parameter_in(rank_of(p.batch.count)), grid(tiles, BLOCK));
        launch!(job, &kernel, grid; at[0], at[1], at[2], sides, batch[..])
    }

    /// Enqueues a product with `n` of 1.
    fn vector(&self, job: &Job<'_>, p: &Product, at: Addresses, early: bool) -> Result<()> {
        let lines = [p.m, p.k, p.a[0], p.a[1], p.b[0], p.out[0]];
        let (results, batch) =
            (p.m as u64 * p.batch.len(), p.batch.parameter_in(rank_of(p.batch.count)));
        let bytes = self.dtype.bytes();
        let mut early = early;
        let (part, blocks, threads) = match how(p, bytes, at) {
            Vector::Columns => {
                (ProductKernel::Columns, (p.m as u64).div_ceil(32) * p.batch.len(), BLOCK)
            }
            Vector::Rows { packed } => {
                let parallelism = job.device.properties.parallelism();
                let team = Team::of(results, p.k, bytes, packed, parallelism);
                let blocks = results.div_ceil(u64::from(team.block() / team.threads));
                early &= team.packs > 0;
                (ProductKernel::Rows(team, early), blocks, team.block())
            }
        };
        early &= matches!(part, ProductKernel::Rows(..));
        let kernel = self.kernel(job, part, p)?;
        let grid = Grid { early, ..grid(blocks, threads) };
        launch!(job, &kernel, grid; at[0], at[1], at[2], lines, batch[..])
    }
}

/// Blocks that go on by the grid's size.
fn grid(blocks: u64, threads: u32) -> Grid {
    Grid::line(blocks.min(i32::MAX as u64) as u32, threads)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that 132 processors run at once.
    const PARALLELISM: u64 = 132 * 2048;

    fn team(results: u64, k: i64, bytes: u64) -> (u32, u32) {
        let team = Team::of(results, k, bytes, true, PARALLELISM);
        (team.threads, team.packs)
    }

    #[test]
    fn warps_make_many_results_and_blocks_few() {
        assert_eq!(team(2048, 2048, 2), (32, 8));
        assert_eq!(team(2048, 8192, 2), (32, 8));
        assert_eq!(team(792, 8192, 2), (256, 4));
        assert_eq!(team(793, 8192, 2), (32, 8));
        // Not all threads of a block would read.
        assert_eq!(team(16, 2047, 2), (32, 4));
        assert_eq!(team(16, 2048, 2), (256, 1));
        // More results than threads can be multiplied.
        assert_eq!(team(1 << 50, 64, 4), (32, 1));
    }

    #[test]
    fn no_more_is_read_at_once_than_rows_have() {
        for (k, packs) in
            [(1, 1), (511, 1), (512, 2), (1023, 2), (1024, 4), (2048, 8), (1 << 40, 8)]
        {
            assert_eq!(team(1 << 20, k, 2), (32, packs), "{k}");
        }
        for (k, packs) in [(1024, 1), (2048, 2), (4095, 2), (4096, 4), (65536, 4)] {
            assert_eq!(team(128, k, 4), (256, packs), "{k}");
        }
    }

    #[test]
    fn elements_are_read_one_by_one_where_rows_are_not_packed() {
        let team = |results, k| Team::of(results, k, 2, false, PARALLELISM);
        assert_eq!(team(512, 2048), Team { threads: 256, packs: 0 });
        assert_eq!(team(512, 2047), Team { threads: 32, packs: 0 });
        assert_eq!(team(1 << 20, 2048), Team { threads: 32, packs: 0 });
    }

    #[test]
    fn blocks_are_whole_teams_and_registers_hold_what_is_read_at_once() {
        for (threads, packs, block, bounds) in [
            (32, 0, 128, "128"),
            (32, 2, 128, "128"),
            (32, 8, 128, "128, 1"),
            (256, 1, 256, "256"),
            (256, 4, 256, "256, 4"),
        ] {
            let team = Team { threads, packs };
            assert_eq!((team.block(), team.bounds().as_str()), (block, bounds));
        }
    }
}
