//! Products by AMX, whose instructions multiply two tiles and add the result to a third one.
//!
//! A tile of B is 16 groups along k of 16 columns, so panels are packed as for other groups. A tile of A is 16 rows of
//! 16 groups along k. Panels of A are therefore divided along k into stretches of [`TILE`] groups, the last one
//! shorter. In a stretch, the groups of one row follow those of the previous row. Rows are padded with zeros to whole
//! tiles.

use super::groups::{Bits, group, interleave};
use super::micro::{Kernels, MicroFn, Tile};
use super::pack::{Lines, Panel, flip_v4};
use crate::amx::TILE;
use core::arch::x86_64::*;

/// Largest number of rows of a panel of A, and of columns of a panel of B.
pub const SIDE: usize = 2 * TILE;
/// Bytes of a row of a tile.
pub const ROW: usize = 4 * TILE;

/// Kernels over pairs of bfloat16. Subnormal factors and sums count as zeros; sums round to nearest, ties to even.
pub static PAIRS: Kernels = &[[[multiply::<BFLOAT16> as MicroFn; 2]; 2]; SIDE];
/// Kernels over fours of 8-bit integers. The low 8 bits of a sum are those of signed and of unsigned ones.
pub static FOURS: Kernels = &[[[multiply::<BYTES> as MicroFn; 2]; 2]; SIDE];

/// Pairs of bfloat16.
pub const BFLOAT16: u8 = 0;
/// Fours of 8-bit integers.
pub const BYTES: u8 = 1;

/// Tiles in memory: rows that begin at cache lines.
#[repr(align(64))]
struct Aligned<T>(T);

/// Steps of [`TILE`] groups along k of two tiles of A by two of B. Distances in bytes.
#[allow(missing_docs, reason = "named as in the kernel's loop")]
pub struct Steps {
    pub a: *const u8,
    pub a_step: usize,
    pub b: *const u8,
    pub b_row: usize,
    pub c: *mut u8,
    pub c_row: isize,
    /// At least one.
    pub count: usize,
    /// Flags: `COLUMNS`, `ROWS`, `ADD`.
    pub flags: usize,
}

/// There is a second tile of columns.
const COLUMNS: usize = 1;
/// There is a second tile of rows.
const ROWS: usize = 2;
/// Sums are added to C.
const ADD: usize = 4;

/// Multiplies panels of up to [`SIDE`] rows and columns.
///
/// # Safety
/// As [`MicroFn`]; tiles are configured.
unsafe fn multiply<const KIND: u8>(t: &Tile) {
    if t.rows.is_multiple_of(TILE) && t.cols.is_multiple_of(TILE) {
        // SAFETY: passed on.
        return unsafe { whole::<KIND>(t) };
    }
    let mut sums = Aligned([[0_u32; SIDE]; SIDE]);
    let line = |i: usize| (t.c as *mut u32).wrapping_offset(i as isize * t.c_row);
    // SAFETY: rows and columns of C; the sums have room for all of them.
    unsafe {
        if t.accumulate {
            for (i, sums) in sums.0.iter_mut().enumerate().take(t.rows) {
                core::ptr::copy_nonoverlapping(line(i), sums.as_mut_ptr(), t.cols);
            }
        }
        let c = sums.0.as_mut_ptr() as *mut u8;
        whole::<KIND>(&Tile { c, c_row: SIDE as isize, ..*t });
        for (i, sums) in sums.0.iter().enumerate().take(t.rows) {
            core::ptr::copy_nonoverlapping(sums.as_ptr(), line(i), t.cols);
        }
    }
}

