//! Matrix products: (..., m, k) x (..., k, n), any strides.
//!
//! The blocked algorithm of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication, 2008) in the form
//! of BLIS: panels of A and B are packed, and a micro-kernel multiplies two panels, with a tile of C in registers. Rows
//! are divided into panels of nearly equal height (there are kernels for every height up to the largest), so that no
//! work is wasted on padding. Columns are divided into pairs of vectors, the last one masked.
//!
//! float16, bfloat16 and narrow integers are widened while packing, and narrowed once at the end. Complex matrices
//! become real ones when B is packed.
//!
//! The division of a product depends only on its shape and on the level, and every element of C is summed in the order
//! of k.

// Small arrays of registers are walked by index, several at a time.
#![allow(clippy::needless_range_loop)]

pub(crate) mod block;
mod gather;
mod gemv;
#[cfg(target_arch = "x86_64")]
mod groups;
pub(crate) mod items;
pub(crate) mod micro;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod ops;
pub(crate) mod pack;
mod segmented;
pub(crate) mod simd;
mod skinny;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tiles;

use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature, View};
use crate::level::Level;
use crate::par::{Par, Shared};
pub(crate) use block::PACKED;
use block::{multiply, serial};
use ops::Ops;
pub(crate) use skinny::mul_acc;
use ultramarine_abi::schema::{PrecisionAttrs, op};
use ultramarine_abi::{MAX_NDIM, precision};

/// A matrix. Strides in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    data: *mut u8,
    row: isize,
    col: isize,
}

/// One product. `m`, `n` and `k` count numbers (see [`Ops::expand`]).
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    ops: &'a Ops,
    m: usize,
    n: usize,
    k: usize,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    /// Elements along k from the start of this part. If they end within the last of the `k` numbers, that number is a
    /// smaller group.
    depth: usize,
    /// Set if the product is added to C; kernels then write directly to C.
    accumulate: bool,
}

impl<'a> Product<'a> {
    /// A product of so many rows, columns and steps of k.
    fn new(ops: &'a Ops, [m, n, k]: [usize; 3], [a, b, c]: [Matrix; 3]) -> Self {
        Product { ops, m, n, k, a, b, c, depth: k, accumulate: false }
    }

    /// The same product on groups of elements, if there are functions for groups and the product is not limited by
    /// memory.
    fn grouped(&self) -> Option<Self> {
        let ops = self.ops.groups?;
        let few = self.m.min(self.n) == 1 || self.m <= FEW && self.few_rows();
        let k = self.k.div_ceil(ops.group);
        (!few).then_some(Product { ops, k, ..*self })
    }

    /// Multiply-adds of numbers.
    fn work(&self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }
}

// SAFETY: the addresses may be used from any thread while the call that made the
// product runs; tasks write disjoint parts of C.
unsafe impl Sync for Product<'_> {}

/// Multiply-adds worth a task of their own (some ten microseconds).
pub(crate) const GRAIN: usize = 1 << 20;

/// Largest number of rows for which reading the second factor limits the time, whatever the multiplication costs.
const FEW: usize = 8;

/// Prepares an operation of the family.
pub fn prepare_op(op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    match op.id {
        op::MATMUL => {
            check_precision(op.attributes::<PrecisionAttrs>()?.precision)?;
            prepare(signature, level)
        }
        op::GATHER_MATMUL => gather::prepare(op.attributes()?, signature),
        op::SEGMENTED_MATMUL => segmented::prepare(signature),
        _ => Err(Refusal::Unsupported),
    }
}

/// Rejects unknown precisions. Permitted rounding is not used here.
pub(crate) fn check_precision(code: u32) -> Result<(), Refusal> {
    if precision::is_known(code) { Ok(()) } else { Err(Refusal::Unsupported) }
}

/// Prepares MATMUL.
pub fn prepare(signature: &Signature<'_>, level: Level) -> Prepared {
    let ([a, b], [c]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("matmul has two inputs and one output".into()));
    };
    ensure!(a.dtype == b.dtype && a.dtype == c.dtype, "matmul of different dtypes");
    if a.ndim < 2 || a.ndim != b.ndim || a.ndim != c.ndim {
        return Err(Refusal::Invalid("matmul needs equal ranks of at least 2".into()));
    }
    // The context has the level to use; this only checks that there are kernels.
    ops::ops(a.dtype, level).ok_or(Refusal::Unsupported)?;
    Ok(Box::new(Matmul {
        ops: Level::of_products().iter().filter_map(|l| ops::ops(a.dtype, *l)).collect(),
    }))
}

/// The functions for each level that is available.
struct Matmul {
    ops: Vec<Ops>,
}

/// Batch dimensions: sizes and byte strides of A, B and C.
struct Batch {
    dims: [(usize, [isize; 3]); MAX_NDIM],
    n: usize,
}

impl Batch {
    /// Number of products.
    fn count(&self) -> usize {
        self.dims[..self.n].iter().map(|d| d.0).product()
    }

    /// Offsets of the `i`th product.
    fn offsets(&self, mut i: usize) -> [isize; 3] {
        let mut at = [0; 3];
        for (size, strides) in self.dims[..self.n].iter().rev() {
            let index = (i % size) as isize;
            i /= size;
            for (at, stride) in at.iter_mut().zip(strides) {
                *at += index * stride;
            }
        }
        at
    }
}

