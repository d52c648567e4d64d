//! Memory of the host: the caching allocator and its limits.

pub(crate) mod alloc;
pub(crate) mod buffer;
mod lock;
mod system;

pub use alloc::{
    active, cache_limit, cached, clear_cache, memory_limit, peak, reset_peak, set_cache_limit,
    set_memory_limit,
};
// The allocator itself, for the integration tests.
#[doc(hidden)]
pub use alloc::{AllocError, alloc, free, size_class};
