//! The host's thread pool, as kernels use it.

use core::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use ultramarine_abi::HostTable;

static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Registers a function by which the host ends loops early. The thread that runs a piece calls it before each piece.
/// Once it returns true, the command that the loop belongs to fails. Only the first registration counts.
pub fn set_interrupted(interrupted: fn() -> bool) {
    let _ = INTERRUPTED.set(interrupted);
}

/// The panic of a kernel whose loop ended early.
struct Interrupted;

/// Runs loops on the host's threads; without a host (unit tests) in place.
#[derive(Clone, Copy, Default)]
pub struct Par {
    host: Option<HostTable>,
}

impl Par {
    /// Uses the pool of `host`.
    pub fn new(host: HostTable) -> Self {
        Self { host: Some(host) }
    }

    /// Threads that [`Par::run`] uses at most.
    pub fn threads(&self) -> usize {
        match &self.host {
            Some(HostTable { thread_count: Some(count), host, .. }) => {
                // SAFETY: the host's own function, called with the host's own pointer.
                unsafe { count(*host) as usize }
            }
            _ => 1,
        }
    }

    /// Calls `body(i)` for every `i < count`, in any order, on several threads, and returns when all calls have
    /// returned. The division of work into indices must depend on shapes alone, never on the number of threads, because
    /// results have to be the same on every machine.
    ///
    /// # Panics
    /// When a call panicked, or the host ended the loop.
    pub fn run<F: Fn(usize) + Sync>(&self, count: usize, body: F) {
        match &self.host {
            Some(HostTable { parallel_for: Some(parallel_for), host, .. }) if count > 1 => {
                let task = Task {
                    body: &body,
                    panicked: AtomicBool::new(false),
                    ended: AtomicBool::new(false),
                };
                // SAFETY: `entry::<F>` gets back the Task it was made for, which
                // outlives the call; F is Sync, so any thread may call it.
                unsafe {
                    parallel_for(*host, count as u64, entry::<F>, &raw const task as *mut c_void)
                };
                if task.ended.load(Ordering::Relaxed) {
                    // Bypass the panic hook, because this is not an error.
                    std::panic::resume_unwind(Box::new(Interrupted));
                }
                assert!(!task.panicked.load(Ordering::Relaxed), "a CPU kernel's task panicked");
            }
            _ => (0..count).for_each(body),
        }
    }
}

struct Task<'a, F> {
    body: &'a F,
    panicked: AtomicBool,
    /// The host ended the loop.
    ended: AtomicBool,
}

/// # Safety
/// `context` is the `Task<F>` of a [`Par::run`] that has not returned.
unsafe extern "C" fn entry<F: Fn(usize) + Sync>(context: *mut c_void, index: u64) {
    // SAFETY: by this function's contract.
    let task = unsafe { &*(context as *const Task<F>) };
    if task.ended.load(Ordering::Relaxed) {
        return;
    }
    if INTERRUPTED.get().is_some_and(|interrupted| interrupted()) {
        task.ended.store(true, Ordering::Relaxed);
        return;
    }
    let call = std::panic::AssertUnwindSafe(|| (task.body)(index as usize));
    if let Err(panic) = std::panic::catch_unwind(call) {
        let place = if panic.is::<Interrupted>() { &task.ended } else { &task.panicked };
        place.store(true, Ordering::Relaxed);
    }
}

/// A raw pointer that tasks may share; each task keeps to its own elements.
#[derive(Clone, Copy)]
pub struct Shared<T>(pub *mut T);
// SAFETY: sharing the address is harmless; every access through it is an unsafe
// block of its own that says why it does not race.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    /// The pointer (a method, so that closures capture the wrapper).
    #[inline(always)]
    pub fn get(self) -> *mut T {
        self.0
    }
}
