//! Forks of the process. Drivers do not survive them.

use core::sync::atomic::{AtomicU32, Ordering};

/// Number of forks between the first process that opened a device and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Starts to count forks. Comparing process ids instead would take a system call each time.
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
        // SAFETY: the function only counts, and lives as long as this library: if the library is ever closed, its
        // handlers are removed with it.
        unsafe { pthread_atfork(None, None, Some(child)) };
    });
}

/// On these systems, processes do not fork.
#[cfg(not(unix))]
pub fn count_forks() {}

/// The number of forks counted so far.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
