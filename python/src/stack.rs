//! The stack that a thread has left, so that recursion over containers ends in an error and not in a crash.
//!
//! Threads have stacks of any size (Python makes them of 32 KiB upwards), so a number of levels says nothing.

use crate::error::{Fail, Res};
use pyo3::exceptions::PyRecursionError;
use std::cell::Cell;
use std::ops::Range;

/// Bytes that have to be left for what happens at the deepest level: callbacks, copies of containers, and the
/// interpreter's own work.
const MARGIN: usize = 16 << 10;

/// Size of a stack whose bounds are unknown, from the first address that was seen of it.
const ASSUMED: usize = 64 << 10;

thread_local! {
    /// Bounds of the thread's stack; empty before the first check.
    static BOUNDS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Fails if the stack does not allow another level of recursion over `what`.
///
/// # Errors
/// `RecursionError`.
#[inline]
pub fn check(what: &str) -> Res<()> {
    let marker = 0u8;
    let here = std::ptr::from_ref(&marker) as usize;
    let (low, high) = BOUNDS.get();
    if (low + MARGIN..high).contains(&here) { Ok(()) } else { learn(here, what) }
}

/// Finds out the bounds of the stack, and checks against them.
#[cold]
fn learn(here: usize, what: &str) -> Res<()> {
    let stack = match bounds() {
        Some(stack) if stack.contains(&here) => stack,
        // A coroutine's stack; known are just the bounds from its first check.
        _ => {
            let (low, high) = BOUNDS.get();
            if (low..high).contains(&here) {
                low..high
            } else {
                here.saturating_sub(ASSUMED)..here.saturating_add(ASSUMED)
            }
        }
    };
    BOUNDS.set((stack.start, stack.end));
    if here >= stack.start + MARGIN {
        return Ok(());
    }
    let text = format!(
        "{what} is nested too deeply for the stack of this thread, or contains itself. Nest it less deeply, or use \
         a thread with a larger stack."
    );
    Err(Fail::from(PyRecursionError::new_err(text)))
}

/// The addresses of the calling thread's stack, without its guard.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn bounds() -> Option<Range<usize>> {
    let mut attributes = std::mem::MaybeUninit::uninit();
    let (mut low, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: attributes are initialised by the first call if it returns 0, read by the next two and destroyed
    // once; results are written to locals.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size) == 0
            // Before glibc 2.27 the guard counts as a part of the stack.
            && libc::pthread_attr_getguardsize(attributes.as_ptr(), &mut guard) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        found.then(|| low as usize + guard..low as usize + size)
    }
}

/// The addresses of the calling thread's stack.
#[cfg(target_vendor = "apple")]
fn bounds() -> Option<Range<usize>> {
    // SAFETY: both read what is kept about the calling thread.
    let (high, size) = unsafe {
        let thread = libc::pthread_self();
        (libc::pthread_get_stackaddr_np(thread) as usize, libc::pthread_get_stacksize_np(thread))
    };
    Some(high.saturating_sub(size)..high)
}

#[cfg(not(any(all(target_os = "linux", target_env = "gnu"), target_vendor = "apple")))]
fn bounds() -> Option<Range<usize>> {
    None
}