/// Multiplies panels; all of each tile of C is there.
///
/// # Safety
/// As [`multiply`].
unsafe fn whole<const KIND: u8>(t: &Tile) {
    let rows = t.rows.next_multiple_of(TILE);
    let (count, rest) = (t.k / TILE, t.k % TILE);
    let flag = |set: bool, flag: usize| if set { flag } else { 0 };
    let flags = flag(t.cols > TILE, COLUMNS) | flag(rows > TILE, ROWS);
    let main = Steps {
        a: t.a,
        a_step: rows * ROW,
        b: t.b,
        b_row: 4 * t.b_k as usize,
        c: t.c,
        c_row: 4 * t.c_row,
        count,
        flags: flags | flag(t.accumulate, ADD),
    };
    // SAFETY: panels of `count` whole steps.
    unsafe {
        if count > 0 {
            steps::<KIND>(&main);
        }
        if rest == 0 {
            return;
        }
    }
    // The remaining groups, padded with zeros.
    let mut rest_a = Aligned([[0_u32; TILE]; SIDE]);
    let mut rest_b = Aligned([[0_u32; SIDE]; TILE]);
    // SAFETY: the last stretch of A, `rest` groups of each row; as many lines of B.
    unsafe {
        let from = (t.a as *const u32).add(count * TILE * rows);
        for (i, a) in rest_a.0.iter_mut().enumerate().take(rows) {
            core::ptr::copy_nonoverlapping(from.add(i * rest), a.as_mut_ptr(), rest);
        }
        let from = (t.b as *const u32).add(count * TILE * t.b_k as usize);
        for (i, b) in rest_b.0.iter_mut().enumerate().take(rest) {
            let columns = if t.cols > TILE { SIDE } else { TILE };
            core::ptr::copy_nonoverlapping(from.add(i * t.b_k as usize), b.as_mut_ptr(), columns);
        }
        steps::<KIND>(&Steps {
            a: rest_a.0.as_ptr() as *const u8,
            b: rest_b.0.as_ptr() as *const u8,
            b_row: 4 * SIDE,
            count: 1,
            flags: flags | flag(t.accumulate || count > 0, ADD),
            ..main
        });
    }
}

/// Prefetches eight lines of A, two steps ahead, to the L1 cache.
macro_rules! ahead {
    ($from:literal) => {
        concat!(
            ".irp line, 0, 64, 128, 192, 256, 320, 384, 448\n",
            "prefetcht0 [{a} + 4096 + ",
            $from,
            " + \\line]\n",
            ".endr"
        )
    };
}

