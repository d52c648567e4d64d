//! The choice of a product's kernel and number of splits, by its shape and the device.

use super::matrices::Tile;
use crate::dtype::Dtype;
use crate::hal::{Properties, Units};
use crate::ops::units;

/// The family of a product's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Blocks of 4 by 4 per invocation, without shared memory: `block.wgsl`.
    Block,
    /// Square tiles per workgroup: `tile.wgsl`.
    Tile {
        /// Rows and columns of a tile.
        side: u32,
    },
    /// Tiles of half dtypes by matrix units: `matrices.wgsl`.
    Units {
        /// The tile.
        tile: Tile,
        /// How units are multiplied.
        how: Units,
    },
    /// For few rows of the first matrix: `few.wgsl`.
    Few {
        /// Rows per workgroup.
        rows: u32,
        /// True if the product is transposed, because it has few columns.
        transposed: bool,
    },
}

/// The dimensions of a product, which determine its [`Choice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of products.
    pub batch: u64,
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
    /// Number of terms of a sum.
    pub k: u64,
}

/// The properties of a device and of the operands that limit a [`Choice`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// [`Properties::gpu_kernels`].
    pub gpu_kernels: bool,
    /// Bytes of shared memory.
    pub group_memory: u32,
    /// Number of invocations that keep the device busy.
    pub parallelism: u64,
    /// Maximum number of iterations of loops.
    pub iterations: u32,
    /// [`Properties::units`] for matrices that are read in vectors of 8; otherwise `None`.
    pub units: [Option<Units>; 2],
    /// True if the second matrix is read along k.
    pub along_k: bool,
}

/// The kernel of a product, and how its sums are split among workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kernel.
    pub method: Method,
    /// Length of the part of k that a workgroup sums.
    pub length: u64,
    /// Number of such parts of k. If there are several, a second kernel adds their sums.
    pub splits: u64,
}

/// Invocations of a workgroup, for all methods except [`Method::Block`].
pub const GROUP: u32 = 256;
/// Tiles of units, large and small, for second matrices that are read across k, and along it. On an H200, products of
/// 4096 took 743 us across k, and 849 us along k with the tiles for it (1453 us with the other tiles).
pub const TILES: [[Tile; 2]; 2] = [
    [Tile { sides: [128, 128], warps: [2, 2], depth: 32, buffers: 1 }, SMALL],
    [Tile { sides: [128, 128], warps: [2, 4], depth: 64, buffers: 1 }, SMALL],
];
const SMALL: Tile = Tile { sides: [64, 64], warps: [2, 2], depth: 32, buffers: 2 };
/// Maximum number of rows for which [`Method::Few`] is chosen.
const FEW: u64 = 8;
/// If k is split, each part has at least this length, and is a multiple of it.
const SPLIT: u64 = 256;

impl Limits {
    /// The limits of a device.
    pub fn of(properties: &Properties) -> Self {
        Self {
            gpu_kernels: properties.gpu_kernels,
            group_memory: properties.group_memory,
            parallelism: properties.parallelism(),
            iterations: properties.iterations,
            units: properties.units,
            along_k: false,
        }
    }
}

/// Bytes of an element in shared memory.
pub fn shared_bytes(dtype: Dtype) -> u32 {
    dtype.bytes().max(4) as u32
}

/// Length of k between two barriers of a tile.
pub fn depth(side: u32) -> u32 {
    1024 / side
}

/// Number of a tile's buffers in shared memory: two if elements are small.
pub fn sides(dtype: Dtype) -> u32 {
    if shared_bytes(dtype) == 4 { 2 } else { 1 }
}

/// Bytes of shared memory of a tile. Both matrices are counted as read along k, which takes the
/// most.
fn tile_bytes(side: u32, dtype: Dtype) -> u32 {
    2 * sides(dtype) * side * (depth(side) / 4 + 1) * 4 * shared_bytes(dtype)
}

