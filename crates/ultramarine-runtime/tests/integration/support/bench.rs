//! Plugins for one test, and the report of their load. The core's tests share this file and `workshop.rs`.

use super::backends::{self, BackendInfo, Candidate, LoadOptions};
use super::workshop::{Scratch, Workshop};
use std::path::PathBuf;

/// Makes plugins and knows the case's directory.
pub struct Bench {
    workshop: Workshop,
    scratch: Scratch,
}

impl Bench {
    pub fn new(name: &str) -> Bench {
        let scratch = Scratch::new(&name.replace("::", "-")).expect("a directory");
        Bench { workshop: Workshop::of_tests().expect("a workshop"), scratch }
    }

    /// A directory of that name.
    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    /// A plugin `name` or `name-variant` in a directory of the case's.
    pub fn plugin(&self, dir: &str, name: &str, flags: &[&str]) -> PathBuf {
        self.workshop.good(name, flags, &self.dir(dir)).expect("a plugin")
    }

    /// Searches only these directories of the case's.
    pub fn search(&self, dirs: &[&str]) {
        backends::set_search_paths(Some(dirs.iter().map(|d| self.dir(d)).collect()));
    }
}

/// The report's candidate for a file.
pub fn reported(path: impl Into<PathBuf>) -> Candidate {
    let path = path.into();
    let found = backends::report().candidates.into_iter().find(|c| c.path == path);
    found.unwrap_or_else(|| panic!("{} is not in {}", path.display(), backends::report_json()))
}

/// The reason why a file was left out: stage, kind, text.
pub fn why(path: impl Into<PathBuf>) -> (String, String, String) {
    let reported = reported(path);
    let reason = reported.reason.expect("it was left out");
    (reported.stage.name().to_owned(), reason.code.name().to_owned(), reason.text)
}

/// Loads all; the names of what was loaded.
pub fn load_all(options: LoadOptions<'_>) -> Vec<String> {
    let loaded = backends::load_all(&options).expect("the globs are good");
    let full = |b: &BackendInfo| match b.variant.as_str() {
        "" => b.name.clone(),
        variant => format!("{}-{variant}", b.name),
    };
    loaded.iter().map(full).collect()
}
