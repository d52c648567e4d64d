//! The host table: the functions that backends may call, and the error objects that backends make
//! with them.

use crate::error::{Error, Result};
use crate::{memory::alloc, pool};
use core::ffi::{c_char, c_void};
use std::ptr::NonNull;
use ultramarine_abi::{self as abi, HostTable, ParallelBody, Status, status};

/// The host table, of which there is only one.
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
    /// The index of the command in a list that failed.
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
    // SAFETY: by the ABI, the text is the backend's and valid for the call.
    crate::log::log(crate::log::Level::of(level), unsafe { text(message, len) });
}

unsafe extern "C" fn error_new(
    _host: *mut c_void,
    code: Status,
    message: *const c_char,
    len: u64,
) -> *mut abi::Error {
    // SAFETY: by the ABI, the text is the backend's and valid for the call.
    new_error(code, unsafe { text(message, len) }.into_owned())
}

/// Makes an error object, which [`check`] reads and frees.
pub fn new_error(code: Status, text: String) -> *mut abi::Error {
    Box::into_raw(Box::new(ErrorObject { code, text, command: None })) as *mut abi::Error
}

unsafe extern "C" fn error_command(_host: *mut c_void, error: *mut abi::Error, index: u32) {
    // SAFETY: only `error_new` makes error objects, and the backend owns this one until it returns
    // it.
    if let Some(object) = unsafe { (error as *mut ErrorObject).as_mut() } {
        object.command = Some(index);
    }
}

/// Returns the index of the command at which the submission of a list failed, if the error object
/// has it.
pub fn failed_command(error: *const abi::Error) -> Option<u32> {
    // SAFETY: only `error_new` makes error objects, and this one has not been freed yet.
    unsafe { (error as *const ErrorObject).as_ref() }?.command
}

unsafe extern "C" fn alloc_bytes(_host: *mut c_void, bytes: u64) -> *mut c_void {
    // Store the size in front of the block, in a whole aligned unit, because `free` is not given
    // the size.
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

/// The contract's `parallel_for`, for the host table and the table of extensions.
///
/// # Safety
/// `body` may be called with `context` on any thread, for each index below `count`, and does not
/// unwind.
pub unsafe extern "C" fn parallel_for(
    _host: *mut c_void,
    count: u64,
    body: ParallelBody,
    context: *mut c_void,
) {
    let context = context as usize;
    pool::parallel_for(count as usize, &move |i| {
        // SAFETY: body and context belong to the caller. By the ABI, the body may run on any thread
        // for each index, and does not unwind.
        unsafe { body(context as *mut c_void, i as u64) }
    });
}

/// The contract's `thread_count`, for both tables.
///
/// # Safety
/// There are no requirements; the contract's type is `unsafe`.
pub unsafe extern "C" fn thread_count(_host: *mut c_void) -> u32 {
    pool::threads() as u32
}

/// Turns a status and an error object into a result. Frees the error object.
#[inline]
pub fn check(call: &str, code: Status, error: *mut abi::Error) -> Result<()> {
    if code == status::OK && error.is_null() { Ok(()) } else { check_object(call, code, error) }
}

/// The message for a failure without an error object.
pub(crate) const MUTE: &str = "failed without a message";

/// Like [`check`], but for an error object or a status other than OK.
#[cold]
fn check_object(call: &str, code: Status, error: *mut abi::Error) -> Result<()> {
    let object = if error.is_null() {
        None
    } else {
        // SAFETY: error objects are only made by `error_new`, and each is returned once.
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
