//! The search directories for backends, and the scheme of their file names.

use super::state;
use std::fmt;
use std::path::{Path, PathBuf};
use ultramarine_abi::negotiate;

/// The variable with the directories to search. If it is set, no other directories are searched.
const PATH_VARIABLE: &str = "ULTRAMARINE_BACKEND_PATH";
/// The directory that was set when the library was built.
const BUILT_IN: Option<&str> = option_env!("ULTRAMARINE_BACKEND_DIR");

/// The reason why a directory is searched, or how a file was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The environment variable `ULTRAMARINE_BACKEND_PATH` has the directory.
    Environment,
    /// `ULTRAMARINE_BACKEND_DIR` had the directory when the library was built.
    BuiltIn,
    /// The directory is `backends/` beside the library, or beside the program that the library is
    /// linked into.
    Beside,
    /// [`add_search_directory`] added the directory, with this description.
    Added(String),
    /// [`set_search_paths`] set the directory.
    Set,
    /// The caller named the file.
    Explicit,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Environment => PATH_VARIABLE,
            Rule::BuiltIn => "ULTRAMARINE_BACKEND_DIR of the build",
            Rule::Beside => "beside the library",
            Rule::Added(description) => description,
            Rule::Set => "set_search_paths",
            Rule::Explicit => "load",
        })
    }
}

/// A search directory, from [`search_paths`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPath {
    /// The directory, absolute.
    pub path: PathBuf,
    /// The reason why it is searched.
    pub rule: Rule,
}

/// Returns the directories that are currently searched for backends, in order.
///
/// Environment variables are ignored if the process has more privileges than its user. Relative
/// paths are ignored too, so the working directory is never searched.
pub fn search_paths() -> Vec<SearchPath> {
    let state = state::lock();
    if let Some(set) = &state.set {
        return with_rule(set.iter().cloned(), &Rule::Set);
    }
    if let Some(value) = std::env::var_os(PATH_VARIABLE).filter(|_| !elevated()) {
        return with_rule(std::env::split_paths(&value), &Rule::Environment);
    }
    rules(BUILT_IN, beside(), &state.added)
}

/// The default directories.
fn rules(built_in: Option<&str>, beside: Option<PathBuf>, added: &[SearchPath]) -> Vec<SearchPath> {
    let mut all = with_rule(built_in.map(PathBuf::from).into_iter(), &Rule::BuiltIn);
    all.extend(with_rule(beside.into_iter(), &Rule::Beside));
    all.extend(added.iter().cloned());
    all
}

fn with_rule(paths: impl Iterator<Item = PathBuf>, rule: &Rule) -> Vec<SearchPath> {
    paths.filter(|p| p.is_absolute()).map(|path| SearchPath { path, rule: rule.clone() }).collect()
}

/// Sets the directories to search from now on, in place of all others. Relative paths are resolved
/// against the current working directory. `None` restores the default rules.
pub fn set_search_paths(paths: Option<Vec<PathBuf>>) {
    let absolute = |p: PathBuf| std::path::absolute(&p).unwrap_or(p);
    state::lock().set = paths.map(|all| all.into_iter().map(absolute).collect());
}

/// Adds a directory after those of the default rules. The report shows `why`. The directory has no
/// effect while the environment or [`set_search_paths`] sets the directories. A directory that is
/// relative, or was added already, is ignored.
pub fn add_search_directory(path: impl Into<PathBuf>, why: &str) {
    let path = path.into();
    let mut state = state::lock();
    if path.is_absolute() && !state.added.iter().any(|s| s.path == path) {
        state.added.push(SearchPath { path, rule: Rule::Added(why.to_owned()) });
    }
}

/// Returns true if the process has privileges that the user who set its environment may lack.
pub(super) fn elevated() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: no preconditions.
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
    // SAFETY: no preconditions.
    return unsafe { libc::issetugid() } != 0;
    #[cfg(not(unix))]
    return false;
}

/// Returns `backends/` beside the file that contains this code.
fn beside() -> Option<PathBuf> {
    own_file()?.parent().map(|dir| dir.join("backends"))
}

/// Returns the path of the library, or of the program that it is linked into.
pub(super) fn own_file() -> Option<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: all-zero is a valid Dl_info.
        let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: an address of this code, and a pointer that is valid for writing.
        let known = unsafe { libc::dladdr(own_file as *const libc::c_void, &mut found) };
        if known != 0 && !found.dli_fname.is_null() {
            // SAFETY: the string belongs to the system's loader, is NUL-terminated, and lives as
            // long as this code.
            let name = unsafe { std::ffi::CStr::from_ptr(found.dli_fname) };
            let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
            // For the program itself, the loader only knows the path with which it was called.
            if path.is_absolute() {
                return Some(path.to_owned());
            }
        }
    }
    std::env::current_exe().ok()
}

/// The name and variant in a file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    pub name: String,
    pub variant: String,
}

impl FileName {
    /// Parses the name of a library. Returns `None` for a file without the right prefix and
    /// extension, and `Err` if the rest of the name is invalid.
    pub fn of(path: &Path) -> Option<Result<FileName, ()>> {
        let bytes = path.file_name()?.as_encoded_bytes();
        let prefix = format!("{}ultramarine-", std::env::consts::DLL_PREFIX);
        let rest = bytes
            .strip_prefix(prefix.as_bytes())?
            .strip_suffix(std::env::consts::DLL_SUFFIX.as_bytes())?;
        let Ok(rest) = std::str::from_utf8(rest) else { return Some(Err(())) };
        let (name, variant) = match rest.split_once('-') {
            // After a dash there has to be a variant.
            Some((_, "")) => return Some(Err(())),
            Some((name, variant)) => (name, variant),
            None => (rest, ""),
        };
        let valid = negotiate::valid_name(name) && negotiate::valid_variant(variant);
        Some(
            valid
                .then(|| FileName { name: name.to_owned(), variant: variant.to_owned() })
                .ok_or(()),
        )
    }

    /// Returns `name` or `name-variant`.
    pub fn full(&self) -> String {
        full_name(&self.name, &self.variant)
    }
}

/// Returns `name` or `name-variant`.
pub(super) fn full_name(name: &str, variant: &str) -> String {
    if variant.is_empty() { name.to_owned() } else { format!("{name}-{variant}") }
}

/// Returns the files of a directory that are named like backends, sorted by name.
pub(super) fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| FileName::of(path).is_some())
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builder_comes_before_the_library_and_its_friends() {
        let added = SearchPath { path: "/c".into(), rule: Rule::Added("a friend".into()) };
        let all = rules(Some("/a"), Some("/b".into()), std::slice::from_ref(&added));
        let paths: Vec<_> = all.iter().map(|s| s.path.to_string_lossy()).collect();
        assert_eq!(paths, ["/a", "/b", "/c"]);
        assert_eq!((&all[0].rule, &all[2]), (&Rule::BuiltIn, &added));
        assert_eq!(rules(Some("not/absolute"), None, &[]), []);
    }
}
