//! The loader, with real plugins made by the C compiler. What evaluates arrays on loaded backends is tested in the core.

mod choice;
mod explicit;
mod file_permissions;
mod probe;
mod report;
mod search;

use crate::support::{backends, bench};

/// Not a test: what `file_permissions::elevated` runs under another user's rights.
#[test]
#[ignore = "run by another test"]
fn search_paths_of_this_process() {
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() == libc::getuid() }
        && std::env::current_exe().is_ok_and(|p| p.ends_with("elevated"))
    {
        eprintln!("not elevated");
    }
    for place in backends::search_paths() {
        eprintln!("searched: {}", place.path.display());
    }
}

/// Not a test: what `report::logged_by_default` runs.
#[test]
#[ignore = "run by another test"]
fn load_found_backends() {
    backends::load_all(&backends::LoadOptions::default()).expect("no globs");
}
