//! The functions that multiply matrices of a dtype at a level.

use super::gemv::{self, GemvFns};
#[cfg(target_arch = "x86_64")]
use super::groups::{Bits, Group, pack_groups};
use super::micro::{self, Kernels, Tile};
use super::pack::{self, LinesFn, PackFn, StoreFn};
use super::simd::Storage;
#[cfg(target_arch = "x86_64")]
use super::tiles;
use crate::amx::{TILE, Tiles};
use crate::{dtype::DType, level::Level};
use half::{bf16, f16};

/// The functions and sizes for one dtype at one level. "Numbers" have the type in which products
/// are accumulated; complex matrices are treated as real ones.
#[derive(Clone, Copy)]
pub struct Ops {
    /// Bytes of an element.
    pub storage: usize,
    /// Bytes of a number.
    pub acc: usize,
    /// Numbers per element, along k and along n: 2 for complex.
    pub expand: usize,
    /// Elements per number, along k.
    pub group: usize,
    /// The functions for groups of elements, if the processor multiplies groups.
    pub groups: Option<&'static Ops>,
    /// Set if elements are numbers, and there are kernels that read A in place.
    pub in_place: bool,
    /// Set if a row of C's elements is a row of numbers.
    pub direct_c: bool,
    /// Largest number of rows of a kernel.
    pub mr: usize,
    /// Panels of A have a multiple of this many rows: 1, or [`TILE`] where kernels multiply tiles.
    pub tile: usize,
    /// Columns of a vector; kernels have one or two.
    pub lanes: usize,
    /// Preferred length of a block along k.
    pub kc: usize,
    /// The kernels.
    pub kernels: Kernels,
    /// Packs A.
    pub pack_a: PackFn,
    /// Packs B.
    pub pack_b: PackFn,
    /// Packs rows of real numbers that begin at any address.
    pub pack_lines: LinesFn,
    /// Stores sums.
    pub store: StoreFn,
    /// Matrix times vector, for real floating types.
    pub gemv: Option<GemvFns>,
}

impl Ops {
    /// The functions for elements that are whole groups.
    pub fn of_groups(&self) -> Ops {
        Ops { pack_b: WHOLE, ..*self }
    }

    /// First row of a panel, if `m` rows are divided into `panels` panels of nearly equal height.
    pub fn row_of(&self, panel: usize, panels: usize, m: usize) -> usize {
        (panel * m.div_ceil(self.tile) / panels * self.tile).min(m)
    }

    /// Rows of A, with padding.
    pub fn padded_rows(&self, rows: usize) -> usize {
        rows.next_multiple_of(self.tile)
    }

    /// Length of blocks along k: nearly equal, at most `most`.
    pub fn even_k(&self, k: usize, most: usize) -> usize {
        k.div_ceil(k.div_ceil(most).max(1)).next_multiple_of(8.max(self.tile))
    }

    /// Prepares this thread's registers for the kernels, until the result is dropped.
    pub fn begin(&self) -> Option<Tiles> {
        (self.tile == TILE).then(Tiles::configure)
    }

    /// Computes a tile, with A packed or in place.
    ///
    /// # Safety
    /// As [`micro::MicroFn`]; this thread has called `begin`.
    #[inline(always)]
    pub unsafe fn multiply(&self, tile: &Tile, in_place: bool) {
        let vectors = tile.cols.div_ceil(self.lanes);
        // SAFETY: passed on.
        unsafe { self.kernels[tile.rows - 1][vectors - 1][usize::from(in_place)](tile) }
    }
}

