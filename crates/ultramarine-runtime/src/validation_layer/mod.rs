//! The validation layer: a table between the host and a backend's table, which checks the calls of
//! both sides. If it is switched off, it does not exist and costs nothing.
//!
//! The ABI's functions get a handle of the backend, and no data of the host. Therefore each wrapped
//! backend needs its own functions, which const generics generate for each slot. Handles remain
//! those of the backend, and `state.rs` tracks their state. A call that violates the rules is not
//! passed on. It becomes an error whose text begins with `validation:`, and is counted. The same
//! holds for a result that violates the rules. If a signal ends the process, the layer first writes
//! the call that the thread was in (`last_call.rs`).
//!
//! (The loader validates the files of plugins: `loader/mod.rs`.)

/// Makes the functions of a slot in a module `of_slot`. They pass the slot's number to the
/// functions of the same names, whose bodies are thus compiled only once, and not for each slot.
macro_rules! slots {
    ($(fn $name:ident($($arg:ident: $t:ty),*) $(-> $r:ty)?;)*) => {
        pub(super) mod of_slot {
            use super::*;

            $(pub unsafe extern "C" fn $name<const S: usize>($($arg: $t),*) $(-> $r)? {
                // SAFETY: the caller's arguments.
                unsafe { super::$name(S, $($arg),*) }
            })*
        }
    };
}

mod calls;
mod collective;
mod commands;
mod kernel;
mod last_call;
mod memory;
mod replay;
mod signature;
mod state;
mod stream_memory;
mod tensors;
mod timing;
mod upload;

use crate::log::{self, Level};
use crate::{host_table, sync::lock};
use state::State;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use ultramarine_abi::interface::{
    collective::CollectiveInterface, kernel::KernelInterface, memory::MemoryInterface,
    replay::ReplayInterface, stream_memory::StreamMemoryInterface, timing::TimingInterface,
    upload::UploadInterface,
};
use ultramarine_abi::{
    self as abi, Status,
    dlpack::device_type,
    fused::{AnchoredInterface, FusedInterface},
    status,
};

/// Number of backends that the layer can wrap in one process.
const SLOTS: usize = 16;

/// A wrapped backend.
struct Context {
    real: abi::BackendTable,
    name: String,
    /// The id of the process that wrapped it.
    process: u32,
    state: Mutex<State>,
    /// The backend's interface for fused programs, and this layer's wrapper.
    fused: OnceLock<(FusedInterface, FusedInterface)>,
    /// The same for programs with an anchor.
    anchored: OnceLock<(AnchoredInterface, AnchoredInterface)>,
    /// The same for foreign memory.
    memory: OnceLock<(MemoryInterface, MemoryInterface)>,
    /// The same for users' kernels.
    kernel: OnceLock<(KernelInterface, KernelInterface)>,
    /// The same for memory in the order of streams.
    stream_memory: OnceLock<(StreamMemoryInterface, StreamMemoryInterface)>,
    /// The same for recordings.
    replay: OnceLock<(ReplayInterface, ReplayInterface)>,
    /// The same for timestamps.
    timing: OnceLock<(TimingInterface, TimingInterface)>,
    /// The same for memory that is lent for uploads.
    upload: OnceLock<(UploadInterface, UploadInterface)>,
    /// The same for groups.
    collective: OnceLock<(CollectiveInterface, CollectiveInterface)>,
}

static CONTEXTS: [OnceLock<Context>; SLOTS] = [const { OnceLock::new() }; SLOTS];
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static FINDINGS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of calls and results so far that violated the ABI's rules. A backend gets the
/// layer if the environment variable `ULTRAMARINE_VALIDATE` is `1` when it starts.
pub fn validation_findings() -> u64 {
    FINDINGS.load(Ordering::Relaxed)
}

/// Returns true if the environment variable `ULTRAMARINE_VALIDATE` is `1`.
pub fn is_enabled() -> bool {
    std::env::var_os("ULTRAMARINE_VALIDATE").is_some_and(|v| v == "1")
}

/// Wraps the table of a started backend, if the environment variable requests it.
pub(super) fn wrap_if_enabled(table: abi::BackendTable) -> abi::BackendTable {
    if is_enabled() { with_validation_layer(table) } else { table }
}

