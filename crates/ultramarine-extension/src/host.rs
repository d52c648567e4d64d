//! The host's table.

use crate::error::{Error, Result};
use std::ffi::CStr;
use std::sync::OnceLock;
use ultramarine_abi::extension::{EXTENSION_MAJOR, EXTENSION_MINOR, ExtensionHost};
use ultramarine_abi::{Error as Raw, Status, read_sized, status};

static HOST: OnceLock<ExtensionHost> = OnceLock::new();

/// Connects this library's primitives to a host. Only the first call has an effect.
///
/// Inside of a program `ultramarine::extension` does this automatically; in a Python module
/// `python::connect_python` does.
///
/// # Errors
/// An [`Error`] if the host's contract has another major version, or if it lacks an essential
/// function: those for errors and handles.
pub fn connect(host: &'static ExtensionHost) -> Result<()> {
    check_version(host.major, host.minor)?;
    // SAFETY: a table begins with its size, and an all-zero table is valid.
    let table = unsafe { read_sized(host) }.ok_or_else(Error::missing)?;
    let essential = table.error_new.is_some()
        && table.error_text.is_some()
        && table.error_free.is_some()
        && table.array_retain.is_some()
        && table.array_release.is_some()
        && table.array_type.is_some();
    if !essential {
        let text =
            "The table of Ultramarine lacks functions for errors and handles. Update Ultramarine.";
        return Err(Error::runtime(text));
    }
    HOST.get_or_init(|| table);
    Ok(())
}

/// Checks that a host of this version is compatible.
pub(crate) fn check_version(major: u16, minor: u16) -> Result<()> {
    if major == EXTENSION_MAJOR {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "The extension was built for version {EXTENSION_MAJOR}.{EXTENSION_MINOR} of Ultramarine's contract for \
         extensions, and this Ultramarine has {major}.{minor}. Build the extension again, for this version."
    )))
}

/// Returns true if [`connect`] has succeeded.
pub fn connected() -> bool {
    HOST.get().is_some()
}

/// Returns the version of the connected Ultramarine.
///
/// # Errors
/// An [`Error`] if no host is connected.
pub fn version() -> Result<String> {
    let version = here()?.version;
    if version.is_null() {
        return Err(Error::absent("version"));
    }
    // SAFETY: NUL-terminated by contract.
    Ok(unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned())
}

/// Returns the host's table, if a host is connected.
pub(crate) fn table() -> Option<&'static ExtensionHost> {
    HOST.get()
}

/// Returns the host's table, or an error if no host is connected.
pub(crate) fn here() -> Result<&'static ExtensionHost> {
    HOST.get().ok_or_else(|| {
        Error::runtime("This library of primitives is not connected to Ultramarine. Call `connect` or `connect_python` first.")
    })
}

/// Returns a function of the table, or an error that names it.
macro_rules! lent {
    ($name:ident) => {
        $crate::host::here()?
            .$name
            .ok_or_else(|| $crate::error::Error::absent(stringify!($name)))?
    };
}
pub(crate) use lent;

/// Calls a function of the host, and converts its status and error object.
pub(crate) fn asked(function: &str, call: impl FnOnce(*mut *mut Raw) -> Status) -> Result<()> {
    let mut error = std::ptr::null_mut();
    match call(&mut error) {
        status::OK => Ok(()),
        code => Err(Error::of_host(function, code, error)),
    }
}
