//! Forked children.

/// Runs `f` in a forked child, and returns the child's wait status: 0 if `f` returned true. A child that hangs is
/// killed after half a minute.
///
/// # Safety
/// `f` uses only what the library makes usable after a fork.
pub unsafe fn in_child(f: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the caller's promise; the child leaves by _exit.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: alarm has no preconditions.
            unsafe { libc::alarm(30) };
            // A panic must not reach the test harness.
            let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(false);
            // SAFETY: _exit has no preconditions.
            unsafe { libc::_exit(if good { 0 } else { 1 }) }
        }
        child => {
            assert!(child > 0, "fork failed");
            let mut status = -1;
            // SAFETY: our child, and a place for its status.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            status
        }
    }
}
