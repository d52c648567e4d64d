//! Copies of lines of tensors, and their scratch memory.

use crate::dtype::c64;
use crate::strided::{for_size, move_run};
use std::cell::RefCell;

/// Steps of several lines, in elements.
#[derive(Clone, Copy)]
pub struct Line {
    /// From element to element.
    pub along: isize,
    /// From line to line.
    pub across: isize,
}

/// Elements of a line that are moved before those of the next line, if the elements of a line are not adjacent: two
/// cache lines.
const PIECE: usize = 16;

/// Moves lines; `shape` is their length and number.
///
/// # Safety
/// All elements, of `size` bytes, are valid; source and target do not overlap.
pub unsafe fn move_lines(
    size: isize,
    (from, from_steps): (*const u8, Line),
    (to, to_steps): (*mut u8, Line),
    [length, count]: [usize; 2],
) {
    for_size!(size, T => {
        let (from, to) = (from as *const T, to as *mut T);
        let at = |i: usize, line: usize| {
            let place = |s: Line| i as isize * s.along + line as isize * s.across;
            (from.wrapping_offset(place(from_steps)), to.wrapping_offset(place(to_steps)))
        };
        let beside = from_steps.across.unsigned_abs() == 1 || to_steps.across.unsigned_abs() == 1;
        if beside {
            for i in 0..length {
                let (from, to) = at(i, 0);
                // SAFETY: by this function's contract, here and below.
                unsafe { move_run(from, from_steps.across, to, to_steps.across, count) };
            }
        } else {
            for first in (0..length).step_by(PIECE) {
                for line in 0..count {
                    let (from, to) = at(first, line);
                    let piece = PIECE.min(length - first);
                    // SAFETY: as above.
                    unsafe { move_run(from, from_steps.along, to, to_steps.along, piece) };
                }
            }
        }
    });
}

/// Scratch memory of up to this many complex numbers is kept by its thread.
const KEPT: usize = 1 << 21;

/// Calls `f` with `n` numbers, which are zero or left over from earlier calls. A nested call gets other memory.
pub fn with_scratch<R>(n: usize, f: impl FnOnce(&mut [c64]) -> R) -> R {
    thread_local! {
        // Keep the memory, because fresh memory for every task would cause page faults.
        static SCRATCH: RefCell<Vec<c64>> = const { RefCell::new(Vec::new()) };
    }
    let mut room = SCRATCH.with(|s| std::mem::take(&mut *s.borrow_mut()));
    if room.len() < n {
        room = vec![c64::default(); n];
    }
    let result = f(&mut room[..n]);
    if room.len() <= KEPT {
        SCRATCH.with(|s| *s.borrow_mut() = room);
    }
    result
}
