//! The host table: the functions that backends may call, and the errors that they make with it.

use crate::error::{Error, Result};
use crate::{memory::alloc, pool};
use core::ffi::{c_char, c_void};
use std::ptr::NonNull;
use ultramarine_abi::{self as abi, HostTable, ParallelBody, Status, status};

/// The one host table.
pub fn table() -> &'static HostTable {
    static TABLE: HostTable = HostTable {
        size: size_of::<HostTable>() as u32,
        abi_major: abi::ABI_MAJOR as u16,
        abi_minor: abi::ABI_MINOR as u16,
        host: std::ptr::null_mut(),
        log: Some(log),
        error_new: Some(error_new),
        alloc: Some(alloc_bytes),
        free: Some(free_bytes),
        parallel_for: Some(parallel_for),
        thread_count: Some(thread_count),
        error_command: Some(error_command),
    };
    &TABLE
}

/// The object behind an [`abi::Error`].
struct ErrorObject {
    code: Status,
    text: String,
    /// The command of a list that failed.
    command: Option<u32>,
}

/// # Safety
/// `text` is readable for `len` bytes, or `len` is 0.
unsafe fn text<'a>(text: *const c_char, len: u64) -> std::borrow::Cow<'a, str> {
    if text.is_null() || len == 0 {
        return "".into();
    }
    // SAFETY: by this function's contract.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text as *const u8, len as usize) })
}

unsafe extern "C" fn log(_host: *mut c_void, level: u32, message: *const c_char, len: u64) {
    // SAFETY: the backend's text, by contract.
    crate::log::log(crate::log::Level::of(level), unsafe { text(message, len) });
}

unsafe extern "C" fn error_new(
    _host: *mut c_void,
    code: Status,
    message: *const c_char,
    len: u64,
) -> *mut abi::Error {
    // SAFETY: the backend's text, by contract.
    new_error(code, unsafe { text(message, len) }.into_owned())
}

/// An error object, which [`check`] reads and frees.
pub fn new_error(code: Status, text: String) -> *mut abi::Error {
    Box::into_raw(Box::new(ErrorObject { code, text, command: None })) as *mut abi::Error
}

unsafe extern "C" fn error_command(_host: *mut c_void, error: *mut abi::Error, index: u32) {
    // SAFETY: error objects are only made by `error_new`, and the backend has this one until it returns it.
    if let Some(object) = unsafe { (error as *mut ErrorObject).as_mut() } {
        object.command = Some(index);
    }
}

/// The command of a list that a submit failed at, if its error object says so.
pub fn failed_command(error: *const abi::Error) -> Option<u32> {
    // SAFETY: error objects are only made by `error_new`, and this one was not freed yet.
    unsafe { (error as *const ErrorObject).as_ref() }?.command
}

unsafe extern "C" fn alloc_bytes(_host: *mut c_void, bytes: u64) -> *mut c_void {
    // The size goes in front, in a whole aligned unit: `free` is not told it.
    let Some(total) = usize::try_from(bytes).ok().and_then(|b| b.checked_add(HEADER)) else {
        return std::ptr::null_mut();
    };
    match alloc::alloc(total) {
        // SAFETY: the block has room for the header, and is aligned for a usize.
        Ok(block) => unsafe {
            (block.as_ptr() as *mut usize).write(total);
            block.as_ptr().add(HEADER) as *mut c_void
        },
        Err(_) => std::ptr::null_mut(),
    }
}

const HEADER: usize = 256;

unsafe extern "C" fn free_bytes(_host: *mut c_void, data: *mut c_void) {
    if let Some(data) = NonNull::new(data as *mut u8) {
        // SAFETY: `data` came from `alloc_bytes`, whose header precedes it.
        unsafe {
            let block = data.sub(HEADER);
            let total = *(block.as_ptr() as *const usize);
            alloc::free(block, total);
        }
    }
}

/// The contract's `parallel_for`, for the host table and that of extensions.
///
/// # Safety
/// `body` may be called with `context` on any thread, for each index below `count`, and does not unwind.
pub unsafe extern "C" fn parallel_for(
    _host: *mut c_void,
    count: u64,
    body: ParallelBody,
    context: *mut c_void,
) {
    let context = context as usize;
    pool::parallel_for(count as usize, &move |i| {
        // SAFETY: the caller's body with the caller's context, for each index; the
        // contract says that it may run on any thread and does not unwind.
        unsafe { body(context as *mut c_void, i as u64) }
    });
}

/// The contract's `thread_count`, likewise.
///
/// # Safety
/// None is needed; the contract's type asks for `unsafe`.
pub unsafe extern "C" fn thread_count(_host: *mut c_void) -> u32 {
    pool::threads() as u32
}

/// Turns a status and an error object (freed here) into a result.
#[inline]
pub fn check(call: &str, code: Status, error: *mut abi::Error) -> Result<()> {
    if code == status::OK && error.is_null() { Ok(()) } else { check_object(call, code, error) }
}

/// The message of a failure that has none.
pub(crate) const MUTE: &str = "failed without a message";

/// As [`check`], with an error object or another status.
#[cold]
fn check_object(call: &str, code: Status, error: *mut abi::Error) -> Result<()> {
    let object = if error.is_null() {
        None
    } else {
        // SAFETY: error objects are only made by `error_new`, and come back once.
        Some(unsafe { Box::from_raw(error as *mut ErrorObject) })
    };
    if code == status::OK {
        return Ok(());
    }
    let mute = || format!("{call} {MUTE} (status {code})");
    let (code, message) = match object {
        Some(o) => (
            if o.code == status::OK { code } else { o.code },
            if o.text.is_empty() { mute() } else { o.text },
        ),
        None => (code, mute()),
    };
    Err(match code {
        status::OUT_OF_MEMORY => Error::Memory(message.into()),
        _ => Error::Runtime(message.into()),
    })
}
