//! The call of a backend that each thread is making. It is written to standard error when a signal
//! ends the process, because a crash ends the process before a finding can be reported.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The most threads whose calls are tracked.
const THREADS: usize = 64;
/// The most bytes of a description.
const ROOM: usize = 1024;

/// The description of a thread's call.
struct Slot {
    /// The thread's number in the system; 0 while it makes no call.
    thread: AtomicU64,
    length: AtomicUsize,
    text: UnsafeCell<[u8; ROOM]>,
}

// SAFETY: only the slot's own thread writes the text, while `thread` is 0. If a signal handler
// reads a text while another thread writes it, it prints a mixture of two texts, but all bytes are
// initialised.
unsafe impl Sync for Slot {}

static SLOTS: [Slot; THREADS] = [const {
    Slot {
        thread: AtomicU64::new(0),
        length: AtomicUsize::new(0),
        text: UnsafeCell::new([0; ROOM]),
    }
}; THREADS];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The slot of this thread.
    static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    /// A description of the next call.
    static DETAIL: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Describes the calling thread's next call: the operations and their tensors.
pub(super) fn describe(detail: String) {
    DETAIL.set(detail);
}

/// A call in progress.
pub(super) struct Inside(Option<&'static Slot>);

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.thread.store(0, Ordering::Release);
        }
    }
}

/// Records a call until the result is dropped.
pub(super) fn enter(call: &str, backend: &str) -> Inside {
    let detail = DETAIL.take();
    // Slots are not reused, because threads that call backends live long.
    let index = OWN.get().unwrap_or_else(|| TAKEN.fetch_add(1, Ordering::Relaxed));
    OWN.set(Some(index));
    let Some(slot) = SLOTS.get(index) else { return Inside(None) };
    if slot.thread.load(Ordering::Relaxed) != 0 {
        // This is a call inside of another call. The outer one stays recorded.
        return Inside(None);
    }
    let colon = if detail.is_empty() { "" } else { ": " };
    let text = format!("{call} of {backend}{colon}{detail}");
    let n = text.len().min(ROOM);
    // SAFETY: the slot belongs to this thread, and is marked as unused.
    unsafe { (&mut *slot.text.get())[..n].copy_from_slice(&text.as_bytes()[..n]) };
    slot.length.store(n, Ordering::Relaxed);
    slot.thread.store(system::thread(), Ordering::Release);
    Inside(Some(slot))
}

/// Installs handlers for the signals that crashes raise. Later calls do nothing.
pub(super) fn watch_crashes() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(system::install);
}

#[cfg(unix)]
mod system {
    use super::{Ordering, SLOTS, Slot};
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;

    const SIGNALS: [(libc::c_int, &str); 5] = [
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGABRT, "SIGABRT"),
    ];

    /// The handlers that were installed before.
    struct Before(UnsafeCell<[MaybeUninit<libc::sigaction>; SIGNALS.len()]>);
    // SAFETY: written once, before the handlers that read it are installed.
    unsafe impl Sync for Before {}
    static BEFORE: Before =
        Before(UnsafeCell::new([const { MaybeUninit::uninit() }; SIGNALS.len()]));

    /// Returns the calling thread's number.
    pub fn thread() -> u64 {
        // SAFETY: no preconditions.
        #[cfg(target_os = "linux")]
        return unsafe { libc::gettid() } as u64;
        // SAFETY: no preconditions. The address of a thread's own data identifies it as well as a
        // number.
        #[cfg(not(target_os = "linux"))]
        return unsafe { libc::pthread_self() } as u64;
    }

    pub fn install() {
        for (i, (signal, _)) in SIGNALS.iter().enumerate() {
            // SAFETY: all-zero is a valid action, whose fields are set here. Only this function
            // writes to the former action.
            unsafe {
                let before = (*BEFORE.0.get())[i].as_mut_ptr();
                if libc::sigaction(*signal, std::ptr::null(), before) != 0 {
                    continue;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as extern "C" fn(_, _, _) as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
                libc::sigaction(*signal, &action, std::ptr::null_mut());
            }
        }
    }

    /// Writes the calls, then does what the former handler did. It calls only functions that are
    /// safe in signal handlers.
    extern "C" fn handle(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        let Some(i) = SIGNALS.iter().position(|s| s.0 == signal) else { return };
        let own = thread();
        let used = |slot: &&Slot| slot.thread.load(Ordering::Acquire) != 0;
        // The crash may be in one of the backend's own threads. Then all calls are candidates.
        let known = SLOTS.iter().any(|s| s.thread.load(Ordering::Acquire) == own);
        for slot in SLOTS.iter().filter(used) {
            if !known || slot.thread.load(Ordering::Acquire) == own {
                write(b"ultramarine: validation: ");
                write(SIGNALS[i].1.as_bytes());
                write(if known { b" in " } else { b" beside " });
                let n = slot.length.load(Ordering::Relaxed).min(super::ROOM);
                // SAFETY: initialised bytes.
                write(unsafe { &(&*slot.text.get())[..n] });
                write(b"\n");
            }
        }
        // SAFETY: `install` stored the former action before it installed this handler.
        unsafe {
            let before = (*BEFORE.0.get())[i].as_ptr();
            libc::sigaction(signal, before, std::ptr::null_mut());
            let former = (*before).sa_sigaction;
            if former == libc::SIG_DFL || former == libc::SIG_IGN {
                libc::raise(signal);
            } else if (*before).sa_flags & libc::SA_SIGINFO != 0 {
                let former: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(former);
                former(signal, info, context);
            } else {
                let former: extern "C" fn(libc::c_int) = std::mem::transmute(former);
                former(signal);
            }
        }
    }

    fn write(bytes: &[u8]) {
        // SAFETY: readable bytes. If they cannot be written, they are lost.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
    }
}

#[cfg(not(unix))]
mod system {
    pub fn thread() -> u64 {
        1
    }

    /// On this system, crashes are not watched.
    pub fn install() {}
}
