//! Finding the MPI library.
//!
//! The candidates, in this order:
//!
//! 1. the file that `ULTRAMARINE_MPI_LIBRARY` names (or `MLX_MPI_LIBNAME`, which `mlx.launch`
//!    sets);
//! 2. a library that the process has loaded already (for example, by mpi4py);
//! 3. the implementation whose launcher started the process;
//! 4. Open MPI, then MPICH, in the system's search path.
//!
//! Two implementations in one process would have functions with the same names, so at most one is
//! opened.

use crate::error::Error;
use crate::launcher::{self, Flavour, Launcher};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;
use std::sync::Mutex;

/// An MPI library that was found on this machine.
#[derive(Clone, Debug)]
pub struct Found {
    /// The library's file, if the system reports it; otherwise the name by which it was opened.
    pub path: PathBuf,
    /// Its binary interface.
    pub flavour: Flavour,
    /// Name and version, such as `Open MPI v4.1.4`.
    pub version: String,
}

/// An open library.
#[derive(Clone)]
pub(crate) struct Opened {
    pub library: &'static Library,
    pub found: Found,
}

/// Environment variables that name the library. The first one that is set is used.
const VARIABLES: [&str; 2] = ["ULTRAMARINE_MPI_LIBRARY", "MLX_MPI_LIBNAME"];

/// Names of the libraries, by implementation.
#[cfg(not(target_os = "macos"))]
const NAMES: [(Flavour, &[&str]); 2] =
    [(Flavour::OpenMpi, &["libmpi.so.40"]), (Flavour::Mpich, &["libmpich.so.12", "libmpi.so.12"])];

#[cfg(target_os = "macos")]
const NAMES: [(Flavour, &[&str]); 2] = [
    (Flavour::OpenMpi, &["libmpi.40.dylib", "/opt/homebrew/lib/libmpi.40.dylib"]),
    (Flavour::Mpich, &["libmpi.12.dylib", "/opt/homebrew/lib/libmpi.12.dylib"]),
];

/// Finds an MPI library, without starting MPI.
///
/// # Errors
/// [`Error::NotFound`] if there is none. [`Error::Unusable`] if the file is no MPI library, or
/// belongs to another implementation than the launcher that started this process.
pub fn find() -> Result<Found, Error> {
    open().map(|opened| opened.found)
}

/// Finds and opens the library. Each call returns the same one.
pub(crate) fn open() -> Result<Opened, Error> {
    static OPENED: Mutex<Option<Opened>> = Mutex::new(None);
    let mut opened = OPENED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(opened) = &*opened {
        return Ok(opened.clone());
    }
    let launcher = launcher::launcher();
    let named = VARIABLES.iter().find_map(|name| {
        let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty())?;
        Some((*name, value))
    });
    let made = match named {
        Some((variable, file)) => by_name(variable, &file)?,
        None => by_search(launcher.as_ref())?,
    };
    suits(&made.found, launcher.as_ref())?;
    *opened = Some(made.clone());
    Ok(made)
}

/// Checks that a library belongs to the launcher's implementation, because processes of a launcher
/// can only find each other through this implementation.
fn suits(found: &Found, launcher: Option<&Launcher>) -> Result<(), Error> {
    let Some(Launcher { flavour: Some(wanted), size, mark }) = launcher else { return Ok(()) };
    if *wanted == found.flavour || *size == 1 {
        return Ok(());
    }
    Err(Error::Unusable(format!(
        "this process was started by the mpirun of {wanted} ({mark}), but the MPI library is {} ({}); each process would be \
         alone. Start the program by the mpirun of {}, or install {wanted} and set ULTRAMARINE_MPI_LIBRARY to its library",
        found.version,
        found.path.display(),
        found.flavour
    )))
}

fn by_name(variable: &str, file: &str) -> Result<Opened, Error> {
    match load(file, false) {
        Ok(opened) => Ok(opened),
        Err(Failure::Missing(why)) => Err(Error::NotFound(format!(
            "{variable} names the MPI library {file:?}, which cannot be opened: {why}. Give the path of Open MPI's libmpi.so.40 or \
             MPICH's libmpich.so.12, or unset the variable"
        ))),
        Err(Failure::Foreign(why)) => {
            Err(Error::Unusable(format!("{variable} names {file:?}: {why}")))
        }
    }
}

