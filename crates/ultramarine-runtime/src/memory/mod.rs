//! The host's memory: a caching allocator with limits, and deleters that are deferred until the end
//! of a job.

pub mod alloc;
pub mod deferred_deleters;
mod spin_lock;
mod system;

pub use alloc::{
    AllocError, active, alloc, cache_limit, cached, clear_cache, free, memory_limit, peak,
    reset_peak, set_cache_limit, set_memory_limit, size_class,
};

/// Returns the bytes of memory that are available to this process: those of the machine or of the
/// control group.
pub fn physical() -> usize {
    system::capacity().0
}

/// Returns the bytes of memory and swap that are available to this process. The allocator refuses
/// requests beyond this.
pub fn capacity() -> usize {
    system::capacity().1
}
