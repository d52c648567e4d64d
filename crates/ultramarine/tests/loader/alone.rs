//! Each case in a process of its own: what is loaded is loaded for the whole process. The test runs this very
//! program again, with the case's name and environment.

use crate::support::workshop::{Scratch, Workshop};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use ultramarine::backends::{self, Candidate, LoadOptions};

/// Set in the child.
const CASE: &str = "LOADER_TEST_CASE";

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

/// What the report says of a file.
pub fn told(path: impl Into<PathBuf>) -> Candidate {
    let path = path.into();
    let found = backends::report().candidates.into_iter().find(|c| c.path == path);
    found.unwrap_or_else(|| panic!("{} is not in {}", path.display(), backends::report_json()))
}

/// Why the report says that a file was left out: stage, kind, words.
pub fn why(path: impl Into<PathBuf>) -> (String, String, String) {
    let told = told(path);
    let reason = told.reason.expect("it was left out");
    (told.stage.name().to_owned(), reason.code.name().to_owned(), reason.text)
}

/// Loads all; the names of what was loaded.
pub fn load_all(options: LoadOptions<'_>) -> Vec<String> {
    let loaded = backends::load_all(&options).expect("the globs are good");
    let full = |b: &backends::BackendInfo| match b.variant.as_str() {
        "" => b.name.clone(),
        variant => format!("{}-{variant}", b.name),
    };
    loaded.iter().map(full).collect()
}

/// Runs `body` in a process of its own, with these variables.
pub fn alone(path: &str, environment: &[(&str, &str)], body: fn()) {
    // A test's name has no crate in front.
    let name = path.split_once("::").map_or(path, |(_, rest)| rest);
    if std::env::var_os(CASE).is_some_and(|case| case == name) {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([name, "--exact", "--nocapture"]).env(CASE, name);
    let ours = std::env::vars_os().filter(|(k, _)| k.to_string_lossy().starts_with("ULTRAMARINE_"));
    for (key, _) in ours {
        command.env_remove(key);
    }
    command.envs(environment.iter().copied());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    let mut err = child.stderr.take().expect("piped");
    let words = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = err.read_to_string(&mut text);
        text
    });
    let mut out = String::new();
    let _ = child.stdout.take().expect("piped").read_to_string(&mut out);
    let status = child.wait().expect("its status");
    let err = words.join().unwrap_or_default();
    let ran = out.contains("1 passed");
    assert!(status.success() && ran, "{name}: {status}\n{out}\n{err}");
}

/// Cases: `name [VARIABLE = value, ...] { body }`.
#[macro_export]
macro_rules! cases {
    ($($(#[$doc:meta])* fn $name:ident [$($key:ident = $value:expr),*] $body:block)*) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                fn body() $body
                $crate::alone::alone(
                    concat!(module_path!(), "::", stringify!($name)),
                    &[$((stringify!($key), $value)),*],
                    body,
                );
            }
        )*
    };
}
