//! Packing: copies operands into panels, converted to the accumulator's type.
//!
//! For each k, a panel holds `ld` adjacent numbers: `width` rows of A or columns of B, then zeros. Both operands have
//! the same format, so one function packs both (except complex ones).

use super::simd::Storage;
use crate::dtype::c64;

/// Numbers to pack. Strides in bytes.
#[derive(Clone, Copy)]
pub struct Panel {
    /// First element.
    pub src: *const u8,
    /// Stride across the panel.
    pub across: isize,
    /// Stride along k.
    pub along: isize,
    /// Rows of A or columns of B, counted in numbers of the accumulator's type. If there are more than `ld`, they form
    /// several consecutive panels.
    pub width: usize,
    /// Numbers of a panel for each k.
    pub ld: usize,
    /// The last panel's `ld` is its width, rounded up to a multiple of this.
    pub unit: usize,
    /// Length along k, in numbers of the accumulator's type, or in elements if several elements form one number.
    pub k: usize,
    /// The packed panel.
    pub dst: *mut u8,
}

impl Panel {
    /// Width and `ld` of the panel that begins at `i`.
    #[inline(always)]
    pub(crate) fn at(&self, i: usize) -> (usize, usize) {
        let width = self.ld.min(self.width - i);
        (width, self.ld.min(width.next_multiple_of(self.unit)))
    }

    /// The packed panel that begins at `i`.
    #[inline(always)]
    fn to<A>(&self, i: usize) -> *mut A {
        (self.dst as *mut A).wrapping_add(i * self.k)
    }
}

/// Packs panels.
///
/// # Safety
/// Source and destination are valid and disjoint; the instructions of the
/// function's level are available.
pub type PackFn = unsafe fn(&Panel);

/// Rows that are packed at the same time.
pub(super) const STREAMS: usize = 8;
/// Side of the square blocks in which panels are transposed.
const BLOCK: usize = 16;

/// Packs real numbers. `V4`: AVX-512 may be used.
///
/// # Safety
/// As [`PackFn`].
#[inline(always)]
pub unsafe fn pack<S: Storage, const V4: bool>(p: &Panel) {
    let size = size_of::<S>() as isize;
    if p.across == size {
        // SAFETY: passed on.
        return unsafe { rows::<S, V4>(p) };
    }
    let mut i = 0;
    while i < p.width {
        let (width, ld) = p.at(i);
        let src = p.src.wrapping_offset(i as isize * p.across);
        let one = Panel { src, width, ld, dst: p.to::<S::Acc>(i) as *mut u8, ..*p };
        // SAFETY: one panel of several.
        unsafe {
            if p.along == size {
                transposed::<S, V4>(&one);
            } else {
                for q in 0..p.k {
                    let src = src.wrapping_offset(q as isize * p.along);
                    let dst = one.to::<S::Acc>(0).add(q * ld);
                    gather::<S>(src, p.across, width, dst);
                    pad(dst, width, ld);
                }
            }
        }
        i += width;
    }
}

/// # Safety
/// `n` elements are readable, `stride` bytes apart, `n` numbers writable.
#[inline(always)]
unsafe fn gather<S: Storage>(src: *const u8, stride: isize, n: usize, dst: *mut S::Acc) {
    for i in 0..n {
        // SAFETY: by this function's contract.
        unsafe { *dst.add(i) = (*(src.offset(i as isize * stride) as *const S)).widen() }
    }
}

/// # Safety
/// `ld` numbers are writable.
#[inline(always)]
unsafe fn pad<A: Default>(dst: *mut A, width: usize, ld: usize) {
    for i in width..ld {
        // SAFETY: by this function's contract.
        unsafe { dst.add(i).write(A::default()) }
    }
}

/// # Safety
/// `N` elements are readable and as many numbers writable.
#[inline(always)]
unsafe fn convert<S: Storage, const N: usize>(src: *const S, dst: *mut S::Acc) {
    // SAFETY: by this function's contract.
    let from = unsafe { src.cast::<[S; N]>().read_unaligned() };
    let mut to = [S::Acc::default(); N];
    for i in 0..N {
        to[i] = from[i].widen();
    }
    // SAFETY: by this function's contract.
    unsafe { dst.cast::<[S::Acc; N]>().write_unaligned(to) }
}

