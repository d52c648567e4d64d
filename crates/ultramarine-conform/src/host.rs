//! The host table that the kit lends to backends. It counts the objects and the memory that
//! backends get from it, and records violations of the contract.

use core::ffi::{c_char, c_void};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use ultramarine_abi::{self as abi, HostTable, ParallelBody, Status, status};

/// An error that a backend made with the host table.
struct ErrorObject {
    code: Status,
    text: String,
    /// The command of a list that failed.
    command: Option<u32>,
}

/// The host's state.
#[derive(Default)]
struct State {
    /// Live error objects by address.
    errors: HashMap<usize, ErrorObject>,
    next: usize,
    /// Live allocations by address, with their sizes.
    blocks: HashMap<usize, usize>,
    violations: Vec<String>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static BYTES: AtomicI64 = AtomicI64::new(0);
static LOGGED: AtomicU64 = AtomicU64::new(0);

fn locked() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(f: impl FnOnce(&mut State) -> T) -> T {
    f(locked().get_or_insert_default())
}

/// Records that the backend broke a rule. The running check then fails.
pub fn violation(text: String) {
    with(|s| {
        if !s.violations.contains(&text) {
            s.violations.push(text);
        }
    });
}

/// Returns the violations since the last call.
pub fn take_violations() -> Vec<String> {
    with(|s| std::mem::take(&mut s.violations))
}

/// Returns the bytes from [`HostTable::alloc`] that backends have not freed.
pub fn bytes_lent() -> i64 {
    BYTES.load(Ordering::Relaxed)
}

/// Returns the number of error objects that were made and not returned.
pub fn live_errors() -> usize {
    with(|s| s.errors.len())
}

/// Takes over the error object in a pointer that a call filled in. Records violations of the rules
/// for errors.
pub fn take_error(
    call: &str,
    code: Status,
    error: *mut abi::Error,
) -> Option<(String, Option<u32>)> {
    if error.is_null() {
        return None;
    }
    let found = with(|s| s.errors.remove(&(error as usize)));
    match found {
        None => {
            violation(format!(
                "{call}: the error object was not made by error_new; make it with the host's function"
            ));
            None
        }
        Some(ErrorObject { text, .. }) if code == status::OK => {
            violation(format!("{call} returned OK and an error object: {text}; return its status"));
            None
        }
        Some(ErrorObject { code: made, text, command }) => {
            if made != code {
                violation(format!("{call} returned {code}, its error object says {made}: {text}"));
            }
            if text.trim().is_empty() {
                violation(format!("{call}: the error object has no text; give error_new one"));
            }
            Some((text, command))
        }
    }
}

/// The table. It lives as long as the process.
pub fn table() -> &'static HostTable {
    static TABLE: HostTable = HostTable {
        size: size_of::<HostTable>() as u32,
        abi_major: abi::ABI_MAJOR as u16,
        abi_minor: abi::ABI_MINOR as u16,
        host: std::ptr::null_mut(),
        log: Some(log),
        error_new: Some(error_new),
        alloc: Some(alloc),
        free: Some(free),
        parallel_for: Some(parallel_for),
        thread_count: Some(thread_count),
        error_command: Some(error_command),
    };
    &TABLE
}

/// # Safety
/// `text` is readable for `len` bytes, or NULL.
unsafe fn lossy(text: *const c_char, len: u64) -> String {
    if text.is_null() || len == 0 {
        return String::new();
    }
    // SAFETY: by this function's contract.
    let bytes = unsafe { std::slice::from_raw_parts(text as *const u8, len as usize) };
    if std::str::from_utf8(bytes).is_err() {
        violation("text handed to the host is not UTF-8".into());
    }
    String::from_utf8_lossy(bytes).into_owned()
}

unsafe extern "C" fn log(_host: *mut c_void, level: u32, text: *const c_char, len: u64) {
    // SAFETY: the backend's text, by contract.
    let text = unsafe { lossy(text, len) };
    LOGGED.fetch_add(1, Ordering::Relaxed);
    if level > 3 {
        violation(format!("log called with level {level}: {text}"));
    }
}

unsafe extern "C" fn error_new(
    _host: *mut c_void,
    code: Status,
    text: *const c_char,
    len: u64,
) -> *mut abi::Error {
    // SAFETY: the backend's text, by contract.
    let text = unsafe { lossy(text, len) };
    with(|s| {
        // This is not an address of memory. If a backend reads the object, its child process
        // crashes.
        s.next += 16;
        let place = s.next;
        s.errors.insert(place, ErrorObject { code, text, command: None });
        place as *mut abi::Error
    })
}

unsafe extern "C" fn error_command(_host: *mut c_void, error: *mut abi::Error, index: u32) {
    with(|s| match s.errors.get_mut(&(error as usize)) {
        Some(object) => object.command = Some(index),
        None => s.violations.push("error_command got an error that error_new did not make".into()),
    });
}

const ALIGN: usize = 256;

fn layout(bytes: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes.max(1), ALIGN).ok()
}

unsafe extern "C" fn alloc(_host: *mut c_void, bytes: u64) -> *mut c_void {
    let Some((bytes, layout)) = usize::try_from(bytes).ok().and_then(|b| Some((b, layout(b)?)))
    else {
        return std::ptr::null_mut();
    };
    // SAFETY: the layout is not empty.
    let block = unsafe { std::alloc::alloc(layout) };
    if !block.is_null() {
        with(|s| s.blocks.insert(block as usize, bytes));
        BYTES.fetch_add(bytes as i64, Ordering::Relaxed);
    }
    block as *mut c_void
}

unsafe extern "C" fn free(_host: *mut c_void, data: *mut c_void) {
    if data.is_null() {
        return;
    }
    let Some(bytes) = with(|s| s.blocks.remove(&(data as usize))) else {
        violation("free got memory that alloc did not return, or that was freed before".into());
        return;
    };
    BYTES.fetch_sub(bytes as i64, Ordering::Relaxed);
    if let Some(layout) = layout(bytes) {
        // SAFETY: the block was in the list, so `alloc` made it with this layout, and it
        // was not freed since.
        unsafe { std::alloc::dealloc(data as *mut u8, layout) };
    }
}

thread_local! {
    static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

unsafe extern "C" fn parallel_for(
    _host: *mut c_void,
    count: u64,
    body: ParallelBody,
    context: *mut c_void,
) {
    let next = AtomicU64::new(0);
    let context = context as usize;
    let run = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            // SAFETY: the backend's body with the backend's context, once for each index;
            // by contract it may run on any thread and does not unwind.
            unsafe { body(context as *mut c_void, i) };
        }
    };
    // Nested calls run in place.
    if INSIDE.replace(true) {
        run();
        return;
    }
    let helpers = u64::from(threads() - 1).min(count.saturating_sub(1));
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|| {
                INSIDE.set(true);
                run();
            });
        }
        run();
    });
    INSIDE.set(false);
}

fn threads() -> u32 {
    2
}

unsafe extern "C" fn thread_count(_host: *mut c_void) -> u32 {
    threads()
}
