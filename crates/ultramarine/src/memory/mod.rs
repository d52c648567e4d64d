//! Memory of the host: the caching allocator and its limits.

pub(crate) mod alloc;
pub(crate) mod buffer;
mod lock;
mod system;

pub use alloc::{
    AllocError, active, cache_limit, cached, clear_cache, memory_limit, peak, reset_peak,
    set_cache_limit, set_memory_limit, size_class,
};
pub use alloc::{alloc, free};
