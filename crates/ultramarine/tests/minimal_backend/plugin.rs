//! Builds `examples/backends/minimal` and opens it.

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use ultramarine_abi::{BackendScoreFn, symbol};

/// The backend's source.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/backends/minimal")
}

/// A directory for what a test builds.
pub fn scratch() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("minimal");
    std::fs::create_dir_all(&path).expect("the target directory is writable");
    path
}

/// The C compiler with all warnings as errors.
pub fn cc() -> Command {
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    command
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../ultramarine-abi/include"));
    command
}

/// Runs a command that has to succeed.
pub fn run(command: &mut Command) {
    let output = command.output().expect("the program starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{words}");
}

/// The built library. Each process builds its own, so that none reads a half-written one.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = scratch().join(std::process::id().to_string());
        std::fs::create_dir_all(&folder).expect("the target directory is writable");
        let out = folder.join("libultramarine-minimal.so");
        let mut command = cc();
        command.args(["-fPIC", "-shared", "-fvisibility=hidden"]);
        run(command.arg(directory().join("minimal.c")).arg("-lm").arg("-o").arg(&out));
        out
    })
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
