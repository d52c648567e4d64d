//! The host's memory: a caching allocator with limits, and deleters that are deferred to the end of
//! a job.

pub mod alloc;
pub mod deferred_deleters;
mod spin_lock;
mod system;

pub use alloc::{
    AllocError, active, alloc, cache_limit, cached, clear_cache, free, memory_limit, peak,
    reset_peak, set_cache_limit, set_memory_limit, size_class,
};

/// Returns the bytes of memory that this process may use: the machine's memory, or its control
/// group's limit.
pub fn physical() -> usize {
    system::capacity().0
}

/// Returns the bytes of memory and swap that this process may use. The allocator refuses requests
/// beyond it.
pub fn capacity() -> usize {
    system::capacity().1
}
