//! Finds and loads backends at run time.
//!
//! ```text
//! directories -> files            search.rs               either/or: environment, else the rules
//!             -> validation       file_permissions.rs     who may replace the file
//!                                 binary_header.rs        machine, length, note with the ABI info: no code has run
//!                                 segments.rs             places and rights of what the system will map
//!                                 abi_compatibility.rs    versions, name, processor features (cpu_features.rs)
//!             -> globs, probe     probe.rs                a child process tries it first (probe_cache.rs)
//!             -> dlopen, score    library.rs
//!             -> filter, best of each name, init, registration    here
//! ```
//!
//! A candidate that is left out has a reason (reason.rs), which the report shows (report.rs).

mod abi_compatibility;
mod binary_header;
mod cpu_features;
mod file_permissions;
mod library;
mod pipeline;
mod probe;
mod probe_cache;
mod reason;
mod report;
mod search;
mod segments;
mod state;

pub use abi_compatibility::{BackendProperties, DeviceProperties};
pub use pipeline::Offer;
pub use probe::{probe_here, set_probe_command, set_probe_timeout};
pub use reason::{Code, Reason};
pub use report::{
    Candidate, Directory, Outcome, Report, Stage, report, report_json, report_table, show_report,
};
pub use search::{Rule, SearchPath, add_search_directory, search_paths, set_search_paths};

use crate::backend::registration::Registration;
use crate::backend::registry::{self, BackendInfo};
use crate::error::{Error, Result};
use crate::packages;
use pipeline::{Found, Wanted};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A filter of [`LoadOptions`]: a backend is loaded only if the filter returns true.
pub type Filter<'a> = dyn Fn(&Offer) -> Result<bool> + 'a;

/// Options of [`load_all`]: which of the backends that can run on this machine are loaded. The
/// default is all of them.
#[derive(Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// Globs. One must match `name` or `name-variant`. `None` allows all.
    pub allowed: Option<&'a [&'a str]>,
    /// Globs. None may match `name` or `name-variant`.
    pub blocked: &'a [&'a str],
    /// Called for each backend that can run on this machine, before the best of each name is chosen
    /// and before any is initialised. It must not load backends.
    pub filter: Option<&'a Filter<'a>>,
    /// If true, a device that several backends serve is listed for each of them.
    pub duplicates: bool,
    /// True tries each candidate in a child process first. If `None`, the environment variable
    /// `ULTRAMARINE_BACKEND_PROBE` decides.
    pub probe: Option<bool>,
}

impl std::fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions")
            .field("allowed", &self.allowed)
            .field("blocked", &self.blocked)
            .field("filter", &self.filter.is_some())
            .field("duplicates", &self.duplicates)
            .field("probe", &self.probe)
            .finish()
    }
}

/// True if all backends that can be found have been loaded, or if the program loads backends
/// itself.
static DONE: AtomicBool = AtomicBool::new(false);

/// Loads the best backend of each name in the [`search_paths`]. Their devices are appended to the
/// existing ones, in the order of falling scores. [`report`] has the reasons why other backends
/// were left out. After this call, no backends are loaded automatically.
///
/// # Errors
/// [`Error::Value`] for a malformed glob; [`Error::Runtime`] if the call comes from a filter.
pub fn load_all(options: &LoadOptions<'_>) -> Result<Vec<BackendInfo>> {
    let wanted = Wanted::new(options)?;
    let registration = Registration::begin()?;
    DONE.store(true, Ordering::Release);
    Ok(pipeline::run(&registration, pipeline::found(None), &wanted))
}

