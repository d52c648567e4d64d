//! A device's primary context, which the CUDA runtime and other libraries use too. A fault of any
//! kernel makes the context unusable for good.

pub mod failure;
mod properties;
pub mod submission_log;
pub(crate) mod wait_values;

pub use properties::DeviceProperties;

use crate::sys::driver::{ContextHandle, Driver, EventHandle, Ordinal, code};
use core::ffi::c_int;
use failure::cuda;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use submission_log::SubmissionLog;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// `CU_EVENT_DEFAULT`: the device records the time.
const TIMING: u32 = 0;
/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

/// Maximum number of driver events that are kept for reuse.
const SPARE_EVENTS: usize = 4096;

/// True in a forked child of the process that initialised the driver.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Registers a handler that detects forks, because the driver does not survive a fork.
fn watch_forks() {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            fn pthread_atfork(
                prepare: Option<extern "C" fn()>,
                parent: Option<extern "C" fn()>,
                child: Option<extern "C" fn()>,
            ) -> c_int;
        }
        extern "C" fn child() {
            FORKED.store(true, Ordering::Relaxed);
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the function only stores a flag, and lives as long as this library: if the
            // library is ever closed, its handlers are removed with it.
            unsafe { pthread_atfork(None, None, Some(child)) };
        });
    }
}

/// True in a forked child of the process that initialised the driver.
#[inline]
pub fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Fails in a forked child.
#[inline]
pub fn not_forked() -> Result<()> {
    match forked() {
        false => Ok(()),
        true => Err(Failure {
            code: status::FORKED,
            text: "CUDA cannot be used in a forked process: start it by spawn or exec".to_owned(),
        }),
    }
}

/// The state of a context, shared by all holders that retain it.
struct ContextState {
    handle: usize,
    /// The reason why it is lost.
    lost: OnceLock<String>,
    /// Submission logs of its streams.
    logs: Mutex<Vec<Weak<SubmissionLog>>>,
}

/// The states of all retained contexts.
static STATES: Mutex<Vec<Weak<ContextState>>> = Mutex::new(Vec::new());

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl ContextState {
    fn of(handle: ContextHandle) -> Arc<Self> {
        let mut states = lock(&STATES);
        states.retain(|l| l.strong_count() > 0);
        if let Some(known) =
            states.iter().filter_map(Weak::upgrade).find(|l| l.handle == handle as usize)
        {
            return known;
        }
        let (lost, logs) = (OnceLock::new(), Mutex::default());
        let made = Arc::new(ContextState { handle: handle as usize, lost, logs });
        states.push(Arc::downgrade(&made));
        made
    }

    fn lose(&self, what: &str) -> Failure {
        let text = self.lost.get_or_init(|| {
            let logs: Vec<_> = lock(&self.logs).iter().filter_map(Weak::upgrade).collect();
            format!(
                "the device's context is lost since {what}{}. Arrays of the host and other devices still work; \
                 restart the process to use this device again{}",
                submission_log::describe(&logs),
                match blocking() {
                    true => "",
                    false => " (ULTRAMARINE_CUDA_BLOCKING=1 makes the error name the very operation)",
                }
            )
        });
        Failure::new(text.clone())
    }
}

/// Records that the thread's context is lost, with the reason, and returns the description.
#[cold]
pub fn lose_current(driver: &'static Driver, what: &str) -> Failure {
    let mut current = std::ptr::null_mut();
    // SAFETY: the output pointer is valid.
    unsafe { (driver.context_current)(&mut current) };
    let states: Vec<_> = lock(&STATES).iter().filter_map(Weak::upgrade).collect();
    match states.iter().find(|l| l.handle == current as usize) {
        Some(state) => state.lose(what),
        None => Failure::new(what),
    }
}

/// True if the host waits for every command to complete (`ULTRAMARINE_CUDA_BLOCKING=1`), so that an
/// error names the command that failed.
pub fn blocking() -> bool {
    static BLOCKING: OnceLock<bool> = OnceLock::new();
    *BLOCKING.get_or_init(|| {
        std::env::var("ULTRAMARINE_CUDA_BLOCKING").is_ok_and(|v| !matches!(v.trim(), "" | "0"))
    })
}

/// A retained primary context. Every driver call needs it to be current: [`Context::enter`] makes
/// it current for a scope. A fault of any kernel loses the context for good, and all later calls
/// fail with an error that names the operations that may have caused it ([`submission_log`]).
pub struct Context {
    driver: &'static Driver,
    handle: ContextHandle,
    ordinal: Ordinal,
    state: Arc<ContextState>,
    /// Events for reuse.
    events: Mutex<Vec<EventHandle>>,
    /// Events for reuse that record the time.
    timed_events: Mutex<Vec<EventHandle>>,
    pub(crate) wait_values: wait_values::WaitValues,
}

