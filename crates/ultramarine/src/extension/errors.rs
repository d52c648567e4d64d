//! Errors at the boundary to extensions. An error object contains an error of this crate, so that an error which a rule
//! only passes on is unchanged.

use crate::error::{Error, Result};
use core::ffi::{c_char, c_void};
use ultramarine_abi::{self as abi, Status, status};

/// The object behind an [`abi::Error`] of this table.
struct Object {
    error: Error,
    /// Its text, for callers that read it through a pointer.
    text: String,
    code: Status,
}

/// The status that fits an error best.
pub(super) fn code_of(error: &Error) -> Status {
    match error {
        Error::Value(_)
        | Error::Type(_)
        | Error::Index(_)
        | Error::Buffer(_)
        | Error::BufferDevice(_) => status::INVALID,
        Error::Memory(_) => status::OUT_OF_MEMORY,
        _ => status::ERROR,
    }
}

/// Makes an error object for an extension. The extension owns the object: it frees it with the table's `error_free`, or
/// returns it.
pub fn give_error(error: Error) -> *mut abi::Error {
    let object = Object { text: error.to_string(), code: code_of(&error), error };
    Box::into_raw(Box::new(object)).cast()
}

/// The error of an object, which this function takes over. NULL stands for a failure without a message.
///
/// # Safety
/// NULL, or an error made by this table that is not used any more.
pub unsafe fn take_error(error: *mut abi::Error) -> Error {
    // SAFETY: by this function's contract.
    match unsafe { owned(error) } {
        Some(object) => object.error,
        None => Error::Runtime(
            "An operation failed without a message. Report it to the author of the extension."
                .into(),
        ),
    }
}

/// # Safety
/// As [`take_error`].
unsafe fn owned(error: *mut abi::Error) -> Option<Box<Object>> {
    // SAFETY: error objects are boxes that `give_error` made, and each is returned only once.
    (!error.is_null()).then(|| unsafe { Box::from_raw(error.cast()) })
}

/// The message of an extension.
///
/// # Safety
/// `text` is readable for `length` bytes, or NULL.
pub(super) unsafe fn message(text: *const c_char, length: u64) -> String {
    if text.is_null() || length == 0 || length > isize::MAX as u64 {
        return String::new();
    }
    // SAFETY: by this function's contract.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast(), length as usize) };
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) unsafe extern "C" fn error_new(
    _: *mut c_void,
    code: Status,
    text: *const c_char,
    length: u64,
) -> *mut abi::Error {
    // SAFETY: the extension's text, by contract.
    let text = unsafe { message(text, length) };
    let error = match code {
        status::INVALID => Error::Value(text.clone().into()),
        status::OUT_OF_MEMORY => Error::Memory(text.clone().into()),
        _ => Error::Runtime(text.clone().into()),
    };
    Box::into_raw(Box::new(Object { error, text, code })).cast()
}

pub(super) unsafe extern "C" fn error_code(_: *mut c_void, error: *const abi::Error) -> Status {
    // SAFETY: NULL or a live error object of this table.
    unsafe { error.cast::<Object>().as_ref() }.map_or(status::OK, |o| o.code)
}

pub(super) unsafe extern "C" fn error_text(
    _: *mut c_void,
    error: *const abi::Error,
    length: *mut u64,
) -> *const c_char {
    // SAFETY: NULL or a live error object of this table.
    let text = unsafe { error.cast::<Object>().as_ref() }.map_or("", |o| &o.text);
    // SAFETY: NULL or the caller's number.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = text.len() as u64;
    }
    text.as_ptr().cast()
}

pub(super) unsafe extern "C" fn error_free(_: *mut c_void, error: *mut abi::Error) {
    // SAFETY: NULL or an error object of this table, which the caller gives up.
    drop(unsafe { owned(error) });
}

/// The outcome of a rule: `false` if it is unsupported, or its error, which names the primitive.
///
/// # Safety
/// `error` is the value that the rule left: NULL or an object of this table.
pub(super) unsafe fn answer(
    name: &str,
    rule: &str,
    code: Status,
    error: *mut abi::Error,
) -> Result<bool> {
    // SAFETY: by this function's contract; the rule no longer owns the object.
    let object = unsafe { owned(error) };
    match (code, object) {
        (status::OK, _) => Ok(true),
        (status::UNSUPPORTED, None) => Ok(false),
        (status::OUT_OF_MEMORY, None) => Err(Error::Memory(
            format!("[{name}] {rule}: no memory. Free arrays, or use smaller ones.").into(),
        )),
        (_, None) => Err(Error::runtime(
            name,
            format!(
                "{rule} failed with status {code} and no message. Report it to the author of the extension."
            ),
        )),
        (_, Some(object)) => Err(named(name, rule, object.error)),
    }
}

/// The error with the primitive's name in front, unless it already has it.
pub(super) fn named(name: &str, rule: &str, error: Error) -> Error {
    let add = |text: String| {
        let rest = text.strip_prefix('[').and_then(|t| t.strip_prefix(name));
        if rest.is_some_and(|t| t.starts_with(']')) {
            text
        } else if text.is_empty() {
            format!(
                "[{name}] {rule} failed without a message. Report it to the author of the extension."
            )
        } else if text.starts_with('[') || text.starts_with("panicked") {
            format!("[{name}] {rule}: {text}")
        } else {
            format!("[{name}] {text}")
        }
    };
    match error {
        Error::Value(t) => Error::Value(t.map(add)),
        Error::Type(t) => Error::Type(t.map(add)),
        Error::Index(t) => Error::Index(t.map(add)),
        Error::Memory(t) => Error::Memory(t.map(add)),
        Error::Runtime(t) => Error::Runtime(t.map(add)),
        other => other,
    }
}
