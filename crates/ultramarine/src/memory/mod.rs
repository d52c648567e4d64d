//! Memory: the host's caching allocator and its limits, and counts and limits of devices.

pub(crate) mod alloc;
pub(crate) mod buffer;
mod devices;
pub(crate) mod late;
mod lock;
mod of_arrays;
mod system;

pub use alloc::{
    active, cache_limit, cached, clear_cache, memory_limit, peak, reset_peak, set_cache_limit,
    set_memory_limit,
};
pub use devices::{
    active_on, cached_on, clear_cache_on, memory_limit_on, peak_on, reset_peak_on,
    set_cache_limit_on, set_memory_limit_on, set_wired_limit_on,
};
pub use of_arrays::buffer_bytes;
// The allocator itself, for the integration tests.
#[doc(hidden)]
pub use alloc::{AllocError, alloc, free, size_class};

/// Bytes of memory that this process may have: the machine's, or its control group's.
pub(crate) fn physical() -> usize {
    system::capacity().0
}
