//! Products by this crate's kernels: tiles for any matrices, and two ways to multiply a matrix and
//! a vector. They are used if cuBLASLt is missing or not suitable; see `library.rs`.

use super::product::Product;
use crate::launch::{Axes, BLOCK, Dtype, Grid, Job, Kind, MAX_AXES, launch};
use crate::ops::headers;
use crate::program::{Kernel, Kernels, Source, index};
use ultramarine_abi::helper::Result;

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../../kernels/matmul.cuh")];

/// Side of a tile, as `matmul.cuh` has it.
const TILE: u64 = 64;
/// Threads that compute one result if there are few results: a whole block.
const WIDE_TEAM: u32 = 256;
/// Threads that compute one result if there are many, and the number of such teams in a block.
const WARP: u32 = 32;
const WARPS: u32 = 4;

/// Maximum number of products with one vector in a launch.
const MOST_TOGETHER: usize = 3;

/// Addresses of the first elements of `a`, `b` and `out`.
pub type Addresses = [u64; 3];

/// The rank of kernels for batches with `axes` axes.
fn rank_of(axes: usize) -> usize {
    if axes > 1 { MAX_AXES } else { 1 }
}

/// Matrix products of one dtype by this crate's kernels, over any strides. They are used if
/// cuBLASLt is missing or cannot compute a product; see [`super::library`].
pub struct Products {
    dtype: Dtype,
    /// By the kind of kernel, the rank of the batch and whether indices have 64 bits.
    kernels: Kernels<(ProductKernel, usize, bool)>,
}

/// The part of a product that a kernel computes.
#[derive(Clone, Copy, PartialEq)]
enum ProductKernel {
    /// A product of matrices.
    Tiles,
    /// A product of a matrix and a vector; threads are spread over the results.
    Columns,
    /// Likewise, with a team of threads for each result. True if it may start early.
    Rows(Team, bool),
    /// Likewise, for several matrices. True if it may start early.
    Together(Team, bool),
}

/// The threads that compute one result along `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Team {
    threads: u32,
    /// Pieces of 16 bytes that a thread loads at once: 8, 4, 2 or 1. With 0, it loads single
    /// elements.
    packs: u32,
}

impl Team {
    /// The team for `results` results, each with `k` products of elements of `bytes` bytes.
    fn of(results: u64, k: i64, bytes: u64, packed: bool, parallelism: u64) -> Self {
        let k = k as u64;
        if !packed {
            let wide = results * u64::from(WARP) < parallelism && k >= 8 * u64::from(WIDE_TEAM);
            return Self { threads: if wide { WIDE_TEAM } else { WARP }, packs: 0 };
        }
        let packs = k * bytes / 16;
        // Blocks are worth their barriers only while all of them run at once, and if a row is longer than a
        // warp loads at once.
        let wide =
            results * u64::from(WIDE_TEAM) * 4 <= parallelism * 3 && packs > u64::from(WIDE_TEAM);
        let (threads, most) = if wide { (WIDE_TEAM, 4) } else { (WARP, 8) };
        // As many pieces as all threads of the team have.
        let each = (packs / u64::from(threads)).clamp(1, most) as u32;
        Self { threads, packs: 1 << each.ilog2() }
    }

    /// Threads of a block.
    fn block(self) -> u32 {
        self.threads.max(WARP * WARPS)
    }

    /// Number of blocks for `results` results.
    fn blocks(self, results: u64) -> u64 {
        results.div_ceil(u64::from(self.block() / self.threads))
    }

    /// The launch bounds of the kernel. Everything that is loaded at once has to fit in registers. Without these bounds,
    /// the compiler saves registers and waits for each piece.
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
    /// Contiguous along `k`: teams of threads walk along it, 16 bytes at a time if `packed`.
    Rows {
        /// True for 16 bytes at a time.
        packed: bool,
    },
    /// Results are contiguous: threads are spread over them.
    Columns,
}

