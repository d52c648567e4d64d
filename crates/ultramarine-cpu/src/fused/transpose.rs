//! Copies of transposed rectangles, by square blocks, so that every cache line
//! of the source is read once and every line of the target written once.

use super::strided::Rect;
use crate::level::{self, Body, Isa, Level};

/// Fewest rows and columns for which blocks pay.
pub const LEAST: usize = 8;

/// Copies a rectangle whose source has its rows' elements apart and its columns'
/// elements adjacent into one with adjacent row elements.
///
/// # Safety
/// As [`super::strided::copy`]; `to.columns` and `from.rows` are an element's size.
pub unsafe fn copy<T: Copy + Default>(
    level: Level,
    to: Rect,
    from: Rect,
    rows: usize,
    columns: usize,
) {
    level::at(level, Blocks::<T> { to, from, rows, columns, element: [] })
}

struct Blocks<T> {
    to: Rect,
    from: Rect,
    rows: usize,
    columns: usize,
    element: [T; 0],
}

/// Side of a block in registers or the L1 cache.
const SIDE: usize = 16;

impl<T: Copy + Default> Body for Blocks<T> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let _ = self.element;
        let Blocks { to, from, rows, columns, .. } = self;
        let target = |r: usize, c: usize| {
            to.data.wrapping_offset(r as isize * to.rows).wrapping_add(c * size_of::<T>()) as *mut T
        };
        let source = |r: usize, c: usize| {
            from.data.wrapping_offset(c as isize * from.columns).wrapping_add(r * size_of::<T>())
                as *const T
        };
        for r0 in (0..rows).step_by(SIDE) {
            let nr = SIDE.min(rows - r0);
            for c0 in (0..columns).step_by(SIDE) {
                let nc = SIDE.min(columns - c0);
                if nr == SIDE && nc == SIDE {
                    let mut block = [[T::default(); SIDE]; SIDE];
                    for c in 0..SIDE {
                        // SAFETY: rows r0.. and columns c0.. by SIDE lie in the rectangles.
                        let line = unsafe { *(source(r0, c0 + c) as *const Line<T>) };
                        for r in 0..SIDE {
                            block[r][c] = line.0[r];
                        }
                    }
                    for (r, line) in block.iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { *(target(r0 + r, c0) as *mut Line<T>) = Line(*line) };
                    }
                } else {
                    for r in r0..r0 + nr {
                        for c in c0..c0 + nc {
                            // SAFETY: within the rectangles.
                            unsafe { *target(r, c) = *source(r, c) };
                        }
                    }
                }
            }
        }
    }
}

/// A row of a block; aligned as its elements.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Line<T>([T; SIDE]);