macro_rules! level_fns {
    ($name:ident, $v4:literal, $(#[$features:meta])*) => {
        mod $name {
            use super::super::pack::{self, Block, Lines, Panel};
            use super::Storage;
            /// # Safety
            /// As [`pack::PackFn`].
            $(#[$features])*
            pub unsafe fn pack<S: Storage>(p: &Panel) {
                // SAFETY: passed on; the level's features are enabled here.
                unsafe { pack::pack::<S, $v4>(p) }
            }
            /// # Safety
            /// As [`pack::LinesFn`].
            $(#[$features])*
            pub unsafe fn lines<S: Storage>(l: &Lines<'_>) {
                // SAFETY: passed on; the level's features are enabled here.
                unsafe { pack::pack_lines::<S, $v4>(l) }
            }
            /// # Safety
            /// As [`pack::StoreFn`].
            $(#[$features])*
            pub unsafe fn store<S: Storage>(b: &Block) {
                // SAFETY: passed on.
                unsafe { pack::store::<S>(b) }
            }
        }
    };
}
level_fns!(baseline, false,);
#[cfg(target_arch = "x86_64")]
level_fns!(v3, false, #[target_feature(enable = "avx2,fma,f16c")]);
#[cfg(target_arch = "x86_64")]
level_fns!(v4, true, #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]);

/// Packing and storing of `S` at a level.
fn copies<S: Storage>(level: Level) -> (PackFn, LinesFn, StoreFn) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::V3 => (v3::pack::<S>, v3::lines::<S>, v3::store::<S>),
        #[cfg(target_arch = "x86_64")]
        Level::V4 | Level::Amx => (v4::pack::<S>, v4::lines::<S>, v4::store::<S>),
        _ => (baseline::pack::<S>, baseline::lines::<S>, baseline::store::<S>),
    }
}

/// Bytes of the vectors of [`Level::Baseline`]: two registers of NEON, or one of SSE2.
const BASELINE_BYTES: usize = if cfg!(target_arch = "aarch64") { 32 } else { 16 };

/// Kernels, and the lanes of their vectors, for numbers of a kind at a level.
fn kernels(kind: DType, level: Level) -> (Kernels, usize) {
    macro_rules! tables {
        ($module:ident $bytes:expr) => {
            match kind {
                DType::F32 => (micro::$module::F32, $bytes / 4),
                DType::F64 => (micro::$module::F64, $bytes / 8),
                DType::U32 => (micro::$module::U32, $bytes / 4),
                _ => (micro::$module::U64, $bytes / 8),
            }
        };
    }
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::V3 => tables!(v3 32),
        #[cfg(target_arch = "x86_64")]
        Level::V4 | Level::Amx => tables!(v4 64),
        _ => tables!(baseline BASELINE_BYTES),
    }
}

/// Packing of whole groups.
#[cfg(target_arch = "x86_64")]
const WHOLE: PackFn = v4::pack::<Group>;
#[cfg(not(target_arch = "x86_64"))]
const WHOLE: PackFn = baseline::pack::<u32>;

/// The functions for groups of a dtype's elements.
#[cfg(target_arch = "x86_64")]
fn groups(dtype: DType, level: Level) -> Option<&'static Ops> {
    use std::arch::is_x86_feature_detected as has;
    static BF16: Ops = grouped::<bf16, u16, 2>(micro::v4_bf16::PAIRS);
    static WORDS: Ops = grouped::<u16, u16, 2>(micro::v4_vnni::PAIRS);
    static BYTES: Ops = grouped::<u8, u8, 4>(micro::v4_vnni::FOURS);
    static BF16_TILES: Ops = tiled::<u16, 2>(&BF16, tiles::PAIRS);
    static BYTE_TILES: Ops = tiled::<u8, 4>(&BYTES, tiles::FOURS);
    match dtype {
        _ if level < Level::V4 => None,
        DType::BF16 if level == Level::Amx => Some(&BF16_TILES),
        DType::I8 | DType::U8 if level == Level::Amx => Some(&BYTE_TILES),
        DType::BF16 if has!("avx512bf16") => Some(&BF16),
        DType::I16 | DType::U16 if has!("avx512vnni") => Some(&WORDS),
        DType::I8 | DType::U8 if has!("avx512vnni") => Some(&BYTES),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn groups(_: DType, _: Level) -> Option<&'static Ops> {
    None
}

/// The functions for groups of `N` elements of `S`, whose bits are `T`.
#[cfg(target_arch = "x86_64")]
const fn grouped<S: Storage, T: Bits, const N: usize>(kernels: Kernels) -> Ops {
    Ops {
        storage: size_of::<S>(),
        acc: 4,
        expand: 1,
        group: N,
        groups: None,
        in_place: false,
        direct_c: false,
        mr: kernels.len(),
        tile: 1,
        lanes: 16,
        kc: 512,
        kernels,
        pack_a: pack_groups::<T, N>,
        pack_b: pack_groups::<T, N>,
        pack_lines: v4::lines::<Group>,
        store: v4::store::<S>,
        gemv: None,
    }
}

/// The same functions for kernels that multiply tiles.
#[cfg(target_arch = "x86_64")]
const fn tiled<T: Bits, const N: usize>(of: &Ops, kernels: Kernels) -> Ops {
    Ops {
        mr: kernels.len(),
        tile: TILE,
        kernels,
        pack_a: tiles::pack::<T, N>,
        pack_lines: tiles::pack_lines,
        ..*of
    }
}

/// The functions for a dtype; none for bool, which has no products.
pub fn ops(dtype: DType, level: Level) -> Option<Ops> {
    let (kind, (pack, lines, store), gemv) = match dtype {
        DType::Bool => return None,
        // Packing only moves bits; the kernels interpret them.
        DType::F32 => (DType::F32, copies::<u32>(level), Some(gemv::fns::<f32>())),
        DType::F64 => (DType::F64, copies::<u64>(level), Some(gemv::fns::<f64>())),
        DType::F16 => (DType::F32, copies::<f16>(level), Some(gemv::fns::<f16>())),
        DType::BF16 => (DType::F32, copies::<bf16>(level), Some(gemv::fns::<bf16>())),
        DType::C64 => (DType::F32, copies::<u32>(level), None),
        DType::U8 | DType::I8 => (DType::U32, copies::<u8>(level), None),
        DType::U16 | DType::I16 => (DType::U32, copies::<u16>(level), None),
        DType::U32 | DType::I32 => (DType::U32, copies::<u32>(level), None),
        DType::U64 | DType::I64 => (DType::U64, copies::<u64>(level), None),
    };
    let (kernels, lanes) = kernels(kind, level);
    let complex = dtype == DType::C64;
    let acc = kind.size();
    let direct_c = complex || acc == dtype.size();
    Some(Ops {
        storage: dtype.size(),
        acc,
        expand: if complex { 2 } else { 1 },
        group: 1,
        groups: groups(dtype, level),
        in_place: matches!(dtype, DType::F32 | DType::F64)
            && (level > Level::Baseline || cfg!(target_arch = "aarch64")),
        direct_c,
        mr: kernels.len(),
        tile: 1,
        lanes,
        kc: 2048 / acc,
        kernels,
        pack_a: if complex { pack::pack_a_complex } else { pack },
        pack_b: if complex { pack::pack_b_complex } else { pack },
        pack_lines: lines,
        store: if complex { pack::store_complex } else { store },
        gemv,
    })
}
