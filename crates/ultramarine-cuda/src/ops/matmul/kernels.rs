//! Our own products: tiles for any matrices, and two ways to multiply a matrix and a vector.

use super::product::Product;
use crate::launch::{Axes, BLOCK, Dtype, Grid, Job, MAX_AXES, launch};
use crate::ops::text;
use crate::program::{Kernel, Lazy, Programs, Source};
use ultramarine_abi::helper::Result;

const TEXTS: &[&str] = &[text::NUMBER, text::WALK, include_str!("../../../kernels/matmul.cuh")];

/// Side of a tile, as `matmul.cuh` has it.
const TILE: u64 = 64;
/// Threads that make one result where results are few.
const WIDE_TEAM: u32 = 256;
/// The same where they are many.
const WARP: u32 = 32;

/// Addresses of the first elements of `a`, `b` and `out`.
pub type Addresses = [u64; 3];

/// A kernel by how many axes of a batch it has room for (1 or all) and the width of its indices.
struct Variants([[Lazy; 2]; 2]);

impl Variants {
    const ROOMS: [usize; 2] = [1, MAX_AXES];

    /// `entry(room, index)` gives the kernel's parameters and body.
    fn new(name: &str, entry: impl Fn(usize, &str) -> (String, String)) -> Self {
        let make = |room: usize, index: &str| {
            let (parameters, body) = entry(room, index);
            let tail = format!("extern \"C\" __global__ void kernel({parameters}) {{ {body} }}\n");
            Lazy::new(Source::new(format!("{name} {room} {index}"), TEXTS, tail))
        };
        Self(Self::ROOMS.map(|room| [make(room, "i32"), make(room, "i64")]))
    }

    fn get(&self, programs: &Programs, axes: usize, small: bool) -> Result<Kernel> {
        self.0[usize::from(axes > 1)][usize::from(!small)].get(programs)
    }
}

/// The parameter of a walk with room for one axis or for all.
fn walk<const K: usize>(axes: &Axes<K>) -> Vec<u64> {
    let room = Variants::ROOMS[usize::from(axes.count > 1)];
    let mut words = vec![axes.len(), axes.count as u64];
    words.extend(axes.size[..room].iter().map(|n| *n as u64));
    for stride in &axes.stride {
        words.extend(stride[..room].iter().map(|n| *n as u64));
    }
    words
}

/// Products of matrices of one dtype, over any strides.
pub struct Kernels {
    dtype: Dtype,
    tiles: Variants,
    columns: Variants,
    /// By team (a warp, a block), then by whether 16 bytes are read at once.
    rows: [[Variants; 2]; 2],
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

impl Kernels {
    /// Of elements of a dtype that is not bool.
    pub fn new(dtype: Dtype) -> Self {
        let d = dtype.tag();
        let pointers = |first: &str, second: &str| {
            format!("const {d}::T *{first}, const {d}::T *{second}, {d}::T *out")
        };
        let rows = |team: u32, packed: bool| {
            Variants::new(&format!("matmul rows {d} {team} {packed}"), |room, index| {
                let pointers = pointers("matrix", "vector");
                (
                    format!("{pointers}, const Lines s, const Walk<3, {room}> w"),
                    format!(
                        "multiply_rows<{d}, {room}, {index}, {team}, {packed}>(matrix, vector, out, s, w);"
                    ),
                )
            })
        };
        Self {
            dtype,
            tiles: Variants::new(&format!("matmul tiles {d}"), |room, index| {
                (
                    format!("{}, const Sides s, const Walk<3, {room}> w", pointers("a", "b")),
                    format!("multiply_tiles<{d}, {room}, {index}>(a, b, out, s, w);"),
                )
            }),
            columns: Variants::new(&format!("matmul columns {d}"), |room, index| {
                let pointers = pointers("matrix", "vector");
                (
                    format!("{pointers}, const Lines s, const Walk<3, {room}> w"),
                    format!("multiply_columns<{d}, {room}, {index}>(matrix, vector, out, s, w);"),
                )
            }),
            rows: [WARP, WIDE_TEAM].map(|team| [rows(team, false), rows(team, true)]),
        }
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
        let kernel = self.tiles.get(&job.device.programs, p.batch.count, p.is_small())?;
        let tiles = (p.m as u64).div_ceil(TILE) * (p.n as u64).div_ceil(TILE) * p.batch.len();
        let sides = [p.m, p.n, p.k, p.a[0], p.a[1], p.b[0], p.b[1], p.out[0], p.out[1]];
        let (batch, grid) = (walk(&p.batch), grid(tiles));
        launch!(job, &kernel, grid; at[0], at[1], at[2], sides, batch[..])
    }

    /// Enqueues a product with `n` of 1.
    fn vector(&self, job: &Job<'_>, p: &Product, at: Addresses) -> Result<()> {
        let lines = [p.m, p.k, p.a[0], p.a[1], p.b[0], p.out[0]];
        let (results, batch) = (p.m as u64 * p.batch.len(), walk(&p.batch));
        let (variants, blocks) = match how(p, self.dtype.bytes(), at) {
            Vector::Columns => (&self.columns, (p.m as u64).div_ceil(32) * p.batch.len()),
            Vector::Rows { packed } => {
                let few = results * u64::from(WARP) < job.device.properties.parallelism();
                let wide = few && p.k >= 8 * i64::from(WIDE_TEAM);
                let team = if wide { WIDE_TEAM } else { WARP };
                let variants = &self.rows[usize::from(wide)][usize::from(packed)];
                (variants, results.div_ceil(u64::from(BLOCK / team)))
            }
        };
        let kernel = variants.get(&job.device.programs, p.batch.count, p.is_small())?;
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
pub struct Packer(Variants);

impl Packer {
    /// Of elements of so many bytes as the dtype has.
    pub fn new(dtype: Dtype) -> Self {
        let d = dtype.word().tag();
        Self(Variants::new(&format!("matmul pack {d}"), |room, index| {
            (
                format!("const {d}::T *in, {d}::T *out, const Walk<2, {room}> w"),
                format!("pack_operand<{d}, {room}, {index}>(in, out, w);"),
            )
        }))
    }

    /// Enqueues a copy from one address to another.
    pub fn run(&self, job: &Job<'_>, axes: &Axes<2>, from: u64, to: u64) -> Result<()> {
        let kernel = self.0.get(&job.device.programs, axes.count, axes.is_small())?;
        let (words, grid) = (walk(axes), Grid::over(job.device, axes.len(), 4));
        launch!(job, &kernel, grid; from, to, words[..])
    }
}