/// Packs a source whose elements are adjacent across the panel.
///
/// # Safety
/// As [`pack`].
#[inline(always)]
unsafe fn rows<S: Storage, const V4: bool>(p: &Panel) {
    let mut q = 0;
    while q < p.k {
        let lines = STREAMS.min(p.k - q);
        let mut at = 0;
        // Pack a few rows of all panels before the next rows. The source is then read in order, as several streams,
        // which uses memory better than one stream.
        while at < p.width {
            let (width, ld) = p.at(at);
            for r in q..q + lines {
                let src = p.src.wrapping_offset(r as isize * p.along) as *const S;
                // SAFETY: row r of the source has elements at.. at + width, of the
                // panel `ld` numbers.
                unsafe { row::<S, V4>(src.add(at), width, p.to::<S::Acc>(at).add(r * ld), ld) }
            }
            at += width;
        }
        q += lines;
    }
}

/// Packs one row of one panel.
///
/// # Safety
/// `width` elements are readable, `ld` numbers writable.
#[inline(always)]
unsafe fn row<S: Storage, const V4: bool>(
    src: *const S,
    width: usize,
    dst: *mut S::Acc,
    ld: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if V4 && size_of::<S>() == 4 && size_of::<S::Acc>() == 4 {
        // SAFETY: by this function's contract, V4 is only set where AVX-512 is available. Widening 4 bytes to 4 bytes
        // changes none.
        return unsafe { words(src.cast(), width, dst.cast(), ld) };
    }
    // SAFETY: by this function's contract.
    unsafe {
        let mut i = 0;
        while i + 16 <= width {
            convert::<S, 16>(src.add(i), dst.add(i));
            i += 16;
        }
        if i + 8 <= width {
            convert::<S, 8>(src.add(i), dst.add(i));
            i += 8;
        }
        if i + 4 <= width {
            convert::<S, 4>(src.add(i), dst.add(i));
            i += 4;
        }
        while i < width {
            convert::<S, 1>(src.add(i), dst.add(i));
            i += 1;
        }
        pad(dst, width, ld);
    }
}

/// Packs one row of numbers of 4 bytes, whatever its width in one or two steps a vector.
///
/// # Safety
/// As [`row`], and AVX-512 is available.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn words(src: *const i32, width: usize, dst: *mut i32, ld: usize) {
    use core::arch::x86_64::{_mm512_mask_storeu_epi32, _mm512_maskz_loadu_epi32};
    let first = |n: usize| if n < 16 { (1_u16 << n) - 1 } else { u16::MAX };
    for i in (0..ld).step_by(16) {
        // SAFETY: by this function's contract, masked numbers are readable and writable.
        unsafe {
            let part =
                _mm512_maskz_loadu_epi32(first(width.saturating_sub(i)), src.wrapping_add(i));
            _mm512_mask_storeu_epi32(dst.wrapping_add(i), first(ld - i), part);
        }
    }
}

/// Packs a source whose elements are adjacent along k.
///
/// # Safety
/// As [`pack`].
#[inline(always)]
unsafe fn transposed<S: Storage, const V4: bool>(p: &Panel) {
    let row = |i: usize| p.src.wrapping_offset(i as isize * p.across);
    // SAFETY: passed on.
    unsafe { lines::<S, V4>(row, p.width, p.ld, p.k, p.dst as *mut S::Acc) }
}

/// Rows that begin at any address, to be packed as a panel whose width is the number of rows.
pub struct Lines<'a> {
    /// First element of each row; the others follow.
    pub rows: &'a [*const u8],
    /// Length along k.
    pub k: usize,
    /// Numbers of the panel along k before these rows' numbers, ...
    pub before: usize,
    /// ... and all numbers of the panel along k; these matter if kernels multiply tiles.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub all: usize,
    /// The packed panel.
    pub dst: *mut u8,
}

