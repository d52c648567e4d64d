//! Moves rectangles of elements between strided memory and tiles, by element size: loads gather into a dense tile,
//! stores scatter from one.

use super::transpose;
use crate::level::{self, Body, Isa, Level};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::sync::OnceLock;

/// A rectangle in memory: address of its first element, bytes between rows and
/// between the elements of a row.
#[derive(Clone, Copy)]
pub struct Rect {
    /// First element.
    pub data: *mut u8,
    /// Bytes from a row to the next.
    pub rows: isize,
    /// Bytes from an element of a row to the next.
    pub columns: isize,
}

impl Rect {
    /// A row-major rectangle without gaps.
    #[inline]
    pub fn dense(data: *mut u8, columns: usize, size: usize) -> Self {
        Rect { data, rows: (columns * size) as isize, columns: size as isize }
    }
}

/// Copies `rows` by `columns` elements of `size` bytes (1, 2, 4 or 8).
///
/// # Safety
/// Both rectangles are valid for that many rows and columns, aligned for their
/// elements, and do not overlap (or are the same).
#[inline]
pub unsafe fn copy(level: Level, to: Rect, from: Rect, rows: usize, columns: usize, size: usize) {
    // SAFETY: passed on from the caller.
    unsafe { copy_or_stream(level, to, from, rows, columns, size, false) }
}

/// As [`copy`]. If `past` is set, it uses stores that bypass the caches where that is easy (whole lines). Then call
/// [`fence`] before another thread may read them.
///
/// # Safety
/// As [`copy`].
#[inline]
pub unsafe fn copy_or_stream(
    level: Level,
    to: Rect,
    from: Rect,
    rows: usize,
    columns: usize,
    size: usize,
    past: bool,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        match size {
            1 => copy_sized::<u8>(level, to, from, rows, columns, past),
            2 => copy_sized::<u16>(level, to, from, rows, columns, past),
            4 => copy_sized::<u32>(level, to, from, rows, columns, past),
            _ => copy_sized::<u64>(level, to, from, rows, columns, past),
        }
    }
}

/// # Safety
/// As [`copy`].
unsafe fn copy_sized<T: transpose::Element>(
    level: Level,
    to: Rect,
    from: Rect,
    rows: usize,
    columns: usize,
    past: bool,
) {
    let size = size_of::<T>() as isize;
    let transposed = |r: Rect| Rect { data: r.data, rows: r.columns, columns: r.rows };
    let (dense_to, dense_from) = (to.columns == size, from.columns == size);
    if dense_to && dense_from && columns * size_of::<T>() >= 32 {
        for r in 0..rows as isize {
            let (t, f) =
                (to.data.wrapping_offset(r * to.rows), from.data.wrapping_offset(r * from.rows));
            // SAFETY: row r of both rectangles; `copy` allows equal ones.
            unsafe {
                if past && t != f {
                    stream(level, t, f, columns * size_of::<T>());
                } else {
                    core::ptr::copy(f, t, columns * size_of::<T>());
                }
            };
        }
    } else if rows >= transpose::LEAST
        && columns >= transpose::LEAST
        && ((dense_to && from.rows == size) || (dense_from && to.rows == size))
    {
        // A transposed store is a transposed load of the transposed rectangles. SAFETY: passed on from the caller; rows
        // and columns are swapped in all arguments.
        unsafe {
            if dense_to {
                transpose::copy::<T>(level, to, from, rows, columns, past)
            } else {
                transpose::copy::<T>(level, transposed(to), transposed(from), columns, rows, past)
            }
        }
    } else {
        // Make the longer side the inner loop.
        let (mut to, mut from, mut rows, mut columns) = (to, from, rows, columns);
        if columns < 8 && rows > columns {
            (to, from, rows, columns) = (transposed(to), transposed(from), columns, rows);
        }
        level::at(level, General::<T> { to, from, rows, columns, element: [] })
    }
}

struct General<T> {
    to: Rect,
    from: Rect,
    rows: usize,
    columns: usize,
    element: [T; 0],
}

