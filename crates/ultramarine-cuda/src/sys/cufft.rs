//! cuFFT: Fourier transforms.

use super::{find, functions};
use core::ffi::{c_int, c_longlong, c_void};
use std::sync::OnceLock;

/// `cufftResult`; 0 is success.
pub type Code = c_int;
/// `cufftHandle`, a plan.
pub type Handle = c_int;

/// `cufftResult` values that are handled specifically.
#[allow(missing_docs)]
pub mod code {
    use super::Code;
    pub const SUCCESS: Code = 0;
    pub const ALLOC_FAILED: Code = 2;
}

/// `cufftType` values.
#[allow(missing_docs)]
pub mod kind {
    use core::ffi::c_int;
    pub const R2C: c_int = 0x2a;
    pub const C2R: c_int = 0x2c;
    pub const C2C: c_int = 0x29;
}

/// `CUFFT_FORWARD`.
pub const FORWARD: c_int = -1;
/// `CUFFT_INVERSE`.
pub const INVERSE: c_int = 1;

functions! {
    /// Functions of cuFFT. They are callable from any thread, but a plan by only one thread at a time.
    Cufft {
        version = "cufftGetVersion" fn(*mut c_int) -> Code;
        create = "cufftCreate" fn(*mut Handle) -> Code;
        destroy = "cufftDestroy" fn(Handle) -> Code;
        auto_allocation = "cufftSetAutoAllocation" fn(Handle, c_int) -> Code;
        make = "cufftMakePlanMany64" fn(
            Handle, c_int, *mut c_longlong, *mut c_longlong, c_longlong, c_longlong,
            *mut c_longlong, c_longlong, c_longlong, c_int, c_longlong, *mut usize,
        ) -> Code;
        set_stream = "cufftSetStream" fn(Handle, *mut c_void) -> Code;
        set_work_area = "cufftSetWorkArea" fn(Handle, *mut c_void) -> Code;
        c2c = "cufftExecC2C" fn(Handle, *mut c_void, *mut c_void, c_int) -> Code;
        r2c = "cufftExecR2C" fn(Handle, *mut c_void, *mut c_void) -> Code;
        c2r = "cufftExecC2R" fn(Handle, *mut c_void, *mut c_void) -> Code;
    }
}

/// cuFFT, opened once, at the first transform.
pub fn cufft() -> Result<&'static Cufft, &'static str> {
    static CUFFT: OnceLock<Result<Cufft, String>> = OnceLock::new();
    let open = || {
        let library = find::open(find::Kind::Cufft)?;
        let table = Cufft::of(library).map_err(|why| format!("cuFFT cannot be used: {why}"))?;
        let mut version = 0;
        // SAFETY: the output pointer is valid.
        match unsafe { (table.version)(&mut version) } {
            code::SUCCESS => Ok(table),
            failed => Err(format!("cuFFT cannot be used: cufftGetVersion failed with {failed}")),
        }
    };
    CUFFT.get_or_init(open).as_ref().map_err(String::as_str)
}