/// Packs rows that begin anywhere.
///
/// # Safety
/// As [`PackFn`].
pub type LinesFn = unsafe fn(&Lines<'_>);

/// Packs rows that begin anywhere. `V4`: AVX-512 may be used.
///
/// # Safety
/// As [`LinesFn`].
#[inline(always)]
pub unsafe fn pack_lines<S: Storage, const V4: bool>(l: &Lines<'_>) {
    let n = l.rows.len();
    // SAFETY: passed on.
    unsafe { lines::<S, V4>(|i| l.rows[i], n, n, l.k, (l.dst as *mut S::Acc).add(l.before * n)) }
}

/// Packs `width` rows; `row` gives the address of each row's first element.
///
/// # Safety
/// `k` elements of each row are readable, `k * ld` numbers writable.
#[inline(always)]
unsafe fn lines<S: Storage, const V4: bool>(
    row: impl Fn(usize) -> *const u8,
    width: usize,
    ld: usize,
    k: usize,
    dst: *mut S::Acc,
) {
    let mut block = [[S::Acc::default(); BLOCK]; BLOCK];
    let mut i = 0;
    while i < width {
        let rows = BLOCK.min(width - i);
        let part = BLOCK.min(ld - i);
        block[rows..].fill([S::Acc::default(); BLOCK]);
        let mut q = 0;
        while q + BLOCK <= k {
            // SAFETY: rows i.. and columns q.. of the source, `rows` x BLOCK of them;
            // the panel's numbers i..i + part for BLOCK steps of k.
            unsafe {
                for r in 0..rows {
                    convert::<S, BLOCK>((row(i + r) as *const S).add(q), block[r].as_mut_ptr());
                }
                flip::<S::Acc, V4>(&block, dst.add(q * ld + i), ld, part);
            }
            q += BLOCK;
        }
        while q < k {
            // SAFETY: as above, for one step of k.
            unsafe {
                let dst = dst.add(q * ld + i);
                for r in 0..rows {
                    *dst.add(r) = (*(row(i + r) as *const S).add(q)).widen();
                }
                pad(dst, rows, part);
            }
            q += 1;
        }
        i += rows;
    }
}

/// Writes the transpose of a block, the first `n` numbers of each line.
///
/// # Safety
/// `n <= 16` numbers are writable at each of 16 places, `ld` numbers apart.
#[inline(always)]
unsafe fn flip<A: Copy, const V4: bool>(
    block: &[[A; BLOCK]; BLOCK],
    dst: *mut A,
    ld: usize,
    n: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if V4 && size_of::<A>() == 4 {
        // SAFETY: V4 is only set where AVX-512 is available; A has 4 bytes.
        return unsafe { flip_v4(block.as_ptr() as *const f32, dst as *mut f32, ld, n) };
    }
    for q in 0..BLOCK {
        for (i, row) in block.iter().enumerate().take(n) {
            // SAFETY: by this function's contract.
            unsafe { *dst.add(q * ld + i) = row[q] }
        }
    }
}

/// # Safety
/// As [`flip`]; AVX-512 is available; `block` has 256 numbers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn flip_v4(block: *const f32, dst: *mut f32, ld: usize, n: usize) {
    use core::arch::x86_64::*;
    // SAFETY: by this function's contract; stores are masked to n numbers.
    unsafe {
        let mut r = [_mm512_setzero_ps(); 16];
        for i in 0..16 {
            r[i] = _mm512_loadu_ps(block.add(16 * i));
        }
        // Pairs, then quadruples of rows within each 128-bit lane ...
        let mut t = r;
        for i in 0..8 {
            t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        let mut u = t;
        for i in 0..4 {
            for h in 0..2 {
                let x = _mm512_castps_pd(t[4 * i + h]);
                let y = _mm512_castps_pd(t[4 * i + 2 + h]);
                u[4 * i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                u[4 * i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
            }
        }
        // ... then lane L of u[c], u[4 + c], u[8 + c], u[12 + c] make line 4 L + c.
        let mask = ((1u32 << n) - 1) as __mmask16;
        for c in 0..4 {
            let even = _mm512_shuffle_f32x4::<0x88>(u[c], u[4 + c]);
            let odd = _mm512_shuffle_f32x4::<0xdd>(u[c], u[4 + c]);
            let even2 = _mm512_shuffle_f32x4::<0x88>(u[8 + c], u[12 + c]);
            let odd2 = _mm512_shuffle_f32x4::<0xdd>(u[8 + c], u[12 + c]);
            let lines = [
                _mm512_shuffle_f32x4::<0x88>(even, even2),
                _mm512_shuffle_f32x4::<0x88>(odd, odd2),
                _mm512_shuffle_f32x4::<0xdd>(even, even2),
                _mm512_shuffle_f32x4::<0xdd>(odd, odd2),
            ];
            for (lane, line) in lines.iter().enumerate() {
                _mm512_mask_storeu_ps(dst.add((4 * lane + c) * ld), mask, *line);
            }
        }
    }
}

/// Packs complex A as the real matrix of twice its columns: real part, imaginary
/// part.
///
/// # Safety
/// As [`PackFn`].
#[inline(always)]
pub unsafe fn pack_a_complex(p: &Panel) {
    let dst = p.dst as *mut f32;
    for q in 0..p.k / 2 {
        for i in 0..p.width {
            // SAFETY: element (i, q) of the source, two numbers of the panel.
            unsafe {
                let at = p.src.offset(i as isize * p.across + q as isize * p.along);
                let z = *(at as *const c64);
                *dst.add(2 * q * p.ld + i) = z.re;
                *dst.add((2 * q + 1) * p.ld + i) = z.im;
            }
        }
    }
}

/// Packs complex B as a real matrix of twice the size in both directions. Each element x + iy becomes the rows (x, y)
/// and (-y, x). The real product then has real and imaginary parts side by side, as complex C does.
///
/// # Safety
/// As [`PackFn`].
#[inline(always)]
pub unsafe fn pack_b_complex(p: &Panel) {
    for q in 0..p.k / 2 {
        let mut at = 0;
        while at < p.width {
            let (width, ld) = p.at(at);
            let first = p.to::<f32>(at).wrapping_add(2 * q * ld);
            for j in 0..width / 2 {
                // SAFETY: an element of row q of the source, two numbers in each of
                // two lines of the panel.
                unsafe {
                    let (i, q) = ((at / 2 + j) as isize, q as isize);
                    let z = *(p.src.offset(i * p.across + q * p.along) as *const c64);
                    *first.add(2 * j) = z.re;
                    *first.add(2 * j + 1) = z.im;
                    *first.add(ld + 2 * j) = -z.im;
                    *first.add(ld + 2 * j + 1) = z.re;
                }
            }
            // SAFETY: as above.
            unsafe {
                pad(first, width, ld);
                pad(first.add(ld), width, ld);
            }
            at += width;
        }
    }
}

/// A block of sums to be stored as C's dtype. Strides of C in bytes.
#[derive(Clone, Copy)]
pub struct Block {
    /// The sums, `ld` numbers from row to row.
    pub src: *const u8,
    /// Numbers from row to row.
    pub ld: usize,
    /// Rows.
    pub rows: usize,
    /// Columns, in numbers of the accumulator's type.
    pub cols: usize,
    /// First element of C's block.
    pub dst: *mut u8,
    /// Stride of C's rows.
    pub row: isize,
    /// Stride of C's columns.
    pub col: isize,
}

/// Stores a block.
///
/// # Safety
/// As [`PackFn`].
pub type StoreFn = unsafe fn(&Block);

/// Stores real numbers, rounding once.
///
/// # Safety
/// As [`StoreFn`].
#[inline(always)]
pub unsafe fn store<S: Storage>(b: &Block) {
    for i in 0..b.rows {
        // SAFETY: row i of the sums and of C.
        unsafe {
            let src = (b.src as *const S::Acc).add(i * b.ld);
            let dst = b.dst.offset(i as isize * b.row);
            if b.col == size_of::<S>() as isize {
                S::narrow_row(
                    std::slice::from_raw_parts(src, b.cols),
                    std::slice::from_raw_parts_mut(dst as *mut S, b.cols),
                );
            } else {
                for j in 0..b.cols {
                    *(dst.offset(j as isize * b.col) as *mut S) = S::narrow(*src.add(j));
                }
            }
        }
    }
}

/// Stores pairs of float32 as complex numbers.
///
/// # Safety
/// As [`StoreFn`].
#[inline(always)]
pub unsafe fn store_complex(b: &Block) {
    for i in 0..b.rows {
        for j in 0..b.cols / 2 {
            // SAFETY: two sums of row i, one element of C.
            unsafe {
                let src = (b.src as *const f32).add(i * b.ld + 2 * j);
                let dst = b.dst.offset(i as isize * b.row + j as isize * b.col);
                *(dst as *mut c64) = c64 { re: *src, im: *src.add(1) };
            }
        }
    }
}