impl<T: Copy> Body for General<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let _ = self.element;
        let size = size_of::<T>() as isize;
        let (to, from) = (self.to, self.from);
        for r in 0..self.rows as isize {
            let target = to.data.wrapping_offset(r * to.rows) as *mut T;
            let source = from.data.wrapping_offset(r * from.rows) as *const T;
            // Use constant strides in the common cases, so that the loop vectorises. SAFETY: row r of both rectangles,
            // valid by the contract of `copy`.
            unsafe {
                if to.columns == size && from.columns == 0 {
                    let value = *source;
                    for c in 0..self.columns {
                        *target.add(c) = value;
                    }
                } else if to.columns == size && from.columns == size {
                    for c in 0..self.columns {
                        *target.add(c) = *source.add(c);
                    }
                } else if to.columns == size && from.columns == 2 * size {
                    for c in 0..self.columns {
                        *target.add(c) = *source.add(2 * c);
                    }
                } else if to.columns == size && from.columns == -size {
                    for c in 0..self.columns {
                        *target.add(c) = *source.sub(c);
                    }
                } else if to.columns == size {
                    for c in 0..self.columns {
                        *target.add(c) = *source.byte_offset(c as isize * from.columns);
                    }
                } else {
                    for c in 0..self.columns as isize {
                        *target.byte_offset(c * to.columns) = *source.byte_offset(c * from.columns);
                    }
                }
            }
        }
    }
}

/// Size in bytes from which on an output is written with stores that bypass the caches. It would evict everything else,
/// and would be read from memory later anyway. The size is half of the last-level cache, within limits, because virtual
/// machines report the whole of a cache that they share.
pub fn stream_bytes() -> usize {
    const LIMITS: [usize; 2] = [8 << 20, 16 << 20];
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        static BYTES: OnceLock<usize> = OnceLock::new();
        *BYTES.get_or_init(|| {
            // SAFETY: asks for a number, which is 0 or negative if it is not known.
            let cache = unsafe { libc::sysconf(libc::_SC_LEVEL3_CACHE_SIZE) };
            (cache.max(0) as usize / 2).clamp(LIMITS[0], LIMITS[1])
        })
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    LIMITS[0]
}

/// Copies `n` bytes with stores that bypass the caches. Call [`fence`] before another thread may read them.
///
/// # Safety
/// `from` is readable and `to` writable for `n` bytes; they do not overlap.
#[inline]
pub unsafe fn stream(level: Level, to: *mut u8, from: *const u8, n: usize) {
    level::at(level, Stream { to, from, n })
}

struct Stream {
    to: *mut u8,
    from: *const u8,
    n: usize,
}

impl Body for Stream {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let (to, from, n) = (self.to, self.from, self.n);
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::*;
            let head = to.align_offset(64).min(n);
            // SAFETY: all within n bytes; the lines are aligned to 64 after the
            // head; the intrinsics' features are those of the level.
            unsafe {
                core::ptr::copy_nonoverlapping(from, to, head);
                let lines = (n - head) / 64;
                for i in 0..lines {
                    let (t, f) = (to.add(head + 64 * i), from.add(head + 64 * i));
                    match I::LEVEL {
                        // Stores of whole lines were measured to be no faster.
                        Level::V3 | Level::V4 | Level::Amx => {
                            for k in 0..2 {
                                let v = _mm256_loadu_si256((f as *const __m256i).add(k));
                                _mm256_stream_si256((t as *mut __m256i).add(k), v);
                            }
                        }
                        Level::Baseline => {
                            for k in 0..4 {
                                let v = _mm_loadu_si128((f as *const __m128i).add(k));
                                _mm_stream_si128((t as *mut __m128i).add(k), v);
                            }
                        }
                    }
                }
                let done = head + 64 * lines;
                core::ptr::copy_nonoverlapping(from.add(done), to.add(done), n - done);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: by the contract of `stream`.
        unsafe {
            core::ptr::copy_nonoverlapping(from, to, n)
        };
    }
}

/// Makes streamed bytes visible before the thread's next operations.
#[inline]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE.
    unsafe {
        core::arch::x86_64::_mm_sfence()
    };
}
