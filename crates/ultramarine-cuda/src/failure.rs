//! What the driver's codes become.

use crate::sys::driver::{Code, Driver, code};
use core::ffi::{CStr, c_char};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// What a text function of the driver says of a code.
fn say(function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code, of: Code) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the place is valid; the driver gives NULL or a static text.
    let known = unsafe { function(of, &mut text) } == code::SUCCESS && !text.is_null();
    // SAFETY: as above.
    if known {
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    } else {
        String::new()
    }
}

/// The failure of a call, with its name and the driver's own words. Out of memory has a code of
/// its own in the contract.
pub fn of(driver: &Driver, call: &str, result: Code) -> Failure {
    let name = say(driver.error_name, result);
    let words = say(driver.error_string, result);
    let text = format!("{call} failed with CUDA error {result} ({name}): {words}");
    match result {
        code::OUT_OF_MEMORY => Failure { code: status::OUT_OF_MEMORY, text },
        _ => Failure::new(text),
    }
}

/// A call's code as a result.
#[inline]
pub fn check(driver: &Driver, call: &str, result: Code) -> Result<()> {
    if result == code::SUCCESS { Ok(()) } else { Err(of(driver, call, result)) }
}

/// A call by a function of the driver's table: `cuda!(driver.memory_free(address))`. The caller
/// has made the device's context current, where the function wants one.
///
/// # Safety
/// As the driver's documentation has it, at each use.
macro_rules! cuda {
    ($driver:ident . $function:ident ( $($argument:expr),* $(,)? )) => {
        $crate::failure::check(
            $driver,
            stringify!($function),
            ($driver.$function)($($argument),*),
        )
    };
}
pub(crate) use cuda;
