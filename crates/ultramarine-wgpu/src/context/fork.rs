//! Forks of the process. Drivers do not work in a forked child.

use core::sync::atomic::{AtomicU32, Ordering};

/// Number of forks between the first process that opened a device and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Counts forks from now on. This is cheaper than querying the process id, which is a system call
/// each time.
#[cfg(unix)]
pub fn count_forks() {
    type Handler = unsafe extern "C" fn();
    unsafe extern "C" {
        fn pthread_atfork(
            before: Option<Handler>,
            parent: Option<Handler>,
            child: Option<Handler>,
        ) -> core::ffi::c_int;
    }
    unsafe extern "C" fn child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function only counts, and lives as long as this library, which takes its handlers along if it
        // is ever closed.
        unsafe { pthread_atfork(None, None, Some(child)) };
    });
}

/// On these systems, processes cannot be forked.
#[cfg(not(unix))]
pub fn count_forks() {}

/// The number of forks that were counted.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
