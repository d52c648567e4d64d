//! The host's memory: a caching allocator with limits, and releases that wait for the end of a job.

pub mod alloc;
pub mod deferred_deleters;
mod spin_lock;
mod system;

pub use alloc::{
    AllocError, active, alloc, cache_limit, cached, clear_cache, free, memory_limit, peak,
    reset_peak, set_cache_limit, set_memory_limit, size_class,
};

/// Bytes of memory that this process may have: the machine's, or its control group's.
pub fn physical() -> usize {
    system::capacity().0
}

/// Bytes of memory and swap that this process may have: the allocator refuses what is more.
pub fn capacity() -> usize {
    system::capacity().1
}
