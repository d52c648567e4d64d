//! Builds `examples/backends/opencl` with its Makefile and opens it.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use ultramarine_abi::{BackendInit, BackendScore, BackendScoreFn, inline_str, symbol};

/// The opened library, or why it cannot be made or used on this machine.
fn library() -> &'static Result<Handle, String> {
    static OPENED: OnceLock<Result<Handle, String>> = OnceLock::new();
    OPENED.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl");
        std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
        // Without this every run compiles every kernel again.
        // SAFETY: tests call this before anything else, and nothing else here changes variables.
        unsafe { std::env::set_var("POCL_CACHE_DIR", out.join("pocl-cache")) };
        std::fs::create_dir_all(out.join("pocl-cache")).map_err(|e| e.to_string())?;
        if !Path::new("/usr/include/CL/cl.h").exists() {
            return Err("OpenCL's headers are not installed".into());
        }
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/backends/opencl");
        let mut make = Command::new("make");
        make.arg("-C").arg(place).arg(format!("OUT={}", out.display())).arg("CFLAGS=-O1 -Werror");
        let made = make.output().map_err(|e| format!("make: {e}"))?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let path = out.join("libultramarine-opencl.so");
        let path = CString::new(path.to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: a library of ours; the path is NUL-terminated.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?} does not open");
        Ok(Handle(handle))
    })
}

struct Handle(*mut c_void);
// SAFETY: handles of libraries may be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

fn entry(name: &CStr) -> Result<*mut c_void, String> {
    let handle = library().as_ref().map_err(Clone::clone)?;
    // SAFETY: an open library, a NUL-terminated name.
    let found = unsafe { libc::dlsym(handle.0, name.as_ptr()) };
    assert!(!found.is_null(), "{name:?} is missing");
    Ok(found)
}

/// What the backend says it is worth here.
pub fn score() -> Result<BackendScore, String> {
    // SAFETY: the symbol has this type by the header.
    let ask = unsafe { std::mem::transmute::<*mut c_void, BackendScoreFn>(entry(symbol::SCORE)?) };
    // SAFETY: all-zero is a valid score, with no room for devices.
    let mut score: BackendScore = unsafe { std::mem::zeroed() };
    score.size = size_of::<BackendScore>() as u32;
    // SAFETY: a score that says its size.
    assert_eq!(unsafe { ask(&mut score) }, 0);
    Ok(score)
}

/// Its entry point, where it can run; else says that the tests are skipped, and why.
pub fn init() -> Option<BackendInit> {
    let ready = score().and_then(|score| match score.score {
        0 => Err(inline_str(&score.reason).to_string()),
        _ => entry(symbol::INIT),
    });
    match ready {
        // SAFETY: the symbol has this type by the header.
        Ok(found) => Some(unsafe { std::mem::transmute::<*mut c_void, BackendInit>(found) }),
        Err(reason) => {
            eprintln!("SKIPPED: no OpenCL here: {reason}");
            None
        }
    }
}
