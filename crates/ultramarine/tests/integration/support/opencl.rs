//! Builds `examples/backends/opencl` with its Makefile and opens it.

use super::workshop;
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use ultramarine::{Device, Stream, default_stream};
use ultramarine_abi::{BackendInit, BackendScore, BackendScoreFn, inline_str, symbol};

/// The opened library, or why it cannot be made or used on this machine.
fn library() -> &'static Result<Handle, String> {
    static OPENED: OnceLock<Result<Handle, String>> = OnceLock::new();
    OPENED.get_or_init(|| {
        if !Path::new("/usr/include/CL/cl.h").exists() {
            return Err("OpenCL's headers are not installed".into());
        }
        let path = build().expect("make builds it");
        let path = CString::new(path.to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: a library of ours; the path is NUL-terminated.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?} does not open");
        Ok(Handle(handle))
    })
}

/// Runs the Makefile, once for all processes.
fn build() -> std::io::Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/backends/opencl");
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ultramarine-abi/include");
    let mut files = workshop::files_in(&sources)?;
    files.extend(workshop::files_in(&sources.join("kernels"))?);
    files.extend(workshop::files_in(&headers.join("ultramarine"))?);
    let name = format!("{}.so", workshop::fingerprint(&files, ())?);
    let kept = workshop::target().join("opencl").join(name);
    workshop::once(&kept, |own| {
        let out = own.with_added_extension("build");
        let mut make = Command::new("make");
        make.arg("-C").arg(&sources).arg(format!("OUT={}", out.display()));
        workshop::run(make.arg("CFLAGS=-O1 -Werror"))?;
        std::fs::rename(out.join("libultramarine-opencl.so"), own)?;
        std::fs::remove_dir_all(out)
    })?;
    Ok(kept)
}

/// Where PoCL keeps compiled kernels, unless the environment says it: otherwise every process would compile every
/// kernel again.
pub fn cache() -> PathBuf {
    let given = std::env::var_os("POCL_CACHE_DIR").map(PathBuf::from);
    let path = given.unwrap_or_else(|| workshop::target().join("opencl/pocl-cache"));
    std::fs::create_dir_all(&path).expect("the target directory is writable");
    path
}

/// Runs a test on OpenCL in a process of its own, as `own_process!` does: what is registered, counted and kept
/// by the OpenCL implementation is the process's.
#[macro_export]
macro_rules! opencl_process {
    ($($variables:tt)*) => {
        ultramarine_test_support::own_process!(
            "POCL_CACHE_DIR" = $crate::support::opencl::cache(),
            $($variables)*
        )
    };
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

/// The score that the backend gives itself here.
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

/// Registers it and returns its first device; `None` where it cannot run.
pub fn register() -> Option<Device> {
    let init = init()?;
    // SAFETY: the backend keeps to the contract: that is what is tested here.
    let devices = unsafe { ultramarine::register(init) }.expect("it starts");
    devices.first().copied()
}

/// The default stream of its first device; `None` where it cannot run.
pub fn register_stream() -> Option<Stream> {
    register().map(|device| default_stream(device).expect("a stream"))
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
