//! Scratch memory of tasks: small amounts are on the stack, larger ones in memory that each thread
//! keeps.

use core::cell::Cell;
use core::mem::MaybeUninit;

const SMALL: usize = 6 << 10;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [MaybeUninit<u8>; 64]);

const EMPTY: Line = Line([MaybeUninit::uninit(); 64]);

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with `bytes` bytes, uninitialised, aligned to 64.
#[inline]
pub fn with<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> R {
    if bytes <= SMALL {
        let mut lines = [EMPTY; SMALL / 64];
        return f(lines.as_mut_ptr() as *mut u8);
    }
    // The memory is taken out for the call, so that a nested call gets memory of its own.
    let mut kept = KEPT.try_with(Cell::take).unwrap_or_default();
    let lines = bytes.div_ceil(64);
    if kept.len() < lines {
        kept = vec![EMPTY; lines];
    }
    let result = f(kept.as_mut_ptr() as *mut u8);
    let _ = KEPT.try_with(|k| k.set(kept));
    result
}