/// Loads the best variant of one backend in the [`search_paths`], unless a variant is loaded
/// already.
///
/// # Errors
/// [`Error::Runtime`] with the reasons if none can be loaded.
pub fn load_best(name: &str) -> Result<BackendInfo> {
    let registration = Registration::begin()?;
    if let Some(loaded) = registry::loaded(name) {
        return Ok(loaded);
    }
    let found = pipeline::found(Some(name));
    let paths: Vec<_> = found.iter().map(|f| f.path.clone()).collect();
    let loaded = pipeline::run(&registration, found, &Wanted::all());
    if let Some(info) = loaded.into_iter().next() {
        return Ok(info);
    }
    let report = report();
    let whys: Vec<String> = report
        .candidates
        .iter()
        .filter(|c| paths.contains(&c.path))
        .filter_map(|c| Some(format!("{}: {}", c.path.display(), c.reason.as_ref()?)))
        .collect();
    Err(Error::Runtime(if whys.is_empty() {
        let places: Vec<String> =
            search_paths().iter().map(|s| s.path.display().to_string()).collect();
        format!(
            "There is no backend {name} in {}. Install its package, or load it by its path",
            one_of(&places)
        )
        .into()
    } else {
        format!("Cannot load backend {name}: {}", whys.join("; ")).into()
    }))
}

fn one_of(places: &[String]) -> String {
    if places.is_empty() {
        "any directory (no search path is set)".to_owned()
    } else {
        places.join(", ")
    }
}

/// Loads one file. Its directory must not be writable by everybody, but the file may belong to any
/// user. The backend's devices are appended to the existing ones. A file that is loaded already is
/// not loaded again.
///
/// # Errors
/// [`Error::Runtime`] with the reason, which is also in the [`report`].
pub fn load(path: impl AsRef<Path>) -> Result<BackendInfo> {
    let path = path.as_ref();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let registration = Registration::begin()?;
    let found = Found { path: path.clone(), rule: Rule::Explicit };
    if let Some(info) = pipeline::run(&registration, vec![found], &Wanted::all()).into_iter().next()
    {
        return Ok(info);
    }
    let candidate = report().candidates.into_iter().find(|c| c.path == path);
    let why = candidate.and_then(|c| c.reason);
    if let Some(info) = pipeline::loaded_file(&path) {
        return Ok(info);
    }
    Err(Error::Runtime(match why {
        Some(reason) => format!("Cannot load backend {}: {reason}", path.display()).into(),
        None => format!("Cannot load backend {}", path.display()).into(),
    }))
}

/// Loads the backends that can be found. Called when a device is first needed.
#[inline]
pub fn autoload() {
    if !DONE.load(Ordering::Acquire) {
        autoload_slowly();
    }
}

/// Returns true if the next request for a GPU loads backends. This is the case if the program has
/// loaded none itself and `ULTRAMARINE_BACKEND_AUTOLOAD` allows it.
pub fn loads_by_itself() -> bool {
    !DONE.load(Ordering::Acquire) && !off()
}

fn off() -> bool {
    std::env::var_os("ULTRAMARINE_BACKEND_AUTOLOAD").is_some_and(|v| v == "0")
}

#[cold]
fn autoload_slowly() {
    // A filter or a plugin may query devices while this thread holds the registration lock.
    if off() || Registration::is_held_here() {
        return;
    }
    let Ok(registration) = Registration::begin() else { return };
    if !DONE.load(Ordering::Acquire) {
        pipeline::run(&registration, pipeline::found(None), &Wanted::all());
        DONE.store(true, Ordering::Release);
    }
}

/// The remedy for a missing device, for errors.
pub fn hint() -> String {
    if off() {
        return " ULTRAMARINE_BACKEND_AUTOLOAD is 0. Load a backend first.".to_owned();
    }
    let report = report();
    let left = report.candidates.iter().filter(|c| c.outcome != Outcome::Loaded).count();
    if left > 0 {
        return format!(" Left out: {left}. Print backends.report() for the reasons.");
    }
    let places: Vec<String> =
        report.directories.iter().map(|d| d.path.display().to_string()).collect();
    format!(" Searched: {}.{}", one_of(&places), packages::remedy())
}
