//! NVRTC, the compiler of CUDA C at run time.

use super::{find, functions};
use core::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

/// `nvrtcProgram`.
pub type ProgramHandle = *mut c_void;
/// `nvrtcResult`; 0 is success.
pub type Code = c_int;
/// `NVRTC_ERROR_COMPILATION`: the log has the reason.
pub const COMPILATION: Code = 6;

functions! {
    /// Functions of NVRTC. They are callable from any thread.
    Nvrtc {
        version = "nvrtcVersion" fn(*mut c_int, *mut c_int) -> Code;
        create = "nvrtcCreateProgram" fn(
            *mut ProgramHandle, *const c_char, *const c_char, c_int, *const *const c_char,
            *const *const c_char,
        ) -> Code;
        destroy = "nvrtcDestroyProgram" fn(*mut ProgramHandle) -> Code;
        compile = "nvrtcCompileProgram" fn(ProgramHandle, c_int, *const *const c_char) -> Code;
        log_size = "nvrtcGetProgramLogSize" fn(ProgramHandle, *mut usize) -> Code;
        log = "nvrtcGetProgramLog" fn(ProgramHandle, *mut c_char) -> Code;
        cubin_size = "nvrtcGetCUBINSize" fn(ProgramHandle, *mut usize) -> Code;
        cubin = "nvrtcGetCUBIN" fn(ProgramHandle, *mut c_char) -> Code;
        ptx_size = "nvrtcGetPTXSize" fn(ProgramHandle, *mut usize) -> Code;
        ptx = "nvrtcGetPTX" fn(ProgramHandle, *mut c_char) -> Code;
        add_name = "nvrtcAddNameExpression" fn(ProgramHandle, *const c_char) -> Code;
        lowered_name = "nvrtcGetLoweredName" fn(ProgramHandle, *const c_char, *mut *const c_char) -> Code;
        error_string = "nvrtcGetErrorString" fn(Code) -> *const c_char;
        arch_count = "nvrtcGetNumSupportedArchs" fn(*mut c_int) -> Code;
        archs = "nvrtcGetSupportedArchs" fn(*mut c_int) -> Code;
    }
}

/// NVRTC, opened once, at the first kernel.
pub fn nvrtc() -> Result<&'static Nvrtc, &'static str> {
    static NVRTC: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
    let found = NVRTC.get_or_init(|| {
        let library = find::open(find::Kind::Nvrtc)?;
        Nvrtc::of(library).map_err(|why| {
            format!("NVRTC cannot be used: {why}. Install one of CUDA 12 or later, such as by `pip install nvidia-cuda-nvrtc`")
        })
    });
    found.as_ref().map_err(String::as_str)
}
