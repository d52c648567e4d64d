//! Micro-kernels: a tile of C in registers, a few rows by one or two vectors.

use super::simd::Simd;

/// Operands of a micro-kernel, in numbers of the accumulator's type. Strides are
/// in numbers too.
#[derive(Clone, Copy)]
pub struct Tile {
    /// Rows: those of the kernel.
    pub rows: usize,
    /// Length of the sums.
    pub k: usize,
    /// A: packed (`rows` numbers for each k), or in place.
    pub a: *const u8,
    /// Stride of A's rows, if in place.
    pub a_row: isize,
    /// Stride of A along k, if in place.
    pub a_k: isize,
    /// B: `vectors * LANES` numbers for each k.
    pub b: *const u8,
    /// Stride of B along k.
    pub b_k: isize,
    /// First element of the tile of C; its columns lie next to each other.
    pub c: *mut u8,
    /// Stride of C's rows.
    pub c_row: isize,
    /// Columns of C to write: more than `(vectors - 1) * LANES`, at most `vectors * LANES`.
    pub cols: usize,
    /// Add to C instead of overwriting it.
    pub accumulate: bool,
    /// Memory to prefetch to the L2 cache meanwhile: its start, and its bytes for each step of k.
    /// Any address and length are allowed.
    pub next: *const u8,
    /// See `next`.
    pub next_step: usize,
}

/// Computes a tile.
///
/// # Safety
/// The tile's operands are valid, and the instructions of the kernel's level are
/// available.
pub type MicroFn = unsafe fn(&Tile);

/// Number of steps of k before the end at which C's tile is prefetched.
const PREFETCH_STEPS: usize = 64;

/// The kernel for `MR` rows by `NV` vectors.
///
/// # Safety
/// As [`MicroFn`].
#[inline(always)]
pub unsafe fn kernel<V: Simd, const MR: usize, const NV: usize, const DIRECT: bool>(t: &Tile) {
    // SAFETY: by this function's contract, all accesses are within A, B and C:
    // `k` steps of MR numbers of A and NV vectors of B, MR rows of `cols` of C.
    unsafe {
        let (mut a, mut b) = (t.a as *const V::E, t.b as *const V::E);
        let c = t.c as *mut V::E;
        let mut acc = [[V::zero(); NV]; MR];
        let mut k = t.k;
        if DIRECT && NV == 1 {
            // Row addresses form a chain of additions as long as the number of rows; four steps of
            // k share it.
            while k >= 4 {
                let mut bv = [V::zero(); 4];
                for u in 0..4 {
                    bv[u] = V::load(b.wrapping_offset(u as isize * t.b_k));
                }
                for i in 0..MR {
                    let row = a.offset(i as isize * t.a_row);
                    for u in 0..4 {
                        let av = V::splat(row.offset(u as isize * t.a_k));
                        acc[i][0] = acc[i][0].mul_acc(av, bv[u]);
                    }
                }
                a = a.wrapping_offset(4 * t.a_k);
                b = b.wrapping_offset(4 * t.b_k);
                k -= 4;
            }
        }
        let mut next = t.next;
        // Prefetch C shortly before it is used, so that the panels do not evict it again.
        let tail = k.min(PREFETCH_STEPS);
        for steps in [k - tail, tail] {
            if steps == tail {
                for i in 0..MR {
                    for v in 0..NV {
                        let at = i as isize * t.c_row + (v * V::LANES) as isize;
                        V::prefetch(c.wrapping_offset(at));
                    }
                }
            }
            for _ in 0..steps {
                if !DIRECT {
                    V::prefetch_far(next as *const V::E);
                    next = next.wrapping_add(t.next_step);
                }
                let mut bv = [V::zero(); NV];
                for v in 0..NV {
                    bv[v] = V::load(b.add(v * V::LANES));
                }
                if DIRECT {
                    for i in 0..MR {
                        let av = V::splat(a.offset(i as isize * t.a_row));
                        for v in 0..NV {
                            acc[i][v] = acc[i][v].mul_acc(av, bv[v]);
                        }
                    }
                    a = a.wrapping_offset(t.a_k);
                } else {
                    V::add_outer(&mut acc, a, &bv);
                    a = a.add(MR);
                }
                b = b.wrapping_offset(t.b_k);
            }
        }
        let last = t.cols - (NV - 1) * V::LANES;
        let full = last == V::LANES;
        for i in 0..MR {
            let row = c.offset(i as isize * t.c_row);
            for v in 0..NV {
                let at = row.add(v * V::LANES);
                if full || v + 1 < NV {
                    let sum = if t.accumulate { V::load(at).plus(acc[i][v]) } else { acc[i][v] };
                    sum.store(at);
                } else {
                    let sum = if t.accumulate {
                        V::load_part(at, last).plus(acc[i][v])
                    } else {
                        acc[i][v]
                    };
                    sum.store_part(at, last);
                }
            }
        }
    }
}

