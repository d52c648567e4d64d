//! Errors, and the conversion of panics to errors.

use super::Host;
use crate::{Error, Status, status};
use core::any::Any;
use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The failure of an entry point: a status code and a message. [`guard`] makes the host's error
/// object from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of [`status`], not OK.
    pub code: Status,
    /// Message for people.
    pub text: String,
}

/// The result of an entry point, with [`Failure`] as its error.
pub type Result<T> = core::result::Result<T, Failure>;

impl Failure {
    /// Makes a failure with the general status ERROR: the operation failed and its results are
    /// poisoned.
    pub fn new(text: impl Into<String>) -> Self {
        Self { code: status::ERROR, text: text.into() }
    }

    /// Makes the refusal of an operation, dtype or attribute that the backend does not have.
    /// Returned from `prepare`, it makes the host try another way.
    pub fn unsupported(text: impl Into<String>) -> Self {
        Self { code: status::UNSUPPORTED, text: text.into() }
    }

    /// Makes the refusal of strided inputs in `prepare`. The host copies them and prepares again.
    pub fn needs_contiguous() -> Self {
        Self { code: status::NEEDS_CONTIGUOUS, text: "needs contiguous inputs".into() }
    }

    /// Makes the failure to allocate `bytes` bytes.
    pub fn out_of_memory(bytes: u64) -> Self {
        Self { code: status::OUT_OF_MEMORY, text: format!("cannot allocate {bytes} bytes") }
    }

    /// Makes the failure of an argument that breaks the contract.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: status::INVALID, text: text.into() }
    }

    /// Makes the failure of a panic.
    pub(super) fn of_panic(payload: Box<dyn Any + Send>) -> Self {
        let text = panic_message(&*payload).unwrap_or("no text");
        let failure = Self::new(format!("panicked: {text}"));
        // The payload belongs to the backend, and its drop may panic too.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            core::mem::forget(second);
        }
        failure
    }
}

/// Returns the message of a panic, if its payload is a text.
pub fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// Runs the body of an entry point. A failure or a panic becomes a status and an error object.
///
/// # Safety
/// `error` is NULL or writable.
#[inline]
pub unsafe fn guard(
    host: Option<&Host>,
    error: *mut *mut Error,
    body: impl FnOnce() -> Result<()>,
) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return status::OK,
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::of_panic(payload),
    };
    // A failure with the code of success would count as a success.
    let code = if failure.code == status::OK { status::ERROR } else { failure.code };
    if let Some(host) = host
        && !error.is_null()
    {
        // SAFETY: by this function's contract.
        unsafe { *error = host.error(code, &failure.text) };
    }
    code
}

/// Runs the body of an entry point that cannot return an error. A panic is logged, and the caller
/// gets `otherwise`.
pub fn guard_value<T>(host: Option<&Host>, otherwise: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            let failure = Failure::of_panic(payload);
            if let Some(host) = host {
                host.log(super::Level::Error, &failure.text);
            }
            otherwise
        }
    }
}

/// Returns a formatted text as an error, converted to the function's type of error.
///
/// ```
/// use ultramarine_abi::{bail, helper::{Failure, Result}};
/// fn rank(n: usize) -> Result<usize> {
///     if n > 8 {
///         bail!("rank {n} is more than 8");
///     }
///     Ok(n)
/// }
/// assert_eq!(rank(9), Err(Failure::new("rank 9 is more than 8")));
/// ```
#[macro_export]
macro_rules! bail {
    ($($text:tt)+) => {
        return Err(format!($($text)+).into())
    };
}

/// Returns a formatted text as an error, like [`bail!`](crate::bail), if a condition is false:
/// `ensure!(n <= 8, "rank {n} is more than 8")`.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            $crate::bail!($($text)+);
        }
    };
}
