//! The functions for Python extensions.

use super::{ArrayHandle, ExtensionHost, PlaceCode};
use crate::Error;
use core::ffi::{CStr, c_void};

/// Name of the capsule, which is also the path for importing it.
pub const PYTHON_CAPSULE: &CStr = c"ultramarine._C_API";

/// The target of the capsule [`PYTHON_CAPSULE`]. All functions need the interpreter lock; objects
/// are CPython's `PyObject *`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PythonApi {
    /// `size_of::<PythonApi>()` of the host.
    pub size: u32,
    /// Major version, as in the host table.
    pub major: u16,
    /// Minor version, as in the host table.
    pub minor: u16,
    /// The host table.
    pub host: *const ExtensionHost,
    /// Returns 1 if the object is an `ultramarine.array`, else 0.
    pub is_array: Option<unsafe extern "C" fn(object: *mut c_void) -> i32>,
    /// Returns the handle of an `ultramarine.array`. The handle is borrowed: it is valid while the
    /// object lives and no Python code runs. For any other object, returns NULL with a TypeError
    /// set.
    pub array_borrow: Option<unsafe extern "C" fn(object: *mut c_void) -> *mut ArrayHandle>,
    /// Returns an array, which the caller owns, from any object that `ultramarine.asarray` takes.
    /// If this fails, returns NULL with an exception set.
    pub array_from_object: Option<unsafe extern "C" fn(object: *mut c_void) -> *mut ArrayHandle>,
    /// Returns a new reference to an `ultramarine.array`. Takes over the handle, even if it fails
    /// (NULL with an exception set).
    pub array_to_object: Option<unsafe extern "C" fn(array: *mut ArrayHandle) -> *mut c_void>,
    /// Converts an argument `stream=` to a place. Returns 0, or -1 with a TypeError set.
    pub place_from_object:
        Option<unsafe extern "C" fn(object: *mut c_void, place: *mut PlaceCode) -> i32>,
    /// Takes over an error, sets its exception, and returns NULL.
    pub raise: Option<unsafe extern "C" fn(error: *mut Error) -> *mut c_void>,
}

// SAFETY: the table is plain data, and by the contract any thread that holds the interpreter lock
// may call its functions.
unsafe impl Send for PythonApi {}
// SAFETY: as above.
unsafe impl Sync for PythonApi {}