fn by_search(launcher: Option<&Launcher>) -> Result<Opened, Error> {
    let all = || NAMES.iter().flat_map(|(_, names)| names.iter());
    if let Some(opened) = all().find_map(|name| load(name, true).ok()) {
        return Ok(opened);
    }
    let preferred = launcher.and_then(|l| l.flavour);
    let wanted = preferred.filter(|_| launcher.is_some_and(|l| l.size > 1));
    let mut suitable: Vec<_> =
        NAMES.iter().filter(|(flavour, _)| wanted.is_none_or(|w| w == *flavour)).collect();
    suitable.sort_by_key(|(flavour, _)| preferred.is_some_and(|p| p != *flavour));
    let names: Vec<&str> = suitable.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut failures = Vec::new();
    for name in &names {
        match load(name, false) {
            Ok(opened) => return Ok(opened),
            Err(Failure::Missing(why) | Failure::Foreign(why)) => {
                failures.push(format!("{name}: {why}"));
            }
        }
    }
    let (what, remedy) = match wanted {
        Some(Flavour::OpenMpi) => ("Open MPI's library was not", "apt-get install libopenmpi3"),
        Some(Flavour::Mpich) => ("MPICH's library was not", "apt-get install libmpich12"),
        None => ("No MPI library was", "apt-get install openmpi-bin, or brew install open-mpi"),
    };
    let mark = launcher.map_or(String::new(), |l| format!(", which {} asks for", l.mark));
    Err(Error::NotFound(format!(
        "{what} found{mark} ({}). Install one ({remedy}), or set ULTRAMARINE_MPI_LIBRARY to its path",
        failures.join("; ")
    )))
}

/// A library that cannot be used.
#[cfg_attr(not(unix), allow(dead_code))]
enum Failure {
    /// The system cannot open it.
    Missing(String),
    /// The file is no MPI library, or has an unknown binary interface.
    Foreign(String),
}

/// Opens a library. If `loaded` is true, opens it only if the process has loaded it already.
#[cfg(unix)]
fn load(name: &str, loaded: bool) -> Result<Opened, Failure> {
    use libloading::os::unix::{Library as Unix, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
    let open = |flags| {
        // SAFETY: constructors of an installed library run. Those of MPI do nothing before
        // MPI_Init.
        unsafe { Unix::open(Some(name), flags) }.map(Library::from).map_err(|error| {
            let source = std::error::Error::source(&error);
            Failure::Missing(source.map_or_else(|| error.to_string(), ToString::to_string))
        })
    };
    let mut library = open(RTLD_NOW | RTLD_LOCAL | if loaded { libc::RTLD_NOLOAD } else { 0 })?;
    // SAFETY: only the symbol's address is taken.
    let has = |name: &CStr| unsafe { library.get::<*const ()>(name.to_bytes_with_nul()) }.is_ok();
    let flavour = match (has(c"MPI_Init_thread"), has(c"ompi_mpi_comm_world")) {
        (false, _) => return Err(Failure::Foreign("it is no MPI library".to_owned())),
        (true, true) => Flavour::OpenMpi,
        (true, false) => Flavour::Mpich,
    };
    let version = version(&library);
    let known = ["MPICH", "Intel", "MVAPICH", "CRAY", "Cray"];
    if flavour == Flavour::Mpich && !known.iter().any(|name| version.contains(name)) {
        return Err(Failure::Foreign(format!(
            "its binary interface is not known (it says {version:?}). Use Open MPI 4 or 5, or MPICH 3.1 or later"
        )));
    }
    if flavour == Flavour::OpenMpi {
        // Open the library globally: its components are opened later and look for the library's
        // symbols among the global ones.
        library = open(RTLD_NOW | RTLD_GLOBAL)?;
    }
    let path = file(&library).unwrap_or_else(|| PathBuf::from(name));
    // The library is never closed, because MPI registers exit handlers.
    let library = Box::leak(Box::new(library));
    Ok(Opened { library, found: Found { path, flavour, version } })
}

#[cfg(not(unix))]
fn load(_: &str, _: bool) -> Result<Opened, Failure> {
    Err(Failure::Missing("MPI is supported on Linux and macOS alone".to_owned()))
}

/// Returns name and version, parsed from MPI's own text.
#[cfg_attr(not(unix), allow(dead_code))]
fn version(library: &Library) -> String {
    type Function = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // The interfaces allow at most 8192 bytes.
    let mut text = vec![0u8; 16384];
    let mut length = 0;
    // SAFETY: the type is that of MPI's standard, which allows the call before MPI_Init.
    unsafe {
        if let Ok(function) = library.get::<Function>(b"MPI_Get_library_version\0") {
            function(text.as_mut_ptr().cast(), &raw mut length);
        }
    }
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
    let first = text.lines().next().unwrap_or_default();
    let first = first.split(',').next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    words.join(" ").replace("MPICH Version: ", "MPICH ")
}

/// Returns the file that contains a library's code.
#[cfg(unix)]
fn file(library: &Library) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: only the address is used.
    let symbol = unsafe { library.get::<*const libc::c_void>(b"MPI_Init_thread\0") }.ok()?;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr fills `info` if it returns a value other than 0.
    let name = unsafe {
        if libc::dladdr(*symbol, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init().dli_fname
    };
    if name.is_null() {
        return None;
    }
    // SAFETY: dladdr gives a string that lives as long as the library.
    let name = unsafe { CStr::from_ptr(name) };
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}