/// Kernels of a type at a level, indexed by the number of rows minus one, the number of vectors
/// minus one, and whether A is packed (0) or in place (1; if there is no such kernel, the packed
/// one is repeated).
pub type Kernels = &'static [[[MicroFn; 2]; 2]];

/// Defines `fn` wrappers with a level's features, and tables of them.
macro_rules! kernels {
    ($module:ident $(#[$features:meta])*; $($table:ident: $v:ty, direct $direct:tt, $($mr:literal)*;)*) => {
        /// Micro-kernels compiled for a level.
        pub mod $module {
            use super::*;
            /// # Safety
            /// As [`MicroFn`].
            $(#[$features])*
            unsafe fn run<V: Simd, const MR: usize, const NV: usize, const DIRECT: bool>(t: &Tile) {
                // SAFETY: passed on.
                unsafe { kernel::<V, MR, NV, DIRECT>(t) }
            }
            $(
                #[doc = concat!("Kernels over ", stringify!($v), ".")]
                pub static $table: Kernels = &[
                    $([[run::<$v, $mr, 1, false>, run::<$v, $mr, 1, $direct>],
                       [run::<$v, $mr, 2, false>, run::<$v, $mr, 2, $direct>]],)*
                ];
            )*
        }
    };
}

#[cfg(target_arch = "aarch64")]
kernels! { baseline;
    F32: super::super::neon::F32x8, direct true, 1 2 3 4 5 6;
    F64: super::super::neon::F64x4, direct true, 1 2 3 4 5 6;
    U32: super::super::simd::Portable<u32, 8>, direct false, 1 2 3 4;
    U64: super::super::simd::Portable<u64, 4>, direct false, 1 2 3 4;
}
#[cfg(not(target_arch = "aarch64"))]
kernels! { baseline;
    F32: super::super::simd::Portable<f32, 4>, direct false, 1 2 3 4;
    F64: super::super::simd::Portable<f64, 2>, direct false, 1 2 3 4;
    U32: super::super::simd::Portable<u32, 4>, direct false, 1 2 3 4;
    U64: super::super::simd::Portable<u64, 2>, direct false, 1 2 3 4;
}
#[cfg(target_arch = "x86_64")]
kernels! { v3 #[target_feature(enable = "avx2,fma")];
    F32: super::super::simd::x86::F32x8, direct true, 1 2 3 4 5 6;
    F64: super::super::simd::x86::F64x4, direct true, 1 2 3 4 5 6;
    U32: super::super::simd::Portable<u32, 8>, direct false, 1 2 3 4;
    U64: super::super::simd::Portable<u64, 4>, direct false, 1 2 3 4;
}
#[cfg(target_arch = "x86_64")]
kernels! { v4 #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")];
    F32: super::super::simd::x86::F32x16, direct true, 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
    F64: super::super::simd::x86::F64x8, direct true, 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
    U32: super::super::simd::Portable<u32, 16>, direct false, 1 2 3 4;
    U64: super::super::simd::Portable<u64, 8>, direct false, 1 2 3 4;
}
#[cfg(target_arch = "x86_64")]
kernels! { v4_bf16 #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,avx2,fma")];
    PAIRS: super::super::simd::x86::Groups<super::super::simd::x86::PairsOfBf16>, direct false, 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
}
#[cfg(target_arch = "x86_64")]
kernels! { v4_vnni #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,fma")];
    PAIRS: super::super::simd::x86::Groups<super::super::simd::x86::PairsOfWords>, direct false, 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
    FOURS: super::super::simd::x86::Groups<super::super::simd::x86::FoursOfBytes>, direct false, 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
}
