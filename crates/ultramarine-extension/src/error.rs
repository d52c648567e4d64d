//! Errors, and how they cross the boundary.

use crate::{dtype::Dtype, host};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ultramarine_abi::{Error as Raw, Status, helper, status};

/// The result of rules and functions, with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error: a text, and the kind of Python exception.
///
/// ```
/// use ultramarine_extension::Error;
///
/// let error = Error::value("[axpby] the dtype int8 is not supported.");
/// assert_eq!(error.to_string(), "[axpby] the dtype int8 is not supported.");
/// assert!(!error.is_missing());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Status,
    /// `None` for a missing rule.
    text: Option<String>,
}

impl Error {
    /// Makes the error of a missing rule. The rule is then derived from
    /// [`compose`](crate::Primitive::compose). It is the default of every rule.
    pub fn missing() -> Self {
        Self { code: status::UNSUPPORTED, text: None }
    }

    /// Makes the error of a wrong argument, Python's ValueError. The usual form of the text is
    /// `[operation] what failed, the values that were given. The remedy.`
    pub fn value(text: impl Into<String>) -> Self {
        Self::with_code(status::INVALID, text)
    }

    /// Makes the error of a failure that is not the arguments' fault, Python's RuntimeError.
    pub fn runtime(text: impl Into<String>) -> Self {
        Self::with_code(status::ERROR, text)
    }

    /// Makes the error of a lack of memory, Python's MemoryError.
    pub fn out_of_memory(text: impl Into<String>) -> Self {
        Self::with_code(status::OUT_OF_MEMORY, text)
    }

    /// Makes the error of an evaluation that does not support this device or these dtypes. The text
    /// is the reason. If there is a `compose`, it is used instead; otherwise users get this error.
    pub fn unsupported(text: impl Into<String>) -> Self {
        Self::with_code(status::UNSUPPORTED, text)
    }

    /// Makes an error with a code of [`ultramarine_abi::status`]. The code of success becomes the
    /// general error.
    pub fn with_code(code: Status, text: impl Into<String>) -> Self {
        let code = if code == status::OK { status::ERROR } else { code };
        Self { code, text: Some(text.into()) }
    }

    /// Makes the error of a dtype that `operation` does not take. `takes` lists those that it does.
    pub fn dtype(operation: &str, got: Dtype, takes: &[Dtype]) -> Self {
        let names: Vec<_> = takes.iter().map(|d| d.name()).collect();
        Self::value(format!(
            "[{operation}] takes {}, got {got}. Convert it with astype.",
            names.join(", ")
        ))
    }

    /// Returns true if the error is [`Error::missing`].
    pub fn is_missing(&self) -> bool {
        self.text.is_none()
    }

    /// Returns the code, one of [`ultramarine_abi::status`] that is not success.
    pub fn code(&self) -> Status {
        self.code
    }

    /// Returns the message.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("the primitive has no such rule")
    }

    /// Makes the error for a host that lacks a function.
    pub(crate) fn absent(function: &str) -> Self {
        Self::with_code(
            status::UNSUPPORTED,
            format!(
                "[{function}] This version of Ultramarine does not have it. Update Ultramarine."
            ),
        )
    }

    /// Makes the error for a panic.
    pub(crate) fn of_panic(payload: Box<dyn Any + Send>) -> Self {
        let text = helper::panic_message(&*payload).unwrap_or("no text");
        let error = Self::runtime(format!("panicked: {text}"));
        // The payload's drop may panic as well.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        error
    }

    /// Takes over an error object of the host. If it is NULL, the error has only the status.
    pub(crate) fn of_host(function: &str, code: Status, error: *mut Raw) -> Self {
        let Some(table) = host::table().filter(|_| !error.is_null()) else {
            return Self::with_code(
                code,
                format!(
                    "[{function}] Ultramarine returned status {code} without an error. Report it to its authors."
                ),
            );
        };
        let mut reported = code;
        let mut text = String::new();
        // SAFETY: the host's functions with the host's pointer and its error, which is freed once, here.
        unsafe {
            if let Some(code_of) = table.error_code {
                reported = code_of(table.host, error);
            }
            let mut length = 0;
            if let Some(text_of) = table.error_text {
                let bytes = text_of(table.host, error, &mut length);
                if !bytes.is_null() {
                    let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length as usize);
                    text = String::from_utf8_lossy(bytes).into_owned();
                }
            }
            if let Some(free) = table.error_free {
                free(table.host, error);
            }
        }
        Self::with_code(reported, text)
    }

    /// Makes an error object of the host. It is NULL for a missing rule, and if the host cannot
    /// make one.
    pub(crate) fn into_host(self) -> (Status, *mut Raw) {
        let code = self.code;
        let new = host::table().and_then(|table| Some((table.error_new?, table.host)));
        let (Some(text), Some((new, host))) = (self.text, new) else {
            return (code, std::ptr::null_mut());
        };
        // SAFETY: the host's function with the host's pointer; the text is readable.
        (code, unsafe { new(host, code, text.as_ptr().cast(), text.len() as u64) })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}

/// Runs the body of a rule. An error or a panic becomes a status and an error object.
///
/// # Safety
/// `error` is NULL or writable.
pub(crate) unsafe fn guard(error: *mut *mut Raw, body: impl FnOnce() -> Result<()>) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return status::OK,
        Ok(Err(failure)) => failure,
        Err(payload) => Error::of_panic(payload),
    };
    if error.is_null() {
        return failure.code;
    }
    let (code, object) = failure.into_host();
    // SAFETY: by this function's contract.
    unsafe { *error = object };
    code
}

/// Runs a body that cannot return an error.
pub(crate) fn guard_value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        Error::of_panic(payload);
        otherwise
    })
}

/// Runs code that may panic outside of a rule. `what` names the code for the error.
pub(crate) fn caught<T>(what: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let failure = Error::of_panic(payload);
        Err(Error::runtime(format!("[apply] {what}: {failure}")))
    })
}
