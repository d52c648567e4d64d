//! Memory: the host's caching allocator and its limits, counters and limits of devices, and the
//! memory that arrays use.

pub(crate) use ultramarine_runtime::memory::deferred_deleters;
pub use ultramarine_runtime::{
    devices::memory::{
        active_on, cached_on, clear_cache, clear_cache_on, memory_limit_on, peak_on, reset_peak_on,
        set_cache_limit, set_cache_limit_on, set_memory_limit_on, set_wired_limit_on,
    },
    memory::{active, cache_limit, cached, memory_limit, peak, reset_peak, set_memory_limit},
};
// The allocator itself is exported for the integration tests.
#[doc(hidden)]
pub use ultramarine_runtime::memory::{AllocError, alloc, free, size_class};

use crate::arrays::Arrays;
use crate::error::{Result, bail};

/// Returns the size in bytes of the memory blocks that hold evaluated arrays. Blocks of the
/// allocator are somewhat larger than their arrays. A block that several arrays share counts once.
///
/// # Errors
/// [`crate::Error::Value`] for an array that was not evaluated.
pub fn buffer_bytes(arrays: impl Arrays) -> Result<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut bytes = 0;
    for array in arrays.borrowed() {
        let Some(value) = array.node().value() else {
            bail!(
                "get_array_buffer_size",
                "Arrays must be evaluated before querying buffer size. Evaluate them with `eval` first."
            );
        };
        if seen.insert(std::ptr::from_ref(&*value.buffer)) {
            bytes += value.buffer.allocated();
        }
    }
    Ok(bytes)
}