/// The loop along k with an instruction. Factors are zeroed after their last use, which frees their registers: if both
/// threads of a core multiply, there are too few registers.
macro_rules! steps {
    ($s:ident, $instruction:literal) => {
        core::arch::asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "test {flags:e}, 4",
            "jz 2f",
            "tileloadd tmm0, [{c} + {c_row}]",
            "test {flags:e}, 1",
            "jz 3f",
            "tileloadd tmm1, [{c} + {c_row} + 64]",
            "3:",
            "test {flags:e}, 2",
            "jz 2f",
            "tileloadd tmm2, [{c2} + {c_row}]",
            "test {flags:e}, 1",
            "jz 2f",
            "tileloadd tmm3, [{c2} + {c_row} + 64]",
            "2:",
            "tileloadd tmm6, [{b} + {b_row}]",
            "tileloadd tmm4, [{a} + {a_row}]",
            concat!($instruction, " tmm0, tmm4, tmm6"),
            ahead!(0),
            "test {flags:e}, 1",
            "jz 4f",
            "tileloadd tmm7, [{b} + {b_row} + 64]",
            concat!($instruction, " tmm1, tmm4, tmm7"),
            ahead!(512),
            "4:",
            "tilezero tmm4",
            "test {flags:e}, 2",
            "jz 5f",
            "tileloadd tmm5, [{a} + {a_row} + 1024]",
            concat!($instruction, " tmm2, tmm5, tmm6"),
            ahead!(1024),
            "tilezero tmm6",
            "test {flags:e}, 1",
            "jz 5f",
            concat!($instruction, " tmm3, tmm5, tmm7"),
            ahead!(1536),
            "5:",
            "tilezero tmm5",
            "tilezero tmm7",
            "add {a}, {a_step}",
            "add {b}, {b_step}",
            "dec {count}",
            "jnz 2b",
            "tilestored [{c} + {c_row}], tmm0",
            "test {flags:e}, 1",
            "jz 6f",
            "tilestored [{c} + {c_row} + 64], tmm1",
            "6:",
            "test {flags:e}, 2",
            "jz 7f",
            "tilestored [{c2} + {c_row}], tmm2",
            "test {flags:e}, 1",
            "jz 7f",
            "tilestored [{c2} + {c_row} + 64], tmm3",
            "7:",
            a = inout(reg) $s.a => _,
            a_row = in(reg) ROW,
            a_step = in(reg) $s.a_step,
            b = inout(reg) $s.b => _,
            b_row = in(reg) $s.b_row,
            b_step = in(reg) TILE * $s.b_row,
            c = in(reg) $s.c,
            c2 = in(reg) $s.c.wrapping_offset(TILE as isize * $s.c_row),
            c_row = in(reg) $s.c_row,
            count = inout(reg) $s.count => _,
            flags = in(reg) $s.flags,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

/// # Safety
/// The tiles are there; those of the processor are configured.
pub unsafe fn steps<const KIND: u8>(s: &Steps) {
    #[cfg(debug_assertions)]
    if !crate::amx::is_available() {
        // SAFETY: passed on.
        return unsafe { emulated::<KIND>(s) };
    }
    // SAFETY: by this function's contract; the loop reads and writes the tiles alone.
    unsafe {
        match KIND {
            BFLOAT16 => steps!(s, "tdpbf16ps"),
            _ => steps!(s, "tdpbuud"),
        }
    }
}

/// The loop along k for machines without AMX. Builds with debug assertions contain it, for tests.
///
/// # Safety
/// The tiles are there.
#[cfg(debug_assertions)]
pub unsafe fn emulated<const KIND: u8>(s: &Steps) {
    let side = |flag: usize| if s.flags & flag == 0 { TILE } else { SIDE };
    let dot = |sum: u32, a: u32, b: u32| match KIND {
        BFLOAT16 => {
            let numbers = |x: u32| [x << 16, x >> 16 << 16].map(f32::from_bits);
            let ([a, c], [b, d]) = (numbers(a), numbers(b));
            (f32::from_bits(sum) + (a * b + c * d)).to_bits()
        }
        _ => {
            let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
            products.fold(sum, |sum, (a, b)| sum.wrapping_add(u32::from(a) * u32::from(b)))
        }
    };
    for i in 0..side(ROWS) {
        let c = s.c.wrapping_offset(i as isize * s.c_row).cast::<u32>();
        for j in 0..side(COLUMNS) {
            // SAFETY: by this function's contract.
            unsafe {
                let mut sum = if s.flags & ADD == 0 { 0 } else { *c.add(j) };
                for g in 0..s.count * TILE {
                    let a = s.a.add(g / TILE * s.a_step + i * ROW).cast::<u32>();
                    let b = s.b.add(g * s.b_row).cast::<u32>();
                    sum = dot(sum, *a.add(g % TILE), *b.add(j));
                }
                c.add(j).write(sum);
            }
        }
    }
}

/// Packs panels of A.
///
/// # Safety
/// As [`super::pack::PackFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
pub unsafe fn pack<T: Bits, const N: usize>(p: &Panel) {
    let size = size_of::<T>() as isize;
    let count = p.k.div_ceil(N);
    let mut i = 0;
    while i < p.width {
        let (width, ld) = p.at(i);
        for q in (0..count).step_by(TILE) {
            let groups = TILE.min(count - q);
            let elements = (groups * N).min(p.k - q * N);
            for row in (0..ld).step_by(TILE) {
                let from = (i + row) as isize * p.across + (q * N) as isize * p.along;
                let src = p.src.wrapping_offset(from);
                let to = (p.dst as *mut u32).wrapping_add(i * count + q * ld + row * groups);
                let rows = TILE.min(width.saturating_sub(row));
                // SAFETY: these rows and elements of the source; a tile of the panel.
                unsafe {
                    if p.along == size {
                        let line = |r: usize| src.wrapping_offset(r as isize * p.across);
                        copy_rows(line, rows, elements * size as usize, to);
                    } else {
                        let tile = Panel { src, width: rows, ld: groups, k: elements, ..*p };
                        turn::<T, N>(&tile, to);
                    }
                }
            }
        }
        i += width;
    }
}

/// Copies the beginnings of rows, of at most 64 bytes, one after the other. They are padded with zeros to whole groups
/// and to whole tiles.
///
/// # Safety
/// `bytes` of each row are readable; `to` has room for [`TILE`] rows of as many groups.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn copy_rows(row: impl Fn(usize) -> *const u8, rows: usize, bytes: usize, to: *mut u32) {
    let (groups, zero) = (bytes.div_ceil(4), _mm512_setzero_si512());
    let readable = u64::MAX >> (64 - bytes);
    let writable = u16::MAX >> (TILE - groups);
    for r in 0..TILE {
        // SAFETY: by this function's contract.
        unsafe {
            let line = match r < rows {
                true => _mm512_maskz_loadu_epi8(readable, row(r).cast()),
                false => zero,
            };
            _mm512_mask_storeu_epi32(to.add(r * groups).cast(), writable, line);
        }
    }
}

/// Packs a tile whose rows are not contiguous: `width` rows of `k` elements, which are `ld` groups.
///
/// # Safety
/// The elements are there; `to` has room for [`TILE`] rows of groups.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn turn<T: Bits, const N: usize>(p: &Panel, to: *mut u32) {
    let mut tile = [[0_u32; TILE]; TILE];
    let line = |q: usize| p.src.wrapping_offset(q as isize * p.along);
    for (g, groups) in tile.iter_mut().enumerate().take(p.ld) {
        let there = N.min(p.k - g * N);
        // SAFETY: elements of the rows, and memory for their groups.
        unsafe {
            if p.across == size_of::<T>() as isize {
                let lines = core::array::from_fn(|t| line(g * N + t) as *const T);
                interleave::<T, N>(lines, there, p.width, groups.as_mut_ptr());
            } else {
                for (r, to) in groups.iter_mut().enumerate().take(p.width) {
                    let at = |t: usize| line(g * N + t).wrapping_offset(r as isize * p.across);
                    let element = |t| if t < there { *(at(t) as *const T) } else { T::default() };
                    *to = group::<T, N>(core::array::from_fn(element));
                }
            }
        }
    }
    // SAFETY: a tile; each of 16 rows gets its groups.
    unsafe { flip_v4(tile.as_ptr().cast(), to.cast(), p.ld, p.ld) }
}

/// Packs rows of whole groups that begin anywhere.
///
/// # Safety
/// As [`super::pack::LinesFn`].
#[target_feature(enable = "avx512f,avx512bw")]
pub unsafe fn pack_lines(l: &Lines<'_>) {
    let ld = l.rows.len().next_multiple_of(TILE);
    let mut q = 0;
    while q < l.k {
        // Groups from here to the end of the stretch, of `width`.
        let at = l.before + q;
        let (first, inside) = (at - at % TILE, at % TILE);
        let width = TILE.min(l.all - first);
        let n = (width - inside).min(l.k - q);
        let mask = u16::MAX >> (TILE - n);
        for r in 0..ld {
            let to = (l.dst as *mut i32).wrapping_add(first * ld + r * width + inside);
            // SAFETY: groups of the row, and of the panel.
            unsafe {
                let line = match l.rows.get(r) {
                    Some(row) => {
                        _mm512_maskz_loadu_epi32(mask, (*row as *const i32).wrapping_add(q))
                    }
                    None => _mm512_setzero_si512(),
                };
                _mm512_mask_storeu_epi32(to, mask, line);
            }
        }
        q += n;
    }
}