impl Products {
    /// Products of a dtype other than bool.
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
            let by_rows = |template, parameters, team: Team, early| {
                let arguments = format!("{common}, {}, {}, {early}", team.threads, team.packs);
                let source = Source::instance(HEADERS, template, arguments, parameters)
                    .bounded(team.bounds());
                if early { source.waiting_itself() } else { source }
            };
            match part {
                ProductKernel::Tiles => {
                    let parameters = format!(
                        "const {d}::T *a, const {d}::T *b, {d}::T *out, const Sides s, const Walk<3, {rank}> w"
                    );
                    Source::instance(HEADERS, "multiply_tiles", common, parameters)
                }
                ProductKernel::Columns => Source::instance(HEADERS, "multiply_columns", common, lines),
                ProductKernel::Rows(team, early) => by_rows("multiply_rows", lines, team, early),
                ProductKernel::Together(team, early) => {
                    let of = format!("const RowsOf<{d}::T>");
                    let parameters = format!(
                        "{of} a, {of} b, {of} c, const {d}::T *vector, u64 second, u64 third, const Walk<3, {rank}> w"
                    );
                    by_rows("multiply_rows_together", parameters, team, early)
                }
            }
        })
    }

    /// Enqueues a product. `early` is true for a factor that nothing in the job's graph writes.
    pub fn run(
        &self,
        job: &Job<'_>,
        product: &Product,
        at: Addresses,
        early: [bool; 2],
    ) -> Result<()> {
        if let Some(v) = with_vector(product, at) {
            return self.vector(job, &v, early[v.matrix]);
        }
        let p = product;
        let kernel = self.kernel(job, ProductKernel::Tiles, p)?;
        let tiles = (p.m as u64).div_ceil(TILE) * (p.n as u64).div_ceil(TILE) * p.batch.len();
        let sides = [p.m, p.n, p.k, p.a[0], p.a[1], p.b[0], p.b[1], p.out[0], p.out[1]];
        let (batch, grid) = (p.batch.parameter_in(rank_of(p.batch.count)), grid(tiles, BLOCK));
        launch!(job, &kernel, grid; at[0], at[1], at[2], sides, batch[..])
    }

    /// Enqueues a product of a matrix and a vector.
    fn vector(&self, job: &Job<'_>, v: &WithVector, early: bool) -> Result<()> {
        let (p, at, lines) = (&v.product, v.at, v.lines());
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
                early &= team.packs > 0;
                (ProductKernel::Rows(team, early), team.blocks(results), team.block())
            }
        };
        early &= matches!(part, ProductKernel::Rows(..));
        let kernel = self.kernel(job, part, p)?;
        let grid = Grid { early, ..grid(blocks, threads) };
        launch!(job, &kernel, grid; at[0], at[1], at[2], lines, batch[..])
    }

    /// The team for the product of one matrix and a vector, if it may run together with others.
    fn team(&self, job: &Job<'_>, v: &WithVector) -> Option<Team> {
        let (p, bytes) = (&v.product, self.dtype.bytes());
        let Vector::Rows { packed: true } = how(p, bytes, v.at) else { return None };
        let parallelism = job.device.properties.parallelism();
        let fits = p.batch.len() == 1 && p.is_small();
        fits.then(|| Team::of(p.m as u64, p.k, bytes, true, parallelism))
    }

    /// The kind of a product with a vector that may run in one launch with others of the same vector. Teams with different
    /// sizes are different kinds, so sums are the same as those of a single product.
    pub fn kind(&self, job: &Job<'_>, product: &Product, at: Addresses) -> Option<Kind> {
        let v = with_vector(product, at)?;
        let team = self.team(job, &v)?;
        // Addresses are below 2^57, so the upper bits are free for the team.
        let number = v.at[1] | u64::from(team.packs) << 57 | u64::from(team.threads > WARP) << 63;
        Some(Kind { most: MOST_TOGETHER, number })
    }

    /// Enqueues products of one kind as one launch, with `early` of [`Self::run`] for each. Returns false if they have
    /// to run one by one.
    pub fn run_together(
        &self,
        jobs: &[Job<'_>],
        products: &[(Product, Addresses, [bool; 2])],
    ) -> Result<bool> {
        let (Some(job), Some(all)) = (
            jobs.first(),
            products.iter().map(|(p, at, _)| with_vector(p, *at)).collect::<Option<Vec<_>>>(),
        ) else {
            return Ok(false);
        };
        let [a, b, rest @ ..] = &all[..] else { return Ok(false) };
        let c = rest.first().unwrap_or(b);
        let Some(team) = self.team(job, a) else { return Ok(false) };
        let alike = |v: &WithVector| {
            (v.product.k, v.product.b[0], v.at[1]) == (a.product.k, a.product.b[0], a.at[1])
                && self.team(job, v) == Some(team)
        };
        if !all.iter().all(alike) {
            return Ok(false);
        }
        let early = all.iter().zip(products).all(|(v, (.., early))| early[v.matrix]);
        let kernel = self.kernel(job, ProductKernel::Together(team, early), &a.product)?;
        let blocks = |v: &WithVector| team.blocks(v.product.m as u64);
        let (second, third) = (blocks(a), blocks(a) + blocks(b));
        let count = all.iter().map(blocks).sum();
        let [x, y, z] = [a, b, c].map(WithVector::words);
        let batch = a.product.batch.parameter_in(rank_of(a.product.batch.count));
        let grid = Grid { early, ..grid(count, team.block()) };
        launch!(job, &kernel, grid; x, y, z, a.at[1], second, third, batch[..]).map(|()| true)
    }
}

