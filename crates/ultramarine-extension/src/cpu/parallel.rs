//! Loops on the host's threads.

use crate::{
    error::{Error, Result},
    host,
};
use std::ffi::c_void;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Returns the most threads that [`parallel`] uses, the calling one included.
pub fn thread_count() -> usize {
    let count = host::table().and_then(|t| Some((t.thread_count?, t.host)));
    // SAFETY: the host's function with the host's pointer.
    count.map_or(1, |(count, host)| unsafe { count(host) }.max(1) as usize)
}

/// Calls `body` with ranges that together are `0..n`, on the host's threads. Each range has about
/// `grain` elements or more. Returns when all calls have returned. Without a host, the caller's
/// thread does all the work.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let sum = AtomicUsize::new(0);
/// ultramarine_extension::parallel(1000, 100, |range| {
///     sum.fetch_add(range.sum::<usize>(), Ordering::Relaxed);
/// })?;
/// assert_eq!(sum.into_inner(), 499_500);
/// # Ok::<(), ultramarine_extension::Error>(())
/// ```
///
/// # Errors
/// If a call panics, the error has the text of the first panic. The other ranges are still
/// processed.
pub fn parallel(n: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) -> Result<()> {
    pieces(n, grain, 1, body)
}

/// Like [`parallel`], with ranges that begin at multiples of `unit`.
pub(super) fn pieces(
    n: usize,
    grain: usize,
    unit: usize,
    body: impl Fn(Range<usize>) + Sync,
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let threads = thread_count();
    // Make a few pieces for each thread, so that the wait for a slow thread is short.
    let count = if threads == 1 { 1 } else { (n / grain.max(1)).clamp(1, threads * 8) };
    let length = n.div_ceil(count).next_multiple_of(unit.max(1));
    let count = n.div_ceil(length);
    each(count, |i| body(i * length..((i + 1) * length).min(n)))
}

/// Calls `body(i)` for every `i < count`.
fn each<F: Fn(usize) + Sync>(count: usize, body: F) -> Result<()> {
    struct Loop<F> {
        body: F,
        first: Mutex<Option<Error>>,
    }
    unsafe extern "C" fn call<F: Fn(usize) + Sync>(context: *mut c_void, index: u64) {
        // SAFETY: the loop outlives `each`, which waits for the calls.
        let this = unsafe { &*context.cast::<Loop<F>>() };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (this.body)(index as usize))) {
            let error = Error::of_panic(payload);
            this.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
    let run = Loop { body, first: Mutex::new(None) };
    let context = (&raw const run).cast_mut().cast::<c_void>();
    match host::table().and_then(|t| Some((t.parallel_for?, t.host))) {
        // SAFETY: the host's function with the host's pointer. The context is valid until it
        // returns.
        Some((parallel_for, host)) if count > 1 => unsafe {
            parallel_for(host, count as u64, call::<F>, context);
        },
        // SAFETY: as above.
        _ => (0..count as u64).for_each(|i| unsafe { call::<F>(context, i) }),
    }
    run.first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