// SAFETY: contexts and events may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of a device.
    pub fn retain(driver: &'static Driver, ordinal: Ordinal) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        watch_forks();
        not_forked()?;
        // SAFETY: the output pointer is valid; the driver was initialised.
        unsafe { cuda!(driver.context_retain(&mut handle, ordinal)) }?;
        let state = ContextState::of(handle);
        let (events, timed_events, wait_values) = Default::default();
        Ok(Self { driver, handle, ordinal, state, events, timed_events, wait_values })
    }

    /// The driver's handle.
    pub fn handle(&self) -> ContextHandle {
        self.handle
    }

    /// The driver's functions.
    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// Fails in a forked child, or if the context is lost.
    #[inline]
    pub fn usable(&self) -> Result<()> {
        match self.state.lost.get() {
            None => not_forked(),
            Some(why) => not_forked().and(Err(Failure::new(why.clone()))),
        }
    }

    /// Makes this context the calling thread's until the result is dropped. The thread then gets
    /// its former context back, which another library may have chosen. Fails if the context is not
    /// [`Context::usable`].
    #[inline]
    pub fn enter(&self) -> Result<Entered> {
        self.usable()?;
        let driver = self.driver;
        let _relaxed = Relaxed::begin(driver);
        let mut current = std::ptr::null_mut();
        // SAFETY: the output pointer is valid.
        unsafe { cuda!(driver.context_current(&mut current)) }?;
        if current == self.handle {
            return Ok(Entered { driver, pushed: false, _relaxed });
        }
        // SAFETY: a retained context.
        unsafe { cuda!(driver.context_push(self.handle)) }?;
        Ok(Entered { driver, pushed: true, _relaxed })
    }

    /// Registers a stream's log, so that the error for a lost context names the stream's
    /// operations.
    pub fn watch(&self, log: &Arc<SubmissionLog>) {
        let mut logs = lock(&self.state.logs);
        if logs.len() == logs.capacity() {
            logs.retain(|l| l.strong_count() > 0);
        }
        logs.push(Arc::downgrade(log));
    }

    /// Takes an event for ordering. The context is current.
    pub(crate) fn take_event(&self) -> Result<EventHandle> {
        self.take(&self.events, DISABLE_TIMING)
    }

    /// Takes an event that records the time. The context is current.
    pub(crate) fn take_timed_event(&self) -> Result<EventHandle> {
        self.take(&self.timed_events, TIMING)
    }

    fn take(&self, spare: &Mutex<Vec<EventHandle>>, flags: u32) -> Result<EventHandle> {
        if let Some(used) = lock(spare).pop() {
            return Ok(used);
        }
        let (driver, mut event) = (self.driver, std::ptr::null_mut());
        // SAFETY: the output pointer is valid; the context is current.
        unsafe { cuda!(driver.event_create(&mut event, flags)) }?;
        Ok(event)
    }

    /// Takes back an event that nothing waits for.
    pub(crate) fn give_event(&self, event: EventHandle) {
        self.give(&self.events, event);
    }

    /// Takes back a timed event that is not needed any more.
    pub(crate) fn give_timed_event(&self, event: EventHandle) {
        self.give(&self.timed_events, event);
    }

    fn give(&self, spare: &Mutex<Vec<EventHandle>>, event: EventHandle) {
        let mut events = lock(spare);
        if events.len() < SPARE_EVENTS {
            events.push(event);
            return;
        }
        drop(events);
        if let Ok(_entered) = self.enter() {
            // SAFETY: made once, destroyed once; nothing waits for it.
            unsafe { (self.driver.event_destroy)(event) };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Ok(_entered) = self.enter() {
            let timed = std::mem::take(&mut *lock(&self.timed_events));
            for event in lock(&self.events).drain(..).chain(timed) {
                // SAFETY: made once, destroyed once; nothing waits for it.
                unsafe { (self.driver.event_destroy)(event) };
            }
            self.wait_values.close(self.driver);
        }
        if !forked() {
            // SAFETY: retained once, released once.
            unsafe { (self.driver.context_release)(self.ordinal) };
        }
    }
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;

/// While this exists, calls of this thread do not break a graph that another library captures. This
/// backend's calls use streams that are not captured, but they query events and allocate memory,
/// which CUDA otherwise refuses during a capture.
struct Relaxed {
    driver: &'static Driver,
    former: c_int,
}

impl Relaxed {
    #[inline]
    fn begin(driver: &'static Driver) -> Self {
        let mut former = RELAXED;
        // SAFETY: the pointer is valid. After a failure the mode is unchanged.
        let code = unsafe { (driver.capture_mode)(&mut former) };
        Self { driver, former: if code == code::SUCCESS { former } else { RELAXED } }
    }
}

impl Drop for Relaxed {
    #[inline]
    fn drop(&mut self) {
        if self.former != RELAXED {
            // SAFETY: the pointer is valid, and the mode is the thread's former one.
            unsafe { (self.driver.capture_mode)(&mut self.former) };
        }
    }
}

/// A scope in which the device's context is the calling thread's. Dropping it restores the thread's
/// former context.
pub struct Entered {
    driver: &'static Driver,
    pushed: bool,
    _relaxed: Relaxed,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.pushed {
            let mut left = std::ptr::null_mut();
            // SAFETY: it was pushed by this thread.
            unsafe { (self.driver.context_pop)(&mut left) };
        }
    }
}
