//! CUDA's driver, for the thread of MPI. An MPI library that reads GPU memory needs a current CUDA
//! context in the thread that calls it.

use libloading::Library;
use std::ffi::{c_int, c_void};
use std::path::PathBuf;

/// Environment variable with a directory that has the driver's library.
const FOLDERS: &str = "ULTRAMARINE_CUDA_LIBRARIES";
const NAME: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

type Init = unsafe extern "C" fn(u32) -> c_int;
type DeviceGet = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
type SetCurrent = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Makes the device's primary context, which its other users share, current in the calling thread.
/// It stays current until the process ends.
///
/// # Errors
/// A description of the failure.
pub fn make_current(device: i32) -> Result<(), String> {
    let driver = open()?;
    let context = {
        // SAFETY: the types are those of the driver's interface.
        let (init, get, retain) = unsafe {
            (
                function::<Init>(driver, "cuInit")?,
                function::<DeviceGet>(driver, "cuDeviceGet")?,
                function::<Retain>(driver, "cuDevicePrimaryCtxRetain")?,
            )
        };
        let (mut handle, mut context) = (0, std::ptr::null_mut());
        // SAFETY: the pointers are valid for writing.
        unsafe {
            check("cuInit", init(0))?;
            check("cuDeviceGet", get(&raw mut handle, device))?;
            check("cuDevicePrimaryCtxRetain", retain(&raw mut context, handle))?;
        }
        context
    };
    // SAFETY: as above; the context is never released.
    unsafe { check("cuCtxSetCurrent", function::<SetCurrent>(driver, "cuCtxSetCurrent")?(context)) }
}

/// Opens the driver's library, which is never closed.
fn open() -> Result<&'static Library, String> {
    let folders = std::env::var_os(FOLDERS).unwrap_or_default();
    let named = std::env::split_paths(&folders).map(|folder| folder.join(NAME));
    let mut failure = String::new();
    for path in named.chain([PathBuf::from(NAME)]) {
        // SAFETY: this is the driver's library, which the CUDA backend has opened already.
        match unsafe { Library::new(&path) } {
            Ok(library) => return Ok(Box::leak(Box::new(library))),
            Err(why) => failure = why.to_string(),
        }
    }
    Err(failure)
}

/// # Safety
/// The function has the type `F`, a function pointer.
unsafe fn function<F: Copy>(driver: &Library, name: &str) -> Result<F, String> {
    // SAFETY: as documented for this function.
    unsafe { driver.get::<F>(name.as_bytes()) }.map(|f| *f).map_err(|why| why.to_string())
}

fn check(name: &str, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{name} returned {code}")) }
}
