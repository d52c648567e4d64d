//! Locks that are held across a fork.
//!
//! A forked child has only the thread that forked: a lock that another thread held stays locked for ever. Each part of
//! the library that has such locks registers a hook, which takes them before the fork and releases them after it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::LocalKey;

/// The stages of a fork, one for each part of the library that has a hook, in the order in which their locks are taken:
/// work comes to rest first, and the allocator, which all others use, is locked last. Locks are released in the reverse
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkStage {
    /// The scheduler of evaluations and the threads that wait for nodes.
    Evaluator,
    /// The threads that read files.
    Reads,
    /// Events of a profile.
    Profile,
    /// The list of streams.
    Streams,
    /// The loader's report and settings.
    Loader,
    /// The lock of registrations.
    Backends,
    /// The threads of parallel loops.
    Pool,
    /// The lists of free blocks.
    Allocator,
}

const STAGES: usize = ForkStage::Allocator as usize + 1;

/// The work of a stage of a fork: before it, after it in the parent, and after it in the child. The
/// functions do not unwind.
pub struct Hook {
    /// Takes the locks.
    pub prepare: fn(),
    /// Releases them in the parent.
    pub parent: fn(),
    /// Releases them in the child, and mends what lost its threads.
    pub child: fn(),
}

/// Keeps the guard that a hook's `prepare` locked, for the thread that forks.
pub fn keep<G>(held: &'static LocalKey<RefCell<Option<G>>>, guard: G) {
    let _ = held.try_with(|held| *held.borrow_mut() = Some(guard));
}

/// Returns the guard that [`keep`] kept. A thread that is ending has kept nothing.
pub fn take<G>(held: &'static LocalKey<RefCell<Option<G>>>) -> Option<G> {
    held.try_with(|held| held.borrow_mut().take()).ok().flatten()
}

/// Null until the stage's part registers. No `OnceLock`: a fork while one is set would block the child.
static HOOKS: [AtomicPtr<Hook>; STAGES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; STAGES];

/// Registers the hook of a stage. Later calls for the same stage do nothing.
#[inline]
pub fn register(stage: ForkStage, hook: &'static Hook) {
    if HOOKS[stage as usize].load(Ordering::Relaxed).is_null() {
        register_first(stage, hook);
    }
}

#[cold]
fn register_first(stage: ForkStage, hook: &'static Hook) {
    HOOKS[stage as usize].store(std::ptr::from_ref(hook).cast_mut(), Ordering::Release);
    #[cfg(unix)]
    handlers::register();
}

/// The process's handlers.
#[cfg(unix)]
mod handlers {
    use super::{HOOKS, Hook, STAGES};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};

    thread_local! {
        /// Bit `i`: stage `i` was prepared for the fork that this thread makes. A hook that another thread registers during
        /// the fork is left alone.
        static PREPARED: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn register() {
        static DONE: AtomicBool = AtomicBool::new(false);
        if !DONE.swap(true, Ordering::Relaxed) {
            // SAFETY: plain functions that live for ever. If the call fails (no memory), only forked children suffer.
            unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
        }
    }

    fn hook(stage: usize) -> Option<&'static Hook> {
        // SAFETY: null, or a `&'static Hook`.
        unsafe { HOOKS[stage].load(Ordering::Acquire).as_ref() }
    }

    extern "C" fn prepare() {
        for stage in 0..STAGES {
            if let Some(hook) = hook(stage) {
                (hook.prepare)();
                PREPARED.set(PREPARED.get() | 1 << stage);
            }
        }
    }

    extern "C" fn parent() {
        after(|hook| (hook.parent)());
    }

    extern "C" fn child() {
        after(|hook| (hook.child)());
    }

    fn after(call: impl Fn(&Hook)) {
        let prepared = PREPARED.replace(0);
        for stage in (0..STAGES).rev().filter(|stage| prepared >> stage & 1 == 1) {
            if let Some(hook) = hook(stage) {
                call(hook);
            }
        }
    }
}