/// A product of a matrix and a vector; `n` is 1.
struct WithVector {
    product: Product,
    at: Addresses,
    /// Index of the factor that is the matrix.
    matrix: usize,
}

impl WithVector {
    /// Sizes and strides, in the order of `Lines`.
    fn lines(&self) -> [i64; 6] {
        let p = &self.product;
        [p.m, p.k, p.a[0], p.a[1], p.b[0], p.out[0]]
    }

    /// The words of a `RowsOf`, the struct of the kernels.
    fn words(&self) -> [u64; 8] {
        let [rows, k, row, column, vector, out] = self.lines().map(|x| x as u64);
        [self.at[0], self.at[2], rows, k, row, column, vector, out]
    }
}

/// Treats a product with one column or one row as a product of a matrix and a vector.
fn with_vector(product: &Product, at: Addresses) -> Option<WithVector> {
    match (product.m, product.n) {
        (_, 1) => Some(WithVector { product: product.clone(), at, matrix: 0 }),
        (1, _) => {
            let at = [at[1], at[0], at[2]];
            Some(WithVector { product: product.transposed(), at, matrix: 1 })
        }
        _ => None,
    }
}

/// A grid whose blocks loop with the grid's stride.
fn grid(blocks: u64, threads: u32) -> Grid {
    Grid::line(blocks.min(i32::MAX as u64) as u32, threads)
}

/// How a product with `n` of 1 is computed.
pub fn how(p: &Product, bytes: u64, at: Addresses) -> Vector {
    let [row, col] = p.a.map(i64::unsigned_abs);
    let whole = |elements: i64| elements.unsigned_abs().wrapping_mul(bytes).is_multiple_of(16);
    let batch_fits =
        p.batch.stride[..2].iter().all(|s| s[..p.batch.count].iter().all(|s| whole(*s)));
    // The stride of an axis of size 1 is never used.
    let row_fits = p.m == 1 || whole(p.a[0]);
    let together = p.a[1] == 1 && (p.b[0] == 1 || p.k == 1);
    let aligned = at[..2].iter().all(|address| address.is_multiple_of(16));
    let packed = together && row_fits && batch_fits && aligned;
    match col <= row || p.m == 1 {
        true => Vector::Rows { packed },
        false => Vector::Columns,
    }
}

/// Copies of operands into the workspace, for calls of the library; see [`super::gemm::Pack`].
pub struct Packer {
    dtype: Dtype,
    kernels: Kernels<(usize, bool)>,
}

impl Packer {
    /// Copies of elements with the dtype's size.
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

    /// Threads that 132 multiprocessors run at once.
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
        // A warp loads everything at once.
        assert_eq!(team(16, 2047, 2), (32, 4));
        assert_eq!(team(16, 2048, 2), (32, 8));
        assert_eq!(team(16, 2056, 2), (256, 1));
        // The multiplication of results by threads must not overflow.
        assert_eq!(team(1 << 50, 64, 4), (32, 1));
    }

    #[test]
    fn no_more_is_read_at_once_than_rows_have() {
        for (k, packs) in
            [(1, 1), (511, 1), (512, 2), (1023, 2), (1024, 4), (2048, 8), (1 << 40, 8)]
        {
            assert_eq!(team(1 << 20, k, 2), (32, packs), "{k}");
        }
        for (k, packs) in [(1028, 1), (2048, 2), (4095, 2), (4096, 4), (65536, 4)] {
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
