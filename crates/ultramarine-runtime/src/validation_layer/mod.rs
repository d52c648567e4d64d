//! The validation layer: a table between the host and a backend's table, which checks the calls of
//! both sides. If it is switched off it costs nothing, because the table is not inserted.
//!
//! The contract's functions get a handle of the backend, and nothing from the host by which the
//! layer could find the backend. So each wrapped backend has its own functions: those of a slot, by
//! const generics. Handles stay the backend's; `state.rs` tracks their state.
//!
//! A call that breaks the rules is not passed on. It becomes an error whose text begins with
//! `validation:`, and is counted. An answer that breaks the rules is treated in the same way. If a
//! signal ends the process, the layer first writes the call that the thread was making
//! (`last_call.rs`).
//!
//! (The loader validates the files of plugins: `loader/mod.rs`.)

/// Declares the functions of a slot in a module `of_slot`. They pass the slot's number on to the
/// functions with the same names, so that the function bodies are compiled once and not for each
/// slot.
macro_rules! slots {
    ($(fn $name:ident($($arg:ident: $t:ty),*) $(-> $r:ty)?;)*) => {
        pub(super) mod of_slot {
            use super::*;

            $(pub unsafe extern "C" fn $name<const S: usize>($($arg: $t),*) $(-> $r)? {
                // SAFETY: the arguments are the caller's.
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
    /// The process that wrapped the backend.
    process: u32,
    state: Mutex<State>,
    /// The backend's interface for fused programs, and the layer's wrapper of it.
    fused: OnceLock<(FusedInterface, FusedInterface)>,
    /// The same for programs with an anchor.
    anchored: OnceLock<(AnchoredInterface, AnchoredInterface)>,
    /// The same for memory of other libraries.
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

/// Returns the number of calls and answers that broke the contract's rules. A backend gets the
/// layer if the environment variable `ULTRAMARINE_VALIDATE` is `1` when the backend starts.
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

/// Returns a table that passes calls on to another table and checks them: lifetimes of handles,
/// threads, tensors, the order of events, plans and their commands, errors. Findings are errors
/// whose texts begin with `validation:`. They go to the log, and [`validation_findings`] counts
/// them.
///
/// In one process the layer can wrap the tables of sixteen backends. A further table is returned
/// unchanged.
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

    /// Returns true in a forked child. There the state may be locked for ever, so it is not
    /// accessed.
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

    /// Reports a finding in a call that returns a status.
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

    /// Runs a call that returns a status: checks it, passes it on, and checks the answer. It is
    /// compiled once, and not for each caller.
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
                // The caller has not asked for the error object, so free it.
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

/// Replaces an interface `found` of a wrapped backend. `ours` wraps its functions, and `kept`
/// stores both.
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

/// Checks that a status and an error object are consistent.
fn answer(code: Status, error: *mut abi::Error) -> Check {
    match code {
        status::OK if !error.is_null() => Err("it returned OK and an error object".into()),
        // Other statuses explain themselves and need no message.
        status::ERROR | status::INVALID if error.is_null() => {
            Err(format!("it failed with status {code} and made no error object"))
        }
        status::OK..=status::NOT_YET => Ok(()),
        _ => Err(format!("it returned {code}, which is no status")),
    }
}