/// Number of workgroups of a product that is not split; for [`Method::Block`], the number of
/// invocations.
fn groups(method: Method, Shape { batch, m, n, .. }: Shape) -> u64 {
    batch
        * match method {
            Method::Block => m.div_ceil(4) * n.div_ceil(4),
            Method::Tile { side } => m.div_ceil(side.into()) * n.div_ceil(side.into()),
            Method::Units { tile: Tile { sides: [rows, columns], .. }, .. } => {
                m.div_ceil(rows.into()) * n.div_ceil(columns.into())
            }
            // In the transposed case, columns are counted as in `few_columns`, which has more of
            // them per workgroup.
            Method::Few { rows, transposed } => {
                let (m, n) = if transposed { (n, m) } else { (m, n) };
                m.div_ceil(rows.into()) * n.div_ceil(128)
            }
        }
}

/// Chooses the kernel and the split.
pub fn choose(shape: Shape, dtype: Dtype, limits: &Limits) -> Choice {
    let method = method(shape, dtype, limits);
    let k = shape.k.max(1);
    // An iteration covers at least 1 element of k.
    let most = u64::from(limits.iterations);
    let wanted = match (method, limits.gpu_kernels) {
        (Method::Block, true) => limits.parallelism,
        (Method::Block, false) => 1,
        _ => limits.parallelism / u64::from(GROUP),
    };
    let splits = (wanted / groups(method, shape)).clamp(1, k.div_ceil(SPLIT)).max(k.div_ceil(most));
    let length = match splits {
        1 => k,
        _ => k.div_ceil(splits).next_multiple_of(SPLIT),
    };
    Choice { method, length, splits: k.div_ceil(length) }
}

