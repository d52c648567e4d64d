//! Converts driver errors to failures of the contract, with the operation that caused them and a
//! remedy.
//!
//! A fault of a kernel is reported by the next call, whatever that call does, and by all calls
//! after it, because the context is lost. The first such code that any call returns is recorded
//! with the context ([`crate::context`]), together with the operations that may have caused it.

use crate::context;
use crate::sys::driver::{Code, Driver, code};
use core::ffi::{CStr, c_char};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// The driver's name or description of a code, depending on the function.
fn say(function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code, of: Code) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the output pointer is valid; the driver gives NULL or a static text.
    let known = unsafe { function(of, &mut text) } == code::SUCCESS && !text.is_null();
    if known {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    } else {
        String::new()
    }
}

/// Returns true for codes after which the context can never be used again.
pub fn is_sticky(result: Code) -> bool {
    code::STICKY.contains(&result)
}

/// The failure of a call, with its name and the driver's own words. Out of memory has a separate
/// code in the contract. A code that means that the context is lost is recorded.
#[cold]
pub fn of(driver: &'static Driver, call: &str, result: Code) -> Failure {
    let name = say(driver.error_name, result);
    let words = say(driver.error_string, result);
    if is_sticky(result) {
        return context::lose_current(driver, &format!("CUDA error {result} ({name}): {words}"));
    }
    let text = format!("{call} failed with CUDA error {result} ({name}): {words}");
    match result {
        code::OUT_OF_MEMORY => Failure { code: status::OUT_OF_MEMORY, text },
        _ => Failure::new(text),
    }
}

/// Converts a call's code to a result.
#[inline]
pub fn check(driver: &'static Driver, call: &str, result: Code) -> Result<()> {
    if result == code::SUCCESS { Ok(()) } else { Err(of(driver, call, result)) }
}

/// A call of a function in the driver's table: `cuda!(driver.memory_free(address))`. If the
/// function requires a current context, the caller has made the device's context current.
///
/// # Safety
/// The preconditions in the driver's documentation, at each use.
macro_rules! cuda {
    ($driver:ident . $function:ident ( $($argument:expr),* $(,)? )) => {
        $crate::context::failure::check(
            $driver,
            stringify!($function),
            ($driver.$function)($($argument),*),
        )
    };
}
pub(crate) use cuda;