/// Returns a table that checks calls and passes them on to another table. It checks lifetimes of
/// handles, threads, tensors, the order of events, plans and their commands, and errors. Findings
/// are errors with texts that begin with `validation:`. They are logged, and
/// [`validation_findings`] counts them.
///
/// At most sixteen tables can be wrapped in a process; further tables are returned unchanged.
pub fn with_validation_layer(table: abi::BackendTable) -> abi::BackendTable {
    let name = if table.name.is_null() {
        "unnamed".to_owned()
    } else {
        // SAFETY: a table's name is a static NUL-terminated string by contract.
        unsafe { CStr::from_ptr(table.name) }.to_string_lossy().into_owned()
    };
    last_call::watch_crashes();
    let slot = TAKEN.fetch_add(1, Ordering::Relaxed);
    let Some(place) = CONTEXTS.get(slot) else {
        log::log(
            Level::Warning,
            format_args!("validation: {name} is not watched: too many backends"),
        );
        return table;
    };
    place.get_or_init(|| Context {
        real: table,
        name,
        process: std::process::id(),
        state: Mutex::default(),
        fused: OnceLock::new(),
        anchored: OnceLock::new(),
        memory: OnceLock::new(),
        kernel: OnceLock::new(),
        stream_memory: OnceLock::new(),
        replay: OnceLock::new(),
        timing: OnceLock::new(),
        upload: OnceLock::new(),
        collective: OnceLock::new(),
    });
    calls::table(slot, &table)
}

/// The result of a check: nothing, or the violation as text.
type Check = Result<(), String>;

impl Context {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn is_cpu(&self) -> bool {
        self.real.device_type == device_type::CPU
    }

    /// In a forked child the state may be locked for ever: it is not looked at there.
    fn forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// Counts and logs a finding, and returns its text.
    fn finding(&self, call: &str, what: &str) -> String {
        FINDINGS.fetch_add(1, Ordering::Relaxed);
        let text = format!("validation: {} of {}: {what}", call, self.name);
        log::log(Level::Error, &text);
        text
    }

    /// A finding in a call that can fail.
    ///
    /// # Safety
    /// `error` is NULL or writable.
    unsafe fn refuse(
        &self,
        call: &str,
        what: &str,
        code: Status,
        error: *mut *mut abi::Error,
    ) -> Status {
        let text = self.finding(call, what);
        if !error.is_null() {
            // SAFETY: by this function's contract.
            unsafe { *error = host_table::new_error(code, text) };
        }
        code
    }

    /// Runs a call that can fail: checks it, passes it on, checks the answer. Compiled once, not for each caller.
    ///
    /// # Safety
    /// `error` is NULL or writable.
    unsafe fn call(
        &self,
        call: &str,
        error: *mut *mut abi::Error,
        stream: Option<state::HandleKey>,
        before: &dyn Fn(&mut State) -> Check,
        real: &dyn Fn(*mut *mut abi::Error) -> Status,
        after: &dyn Fn(&mut State) -> Check,
    ) -> Status {
        if self.forked() {
            if self.is_cpu() {
                return real(error);
            }
            let what = "called in a forked child of the process that opened the device";
            // SAFETY: by this function's contract.
            return unsafe { self.refuse(call, what, status::FORKED, error) };
        }
        let checked = {
            let mut state = self.state();
            state.enter(stream).and_then(|()| {
                let checked = before(&mut state);
                if checked.is_err() {
                    state.leave(stream);
                }
                checked
            })
        };
        if let Err(what) = checked {
            // SAFETY: by this function's contract.
            return unsafe { self.refuse(call, &what, status::ERROR, error) };
        }
        let mut made = std::ptr::null_mut();
        let code = {
            let _inside = last_call::enter(call, &self.name);
            real(&mut made)
        };
        let checked = {
            let mut state = self.state();
            state.leave(stream);
            answer(code, made)
                .and_then(|()| if code == status::OK { after(&mut state) } else { Ok(()) })
        };
        match checked {
            Ok(()) if error.is_null() => {
                // The caller does not want the error object.
                let _ = host_table::check(call, code, made);
                code
            }
            Ok(()) => {
                // SAFETY: by this function's contract.
                unsafe { *error = made };
                code
            }
            Err(what) => {
                let _ = host_table::check(call, code, made);
                let code = if code == status::OK { status::ERROR } else { code };
                // SAFETY: by this function's contract.
                unsafe { self.refuse(call, &what, code, error) }
            }
        }
    }
}

/// An interface of a wrapped backend, in place of the one `found`; `ours` wraps its functions. `kept` holds both.
///
/// # Safety
/// `found` is NULL or a static interface that begins with its size; an all-zero `T` is valid.
unsafe fn replaced<T: Copy>(
    kept: &'static OnceLock<(T, T)>,
    found: *const c_void,
    ours: impl FnOnce(T) -> T,
) -> *const c_void {
    // SAFETY: by this function's contract.
    let Some(real) = (unsafe { abi::read_sized(found.cast::<T>()) }) else { return found };
    let (_, ours) = kept.get_or_init(|| (real, ours(real)));
    (&raw const *ours).cast()
}

/// Checks that a status and an error object go together.
fn answer(code: Status, error: *mut abi::Error) -> Check {
    match code {
        status::OK if !error.is_null() => Err("it returned OK and an error object".into()),
        // Statuses that say all there is to say need no words.
        status::ERROR | status::INVALID if error.is_null() => {
            Err(format!("it failed with status {code} and made no error object"))
        }
        status::OK..=status::NOT_YET => Ok(()),
        _ => Err(format!("it returned {code}, which is no status")),
    }
}
