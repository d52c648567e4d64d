//! Errors of the driver as failures of the contract, with the operation that caused them and a
//! remedy.
//!
//! A fault of a kernel is told by whatever call comes next, and by all after it: the context is
//! lost. The first such code that any call gives is noted with the context ([`crate::context`]),
//! with the operations that may have caused it.

use crate::context;
use crate::sys::driver::{Code, Driver, code};
use core::ffi::{CStr, c_char};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// The driver's words for a code, by one of its two functions.
fn say(function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code, of: Code) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the place is valid; the driver gives NULL or a static text.
    let known = unsafe { function(of, &mut text) } == code::SUCCESS && !text.is_null();
    if known {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    } else {
        String::new()
    }
}

/// True for codes after which the context can never be used again.
pub fn is_sticky(result: Code) -> bool {
    code::STICKY.contains(&result)
}

/// The failure of a call, with its name and the driver's own words. Out of memory has a code of
/// its own in the contract. A code that says that the context is lost is noted.
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

/// A call's code as a result.
#[inline]
pub fn check(driver: &'static Driver, call: &str, result: Code) -> Result<()> {
    if result == code::SUCCESS { Ok(()) } else { Err(of(driver, call, result)) }
}

/// A call by a function of the driver's table: `cuda!(driver.memory_free(address))`. The caller
/// has made the device's context current, where the function wants one.
///
/// # Safety
/// As the driver's documentation has it, at each use.
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
