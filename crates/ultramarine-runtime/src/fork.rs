//! Locks that are held during a fork.
//!
//! A forked child has only the thread that forked. A lock that another thread held would stay
//! locked forever. Therefore each part of the library with such locks registers a hook, which takes
//! the locks before the fork, and releases them after it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::LocalKey;

/// The stages of a fork, in the order in which their locks are taken. Each part of the library that
/// has a hook has its own stage. The parts that submit work come first, and the allocator, which
/// all others use, is locked last. Locks are released in the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkStage {
    /// The scheduler of evaluations, and the threads that wait for nodes.
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

/// The work of a stage before the fork, after it in the parent, and after it in the child. The
/// functions do not unwind.
pub struct Hook {
    /// Takes the locks.
    pub prepare: fn(),
    /// Releases the locks in the parent.
    pub parent: fn(),
    /// Releases the locks in the child, and repairs the state of threads that do not exist there.
    pub child: fn(),
}

/// Keeps the guard that a hook's `prepare` has locked. It is kept for the thread that forks.
pub fn keep<G>(held: &'static LocalKey<RefCell<Option<G>>>, guard: G) {
    let _ = held.try_with(|held| *held.borrow_mut() = Some(guard));
}

/// Returns the guard that [`keep`] kept. Returns nothing on a thread that is ending.
pub fn take<G>(held: &'static LocalKey<RefCell<Option<G>>>) -> Option<G> {
    held.try_with(|held| held.borrow_mut().take()).ok().flatten()
}

/// NULL until the part of the library registers its hook. This is not a `OnceLock`, because a fork
/// while one is being set would block the child.
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

/// The handlers that are registered for forks of the process.
#[cfg(unix)]
mod handlers {
    use super::{HOOKS, Hook, STAGES};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};

    thread_local! {
        /// Bit `i` is set if stage `i` was prepared for the fork that this thread makes. If another
        /// thread registers a hook during the fork, the hook is not called.
        static PREPARED: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn register() {
        static DONE: AtomicBool = AtomicBool::new(false);
        if !DONE.swap(true, Ordering::Relaxed) {
            // SAFETY: plain functions that are never unloaded. If the call fails for lack of
            // memory, only forked children are affected.
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
