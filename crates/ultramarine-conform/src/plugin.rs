//! The tested backend: the entry points of a library, or the linked-in CPU backend.

use crate::host;
use core::ffi::CStr;
use std::path::{Path, PathBuf};
use ultramarine_abi::{
    self as abi, BackendAbiInfo, BackendAbiInfoFn, BackendInit, BackendScoreFn, BackendTable,
    Status, status, symbol,
};

/// The source of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A shared library.
    File(PathBuf),
    /// The CPU backend that is linked into the kit.
    Builtin,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Builtin => write!(f, "--builtin"),
        }
    }
}

/// The entry points.
#[derive(Clone, Copy)]
pub struct Entry {
    pub abi_info: Option<BackendAbiInfoFn>,
    pub score: Option<BackendScoreFn>,
    pub init: BackendInit,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub call: &'static str,
    pub code: Status,
    pub text: Option<String>,
    /// The index of the command in a list that failed, if the error has it.
    pub command: Option<u32>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} returned {}", self.call, status_name(self.code))?;
        match &self.text {
            Some(text) => write!(f, " ({text})"),
            None => write!(f, " without text"),
        }
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> String {
        failure.to_string()
    }
}

/// Returns the contract's name of a status.
pub fn status_name(code: Status) -> String {
    let known = [
        (status::OK, "OK"),
        (status::ERROR, "ERROR"),
        (status::UNSUPPORTED, "UNSUPPORTED"),
        (status::NEEDS_CONTIGUOUS, "NEEDS_CONTIGUOUS"),
        (status::NOT_YET, "NOT_YET"),
        (status::OUT_OF_MEMORY, "OUT_OF_MEMORY"),
        (status::FORKED, "FORKED"),
        (status::INVALID, "INVALID"),
    ];
    known
        .iter()
        .find(|k| k.0 == code)
        .map_or_else(|| format!("the unknown status {code}"), |k| k.1.to_owned())
}

/// The name of the fused interface's `prepare` for [`call`].
pub const FUSED_PREPARE: &str = "fused prepare";

/// Makes a call that takes an error pointer, and validates the status and the error.
pub fn call(
    name: &'static str,
    f: impl FnOnce(*mut *mut abi::Error) -> Status,
) -> Result<(), Failure> {
    let mut error = std::ptr::null_mut();
    let code = f(&mut error);
    let (text, command) =
        host::take_error(name, code, error).map_or((None, None), |(t, c)| (Some(t), c));
    // Only a fused program may answer NOT_YET.
    let not_yet = code == status::NOT_YET && name == FUSED_PREPARE;
    if !(status::OK..=status::INVALID).contains(&code) && !not_yet {
        host::violation(format!("{name} returned {}", status_name(code)));
    }
    if text.is_none() && matches!(code, status::ERROR | status::INVALID) {
        host::violation(format!("{name} returned {} without a text", status_name(code)));
    }
    if code == status::OK { Ok(()) } else { Err(Failure { call: name, code, text, command }) }
}

/// Opens a library. It stays open, because its code may still be running.
fn open(path: &Path) -> Result<&'static libloading::Library, String> {
    let path = path.canonicalize().map_err(|e| format!("cannot open {}: {e}", path.display()))?;
    // SAFETY: the library's constructors run here. The kit runs them in a child process, because
    // they belong to the code under test.
    let library = unsafe { load(&path) };
    let library = library.map_err(|e| {
        // The system's message, which libloading's own text lacks.
        let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        format!("cannot open {}: {why}", path.display())
    });
    Ok(Box::leak(Box::new(library?)))
}

/// Opens a library and binds all of its symbols at once.
///
/// # Safety
/// The library's constructors can run here.
#[cfg(unix)]
unsafe fn load(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: by this function's contract.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// As above.
///
/// # Safety
/// As above.
#[cfg(not(unix))]
unsafe fn load(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: by this function's contract.
    unsafe { libloading::Library::new(path) }
}

impl Source {
    /// Opens the library and looks the entry points up.
    pub fn entry(&self) -> Result<Entry, String> {
        let path = match self {
            Source::Builtin => {
                return Ok(Entry {
                    abi_info: None,
                    score: None,
                    init: ultramarine_cpu::backend_init,
                });
            }
            Source::File(path) => path,
        };
        let library = open(path)?;
        let missing = |name: &CStr| {
            format!("no entry point {}: {}", name.to_string_lossy(), entry_remedy(name))
        };
        // SAFETY: symbols of these names have these types, by contract.
        unsafe {
            let abi_info = library.get::<BackendAbiInfoFn>(symbol::ABI_INFO.to_bytes_with_nul());
            let score = library.get::<BackendScoreFn>(symbol::SCORE.to_bytes_with_nul());
            let init = library.get::<BackendInit>(symbol::INIT.to_bytes_with_nul());
            Ok(Entry {
                abi_info: Some(*abi_info.map_err(|_| missing(symbol::ABI_INFO))?),
                score: score.ok().map(|s| *s),
                init: *init.map_err(|_| missing(symbol::INIT))?,
            })
        }
    }
}

/// Returns the remedy for a missing required entry point.
pub fn entry_remedy(name: &CStr) -> &'static str {
    if name == symbol::ABI_INFO {
        "write UM_DEFINE_BACKEND(...) once in the library, at file scope (in Rust: export_backend!)"
    } else {
        "define it, with the signature of backend.h; in C++ within extern \"C\""
    }
}

/// A backend after its init.
pub struct Backend {
    pub table: BackendTable,
    pub info: Option<BackendAbiInfo>,
}

impl Entry {
    /// Reads the ABI info, with this contract's size of the struct.
    pub fn info(&self) -> Result<Option<BackendAbiInfo>, String> {
        let Some(ask) = self.abi_info else { return Ok(None) };
        // SAFETY: all-zero bytes are an ABI info.
        let mut info: BackendAbiInfo = unsafe { std::mem::zeroed() };
        info.size = size_of::<BackendAbiInfo>() as u32;
        // SAFETY: the struct is writable and says its size.
        let code = unsafe { ask(&mut info) };
        ensure!(code == status::OK, "abi_info returned {}", status_name(code));
        Ok(Some(info))
    }

    /// Initialises with the kit's host table.
    pub fn init(&self) -> Result<BackendTable, String> {
        // SAFETY: all-zero bytes are a table without functions.
        let mut table: BackendTable = unsafe { std::mem::zeroed() };
        table.size = size_of::<BackendTable>() as u32;
        // SAFETY: both tables are valid, and the host's lives for ever.
        call("init", |e| unsafe { (self.init)(host::table(), &mut table, e) })?;
        Ok(table)
    }
}

impl Backend {
    /// Opens and initialises.
    pub fn load(source: &Source) -> Result<Self, String> {
        let entry = source.entry()?;
        let info = entry.info()?;
        let table = entry.init()?;
        Ok(Backend { table, info })
    }

    /// An optional interface of the backend.
    ///
    /// # Safety
    /// `T` is the interface's struct.
    pub unsafe fn interface<T: Copy>(&self, id: &CStr) -> Option<T> {
        let ask = self.table.interface?;
        // SAFETY: the backend's function with the backend's pointer and a C string.
        let found = unsafe { ask(self.table.backend, id.as_ptr()) };
        // SAFETY: interfaces are static structs that begin with their size.
        unsafe { abi::read_sized(found as *const T) }
    }
}
