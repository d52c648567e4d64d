//! Builds `examples/backends/minimal` and opens it.

use super::workshop;
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use ultramarine_abi::{BackendScoreFn, symbol};

/// The backend's source.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/backends/minimal")
}

fn headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ultramarine-abi/include")
}

/// The C compiler with all warnings as errors.
pub fn cc() -> Command {
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    command
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-I"])
        .arg(headers());
    command
}

/// The built library.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build().expect("the C compiler builds it"))
}

fn build() -> std::io::Result<PathBuf> {
    let mut files = workshop::files_in(&directory())?;
    files.extend(workshop::files_in(&headers().join("ultramarine"))?);
    let folder = workshop::target().join("minimal").join(workshop::fingerprint(&files, ())?);
    let kept = folder.join("libultramarine-minimal.so");
    workshop::once(&kept, |own| {
        let mut command = cc();
        command.args(["-fPIC", "-shared", "-fvisibility=hidden"]);
        workshop::run(command.arg(directory().join("minimal.c")).arg("-lm").arg("-o").arg(own))
    })?;
    Ok(kept)
}

fn symbol(name: &CStr) -> *mut c_void {
    let path = CString::new(library().to_string_lossy().as_bytes()).expect("a path");
    // SAFETY: a library of ours, which has no constructors; the name is NUL-terminated.
    let found = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!handle.is_null(), "{}", library().display());
        libc::dlsym(handle, name.as_ptr())
    };
    assert!(!found.is_null(), "{name:?}");
    found
}

/// Its score.
pub fn score() -> BackendScoreFn {
    // SAFETY: the symbol has this type by the header.
    unsafe { std::mem::transmute::<*mut c_void, BackendScoreFn>(symbol(symbol::SCORE)) }
}