fn method(shape: Shape, dtype: Dtype, limits: &Limits) -> Method {
    if !limits.gpu_kernels || dtype == Dtype::Complex64 {
        return Method::Block;
    }
    let few = shape.m.min(shape.n);
    if few <= FEW && few < shape.m.max(shape.n) {
        let rows = [1, 4].into_iter().find(|rows| few <= *rows).unwrap_or(FEW);
        return Method::Few { rows: rows as u32, transposed: shape.n < shape.m };
    }
    let wanted = limits.parallelism / u64::from(GROUP);
    if let Some(how) = units::of(dtype, limits.units) {
        let fits = |tile: &Tile| tile.bytes() <= limits.group_memory;
        let mut last = None;
        for tile in TILES[usize::from(limits.along_k)].into_iter().filter(fits) {
            let units = Method::Units { tile, how };
            if 2 * groups(units, shape) >= wanted {
                return units;
            }
            last = Some(units);
        }
        if let Some(units) = last {
            return units;
        }
    }
    let fits = |side| tile_bytes(side, dtype) <= limits.group_memory;
    // Large tiles read less, if there are enough of them. Registers hold large tiles only for 4-byte
    // elements.
    let large = Method::Tile { side: 128 };
    if shared_bytes(dtype) == 4 && fits(128) && 2 * groups(large, shape) >= wanted {
        return large;
    }
    if fits(64) { Method::Tile { side: 64 } } else { Method::Block }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Limits = Limits {
        gpu_kernels: true,
        group_memory: 32768,
        parallelism: 65536,
        iterations: u32::MAX,
        units: [None; 2],
        along_k: false,
    };
    const PROCESSOR: Limits = Limits {
        gpu_kernels: false,
        group_memory: 32768,
        parallelism: 512,
        iterations: 65000,
        units: [None; 2],
        along_k: false,
    };

    fn of(batch: u64, m: u64, n: u64, k: u64) -> Shape {
        Shape { batch, m, n, k }
    }

    #[test]
    fn tiles_are_large_where_there_are_many() {
        let choice = |shape| choose(shape, Dtype::Float32, &GPU);
        let whole = |method, k| Choice { method, length: k, splits: 1 };
        assert_eq!(choice(of(1, 4096, 4096, 4096)), whole(Method::Tile { side: 128 }, 4096));
        assert_eq!(choice(of(1, 1024, 1024, 100)), whole(Method::Tile { side: 64 }, 100));
        assert_eq!(choice(of(64, 256, 256, 64)), whole(Method::Tile { side: 128 }, 64));
        let double = choose(of(1, 4096, 4096, 4096), Dtype::Float64, &GPU);
        assert_eq!(double, whole(Method::Tile { side: 64 }, 4096));
    }

    #[test]
    fn units_make_products_of_float16() {
        let native = Some(Units::Native);
        let limits = Limits { group_memory: 49152, units: [native, None], ..GPU };
        let of = |m, n, dtype, limits: &Limits| choose(of(1, m, n, 4096), dtype, limits).method;
        let units = |i: usize| Method::Units { tile: TILES[0][i], how: Units::Native };
        assert_eq!(of(4096, 4096, Dtype::Float16, &limits), units(0));
        assert_eq!(of(1024, 1024, Dtype::Float16, &limits), units(1));
        let both = Limits { units: [native; 2], ..limits };
        assert_eq!(of(4096, 4096, Dtype::Bfloat16, &both), units(0));
        let along = Limits { along_k: true, ..limits };
        let tile = TILES[1][0];
        let expected = Method::Units { tile, how: Units::Native };
        assert_eq!(of(4096, 4096, Dtype::Float16, &along), expected);
        assert_eq!(
            of(8, 4096, Dtype::Float16, &limits),
            Method::Few { rows: 8, transposed: false }
        );
        for (dtype, limits) in [
            (Dtype::Float32, limits),
            (Dtype::Bfloat16, limits),
            (Dtype::Float16, Limits { units: [None; 2], ..limits }),
        ] {
            assert_eq!(of(4096, 4096, dtype, &limits), Method::Tile { side: 128 }, "{dtype:?}");
        }
        // 32 KiB of shared memory are too little for the deeper tile.
        let small = Limits { group_memory: 32768, ..along };
        assert_eq!(of(4096, 4096, Dtype::Float16, &small), units(1));
    }

    #[test]
    fn few_tiles_split_k() {
        let choice = choose(of(1, 128, 128, 65536), Dtype::Bfloat16, &GPU);
        assert_eq!(choice.method, Method::Tile { side: 64 });
        assert_eq!((choice.splits, choice.length), (64, 1024));
        // No part of k is empty.
        for k in [1, 255, 256, 257, 1000, 5000, 100_000, 1_000_003] {
            for n in [9, 100, 1000] {
                let Choice { length, splits, .. } = choose(of(1, n, n, k), Dtype::Float32, &GPU);
                assert!(splits * length >= k && (splits - 1) * length < k, "{n} {k}");
                assert!(splits == 1 || length.is_multiple_of(SPLIT), "{n} {k}");
            }
        }
    }

    #[test]
    fn few_rows_or_columns_have_a_kernel_of_their_own() {
        let method = |m, n| choose(of(1, m, n, 4096), Dtype::Float16, &GPU).method;
        assert_eq!(method(1, 4096), Method::Few { rows: 1, transposed: false });
        assert_eq!(method(4096, 3), Method::Few { rows: 4, transposed: true });
        assert_eq!(method(8, 4096), Method::Few { rows: 8, transposed: false });
        assert_eq!(method(9, 4096), Method::Tile { side: 64 });
        assert_eq!(method(1, 1), Method::Tile { side: 64 });
    }

    #[test]
    fn processors_have_no_barriers_and_leave_no_loop_early() {
        let choice = |k| choose(of(1, 100, 1, k), Dtype::Float32, &PROCESSOR);
        assert_eq!(choice(1000), Choice { method: Method::Block, length: 1000, splits: 1 });
        assert_eq!(choice(65001), Choice { method: Method::Block, length: 32512, splits: 2 });
        assert_eq!(choose(of(1, 9, 9, 9), Dtype::Complex64, &GPU).method, Method::Block);
    }
}
