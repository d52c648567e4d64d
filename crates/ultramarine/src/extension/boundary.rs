//! The common frame of the table's functions: they do not unwind, and validate input before use.

use super::errors::give_error;
use crate::error::{Error, Result, bail, ensure};
use crate::eval::panic_text;
use core::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use ultramarine_abi::{self as abi, Status, status};

/// Reason why a function returns no result.
pub(super) enum Failure {
    /// It failed with an error.
    Error(Error),
    /// It is not supported, which is not an error.
    Unsupported,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// Runs a function of the table. Errors are written to `error`, unless it is NULL.
///
/// # Safety
/// `error` is NULL or the caller's pointer.
pub(super) unsafe fn guard(
    function: &str,
    error: *mut *mut abi::Error,
    f: impl FnOnce() -> Result<(), Failure>,
) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => return status::OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = format!("panicked: {}", panic_text(&*panic));
            // Dropping the panic's payload could panic again.
            std::mem::forget(panic);
            Failure::Error(Error::runtime(function, text))
        }
    };
    let found = match failure {
        Failure::Unsupported => return status::UNSUPPORTED,
        Failure::Error(found) => found,
    };
    let object = give_error(found);
    let mut code = status::ERROR;
    // SAFETY: a live object; `error` is NULL or the caller's.
    unsafe {
        let known = super::errors::error_code(std::ptr::null_mut(), object);
        if known != status::OK {
            code = known;
        }
        match error.as_mut() {
            Some(error) => *error = object,
            None => super::errors::error_free(std::ptr::null_mut(), object),
        }
    }
    code
}

/// A struct of the contract. It is `#[repr(C)]`, its first field is `size: u32`, and all zeros are a valid value.
///
/// # Safety
/// The type has these properties.
pub(super) unsafe trait Sized32: Copy {
    /// Its name in C, for errors.
    const NAME: &'static str;
    /// Its size in version 1.0. Every extension of this major version passes at least this size.
    const FIRST: usize;
}

macro_rules! sized {
    ($($t:ident $name:literal $first:literal)*) => {
        $(
            // SAFETY: as defined in the contract: integers, and pointers that may be NULL.
            unsafe impl Sized32 for ultramarine_abi::extension::$t {
                const NAME: &'static str = $name;
                const FIRST: usize = $first;
            }
            const _: () = assert!(size_of::<ultramarine_abi::extension::$t>() >= $first);
        )*
    };
}

sized! {
    PlaceCode "um_place" 24
    TensorType "um_tensor_type" 272
    View "um_view" 48
    KernelText "um_kernel_text" 48
    KernelProperties "um_kernel_properties" 16
    Binding "um_binding" 48
    Dispatch "um_dispatch" 48
    Primitive "um_primitive" 128
    Attribute "um_attribute" 64
}

/// The `size` of a struct, if it is at least the size of version 1.0.
///
/// # Safety
/// `at` is NULL or points to a struct of the size that it states.
unsafe fn valid_size<T: Sized32>(function: &str, at: *const T) -> Result<u32> {
    ensure!(!at.is_null(), function, "NULL for {}.", T::NAME);
    ensure!(at.is_aligned(), function, "{} is misaligned.", T::NAME);
    // SAFETY: not NULL; begins with its size.
    let size = unsafe { at.cast::<u32>().read() };
    if (size as usize) < T::FIRST {
        bail!(
            function,
            "{} has size {size}, which must be at least {}. Set its field `size` to sizeof the struct.",
            T::NAME,
            T::FIRST
        );
    }
    Ok(size)
}

/// Reads a struct that the caller passed. Fields that an older struct does not have are zero.
///
/// # Safety
/// `at` is NULL or points to a struct of the size that it states.
pub(super) unsafe fn read<T: Sized32>(function: &str, at: *const T) -> Result<T> {
    // SAFETY: by this function's contract; the copy does not exceed the struct, and zeros are a valid value.
    unsafe {
        let size = valid_size(function, at)?;
        let mut value = std::mem::zeroed::<T>();
        let bytes = (size as usize).min(size_of::<T>());
        at.cast::<u8>().copy_to_nonoverlapping((&raw mut value).cast(), bytes);
        Ok(value)
    }
}

/// Fills a struct for the caller. The struct keeps its `size`, and gets only the fields that fit.
///
/// # Safety
/// `at` is NULL or points to a struct of the caller's, of the size that it states.
pub(super) unsafe fn fill<T: Sized32>(function: &str, at: *mut T, value: T) -> Result<()> {
    // SAFETY: by this function's contract; no more is written than fits.
    unsafe {
        let size = valid_size(function, at)?;
        let bytes = (size as usize).min(size_of::<T>());
        (&raw const value).cast::<u8>().copy_to_nonoverlapping(at.cast(), bytes);
        at.cast::<u32>().write(size);
    }
    Ok(())
}

/// As [`fill`], unless `at` is NULL.
///
/// # Safety
/// As [`fill`].
pub(super) unsafe fn fill_if<T: Sized32>(function: &str, at: *mut T, value: T) -> Result<()> {
    // SAFETY: by this function's contract.
    if at.is_null() { Ok(()) } else { unsafe { fill(function, at, value) } }
}

/// Checks a struct that will be filled later, unless `at` is NULL.
///
/// # Safety
/// As [`fill`].
pub(super) unsafe fn check_if<T: Sized32>(function: &str, at: *mut T) -> Result<()> {
    // SAFETY: by this function's contract.
    if at.is_null() { Ok(()) } else { unsafe { valid_size(function, at.cast_const()) }.map(drop) }
}

/// Reads an array of structs, `stride` bytes apart (0: the first struct's `size`).
///
/// # Safety
/// `at` is NULL or points to `n` structs with that stride.
pub(super) unsafe fn read_all<T: Sized32>(
    function: &str,
    at: *const T,
    n: u32,
    stride: u32,
) -> Result<Vec<T>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: by this function's contract there is at least one struct.
    let size = unsafe { valid_size(function, at)? };
    let stride = if stride == 0 { size } else { stride } as usize;
    if stride < size as usize || !stride.is_multiple_of(align_of::<T>()) {
        bail!(function, "A list of {} has stride {stride}. Set it to sizeof the struct.", T::NAME);
    }
    // SAFETY: by this function's contract.
    (0..n as usize).map(|i| unsafe { read(function, at.byte_add(i * stride)) }).collect()
}

/// A list of plain values.
///
/// # Safety
/// `at` is NULL or points to `n` values that live as long as `'a`.
pub(super) unsafe fn list<'a, T: Copy>(
    function: &str,
    what: &str,
    at: *const T,
    n: u64,
) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    let bytes = n.checked_mul(size_of::<T>() as u64);
    if at.is_null() || !at.is_aligned() || bytes.is_none_or(|b| b > isize::MAX as u64) {
        bail!(
            function,
            "The pointer to {what} is NULL or misaligned. Pass a valid pointer, or a count of 0."
        );
    }
    // SAFETY: not NULL, aligned; `n` values by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts(at, n as usize) })
}

/// A NUL-terminated text.
///
/// # Safety
/// `at` is NULL or NUL-terminated, and lives as long as `'a`.
pub(super) unsafe fn text<'a>(function: &str, what: &str, at: *const c_char) -> Result<&'a str> {
    ensure!(!at.is_null(), function, "The pointer to {what} is NULL. Pass a string.");
    // SAFETY: not NULL; NUL-terminated by this function's contract.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map_err(|_| Error::value(function, format!("{what} is not UTF-8. Pass UTF-8.")))
}
