//! The host's table.

use crate::error::{Error, Result};
use std::ffi::CStr;
use std::sync::OnceLock;
use ultramarine_abi::extension::{EXTENSION_MAJOR, EXTENSION_MINOR, ExtensionHost};
use ultramarine_abi::{Error as Raw, Status, read_sized, status};

static HOST: OnceLock<ExtensionHost> = OnceLock::new();

/// Says whom this library's primitives belong to. The first call counts, later ones change nothing.
///
/// Inside of a program `ultramarine::extension` does this by itself; in a Python module
/// `python::connect_python` does.
///
/// # Errors
/// The host's contract has another major, or it lacks what nothing works without: errors, handles.
pub fn connect(host: &'static ExtensionHost) -> Result<()> {
    check_version(host.major, host.minor)?;
    // SAFETY: a table begins with its size; all of its bytes zero are a table.
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

/// Returns whether a host of this version fits.
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

/// Version of the Ultramarine that it is connected to.
///
/// # Errors
/// Nothing is connected.
pub fn version() -> Result<String> {
    let version = here()?.version;
    if version.is_null() {
        return Err(Error::absent("version"));
    }
    // SAFETY: NUL-terminated by contract.
    Ok(unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned())
}

/// The table, if there is one.
pub(crate) fn table() -> Option<&'static ExtensionHost> {
    HOST.get()
}

/// The table.
pub(crate) fn here() -> Result<&'static ExtensionHost> {
    HOST.get().ok_or_else(|| {
        Error::runtime("This library of primitives is not connected to Ultramarine. Call `connect` or `connect_python` first.")
    })
}

/// A function of the table, or an error that names it.
macro_rules! lent {
    ($name:ident) => {
        $crate::host::here()?
            .$name
            .ok_or_else(|| $crate::error::Error::absent(stringify!($name)))?
    };
}
pub(crate) use lent;

/// Calls a function of the host, with place for its error.
pub(crate) fn asked(function: &str, call: impl FnOnce(*mut *mut Raw) -> Status) -> Result<()> {
    let mut error = std::ptr::null_mut();
    match call(&mut error) {
        status::OK => Ok(()),
        code => Err(Error::of_host(function, code, error)),
    }
}