/// The matrix in the last two dimensions.
fn matrix(v: &View<'_>) -> Matrix {
    let (size, n) = (v.dtype.size() as isize, v.strides.len());
    Matrix {
        data: v.data,
        row: v.strides[n - 2] as isize * size,
        col: v.strides[n - 1] as isize * size,
    }
}

/// A matrix as its address and the byte strides of its rows and columns.
pub(crate) type MatrixAt = (*mut u8, [isize; 2]);

/// One product, on all threads if that is worth it: `m x k` times `k x n`, each matrix as
/// its address and the byte strides of its rows and columns. For real dtypes.
///
/// # Safety
/// The matrices are valid and C overlaps none; `ops` is of `cx.level`.
pub(crate) unsafe fn matmul(
    cx: &Context,
    ops: &Ops,
    [m, n, k]: [usize; 3],
    [a, b, c]: [MatrixAt; 3],
) {
    let [a, b, c] = [a, b, c].map(|(data, [row, col])| Matrix { data, row, col });
    let product = Product::new(ops, [m, n, k], [a, b, c]);
    // SAFETY: by this function's contract.
    unsafe { multiply(&cx.par, &product, cx.level) }
}

/// `c = a b`, or added to c, else as [`matmul`]. For real and complex dtypes; elements of a row of C are adjacent.
///
/// # Safety
/// As [`matmul`].
#[cfg(feature = "linalg")]
pub(crate) unsafe fn product(
    cx: &Context,
    ops: &Ops,
    [m, n, k]: [usize; 3],
    [a, b, c]: [MatrixAt; 3],
    accumulate: bool,
) {
    let [a, b, c] = [a, b, c].map(|(data, [row, col])| Matrix { data, row, col });
    let product = Product::new(ops, [m, n * ops.expand, k * ops.expand], [a, b, c]);
    debug_assert!(c.col == ops.storage as isize && ops.direct_c);
    // SAFETY: by this function's contract.
    unsafe { multiply(&cx.par, &Product { accumulate, ..product }, cx.level) }
}

impl Kernel for Matmul {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let ([a, b], [c]) = (args.inputs, args.outputs) else {
            return Err("matmul has two inputs and one output".into());
        };
        let nd = c.shape.len();
        let (m, n, k) = (c.shape[nd - 2], c.shape[nd - 1], a.shape[nd - 1]);
        if a.shape[nd - 2] != m
            || b.shape[nd - 1] != n
            || b.shape[nd - 2] != k
            || a.shape[..nd - 2] != c.shape[..nd - 2]
            || b.shape[..nd - 2] != c.shape[..nd - 2]
        {
            return Err(format!("matmul of {:?} and {:?} into {:?}", a.shape, b.shape, c.shape));
        }
        let ops = self.ops.get(cx.level as usize).ok_or("the level is not available")?;
        let (columns, depth) = (n as usize * ops.expand, k as usize * ops.expand);
        let mut product =
            Product::new(ops, [m as usize, columns, depth], [matrix(a), matrix(b), matrix(c)]);
        let mut batch = Batch { dims: [(0, [0; 3]); MAX_NDIM], n: 0 };
        let size = ops.storage as isize;
        for d in 0..nd - 2 {
            if c.shape[d] != 1 {
                let strides = [a, b, c].map(|v| v.strides[d] as isize * size);
                batch.dims[batch.n] = (c.shape[d] as usize, strides);
                batch.n += 1;
            }
        }
        // If B is the same for a whole batch dimension, treat that dimension as additional rows.
        while let Some((count, [sa, 0, sc])) = batch.dims[..batch.n].last().copied() {
            let p = &mut product;
            if p.m == 1 {
                (p.a.row, p.c.row) = (sa, sc);
            } else if sa != p.a.row * p.m as isize || sc != p.c.row * p.m as isize {
                break;
            }
            p.m *= count;
            batch.n -= 1;
        }
        if product.m == 0 || product.n == 0 || batch.count() == 0 {
            return Ok(());
        }
        // SAFETY: the tensors are valid for their shapes and strides.
        unsafe { run(cx, &product, &batch) }
        Ok(())
    }
}

/// # Safety
/// All products of the batch are valid.
unsafe fn run(cx: &Context, product: &Product<'_>, batch: &Batch) {
    let one = |i: usize| {
        let (mut p, [a, b, c]) = (*product, batch.offsets(i));
        p.a.data = p.a.data.wrapping_offset(a);
        p.b.data = p.b.data.wrapping_offset(b);
        p.c.data = p.c.data.wrapping_offset(c);
        p
    };
    let Product { m, n, k, .. } = *product;
    let (count, work) = (batch.count(), product.work());
    let footprint = m * k + k * n + m * n;
    let level = cx.level;
    // SAFETY (of the calls below): the products are valid; different ones of a
    // batch have different outputs.
    if count > 1 && (work <= 16 * GRAIN || footprint <= 1 << 18) && footprint <= 1 << 20 {
        let group = (GRAIN / work.max(1)).clamp(1, count);
        cx.par.run(count.div_ceil(group), |g| {
            for i in g * group..count.min((g + 1) * group) {
                // SAFETY: see above.
                unsafe { serial(&one(i), level) }
            }
        });
    } else {
        // SAFETY: see above.
        unsafe { block::multiply_each(&cx.par, (count, &one), level) }
    }
}
