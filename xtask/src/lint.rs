//! `cargo xtask lint`: checks that need no run of the programs.

use crate::boundaries;
use crate::minutes;
use crate::profile::Profile;
use crate::python::Venv;
use crate::sh;
use crate::texts;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most lines of a source file. A file should have one subject; split a file that grows beyond
/// this.
const MOST_LINES: usize = 600;

/// Longer files that are allowed, with the reason.
const LONGER: &[(&str, &str)] = &[
    ("python/ultramarine/__init__.pyi", "one stub per module is what type checkers read"),
    ("python/ultramarine/backends.pyi", "one stub per module is what type checkers read"),
    ("crates/ultramarine-abi/src/schema/codes.rs", "generated: it grows with the schema"),
    ("crates/ultramarine-abi/src/schema/table.rs", "generated: it grows with the schema"),
];

/// The directories of sources. A directory may contain only so many files; more have to be grouped
/// in directories by subject.
const SOURCE_FOLDERS: &[&str] = &["bench", "crates", "examples", "python", "testing", "xtask"];
const MOST_FILES: usize = 25;

/// Crates that are separate workspaces: the fuzz target, which needs its own flags, and extensions.
const FUZZ: &str = "crates/ultramarine-dlpack/fuzz";
const EXTENSIONS: &[&str] =
    &["examples/extensions/axpby", "python/tests/extensions/sources/panicking"];

/// `cargo xtask lint [--full]`: runs all checks, even after a failure.
pub fn command(args: &[String]) -> Result<()> {
    let full = match args {
        [] => None,
        [full] if full == "--full" => Some(SEMVER),
        _ => bail!("usage: cargo xtask lint [--full]"),
    };
    let mut failed = Vec::new();
    for (name, check) in CHECKS.iter().chain(&full) {
        sh::say(name);
        if let Err(error) = minutes::step(&format!("lint: {name}"), check) {
            eprintln!("error: {error:#}");
            failed.push(*name);
        }
    }
    minutes::show()?;
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// A check and its name.
type Check = (&'static str, fn() -> Result<()>);

const CHECKS: &[Check] = &[
    ("rustfmt", rustfmt),
    ("clippy", clippy),
    ("clippy without features", clippy_without_features),
    ("clippy of the extensions", clippy_of_extensions),
    ("rustdoc", texts::site::crates),
    ("site", texts::site::lint),
    ("links", texts::links::check),
    ("prose", texts::prose::check),
    ("subjects of commits", texts::commits::check),
    ("ruff", ruff),
    ("other systems", crate::systems::check),
    ("boundaries", boundaries::run),
    ("floors", crate::floors::run),
    ("generated files", crate::generate::check),
    ("length of files", lengths),
    ("files in folders", folders),
];

/// Builds the documentation of two revisions, which takes minutes. It runs only with `--full`.
const SEMVER: Check = ("semver", crate::semver::lint);

const LINTS: [&str; 5] = ["--", "-D", "warnings", "-D", "clippy::undocumented_unsafe_blocks"];

fn rustfmt() -> Result<()> {
    sh::run(sh::cargo(&["fmt", "--all", "--check"]))?;
    for folder in [&[FUZZ][..], EXTENSIONS].concat() {
        let manifest = format!("{folder}/Cargo.toml");
        sh::run(sh::cargo(&["fmt", "--check", "--manifest-path", &manifest]))?;
    }
    Ok(())
}

/// Runs clippy on the workspace, with the profile and the features of the tests, so that macros and
/// build scripts are built only once for both.
fn clippy() -> Result<()> {
    let mut clippy = Profile::Checked.workspace("clippy", &["--all-targets", "--quiet"]);
    clippy.args(LINTS);
    sh::run(clippy)
}

/// Runs clippy on the smallest build that a program can have.
fn clippy_without_features() -> Result<()> {
    let profile = Profile::Checked.argument();
    let clippy = ["clippy", "-p", "ultramarine", "--no-default-features", "--quiet", &profile];
    sh::run(sh::cargo(&[&clippy[..], &LINTS].concat()))
}

fn clippy_of_extensions() -> Result<()> {
    for folder in EXTENSIONS {
        let manifest = format!("{folder}/Cargo.toml");
        let clippy = ["clippy", "--quiet", "--manifest-path", &manifest];
        let mut clippy = sh::cargo(&[&clippy[..], &LINTS].concat());
        clippy.env("CARGO_TARGET_DIR", sh::root().join("target/extensions"));
        sh::run(clippy)?;
    }
    Ok(())
}

fn ruff() -> Result<()> {
    let venv = Venv::open(".venv")?;
    venv.require("lint")?;
    sh::run(venv.python(&["-m", "ruff", "check", "--quiet", "."]))?;
    sh::run(venv.python(&["-m", "ruff", "format", "--quiet", "--diff", "."]))
}

fn lengths() -> Result<()> {
    const SOURCES: &[&str] = &["rs", "py", "pyi", "c", "h", "cpp", "cu", "wgsl"];
    let mut long = Vec::new();
    for file in sh::tree()? {
        let source =
            file.extension().and_then(|e| e.to_str()).is_some_and(|e| SOURCES.contains(&e));
        if !source || LONGER.iter().any(|(name, _)| file == Path::new(name)) {
            continue;
        }
        let text = std::fs::read_to_string(sh::root().join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        let lines = text.lines().count();
        if lines > MOST_LINES {
            long.push(format!("{} has {lines} lines", file.display()));
        }
    }
    if !long.is_empty() {
        bail!("more than {MOST_LINES} lines, so split by subject:\n  {}", long.join("\n  "));
    }
    Ok(())
}

fn folders() -> Result<()> {
    let mut files: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for file in sh::tree()? {
        if SOURCE_FOLDERS.iter().any(|folder| file.starts_with(folder))
            && let Some(folder) = file.parent()
        {
            *files.entry(folder.to_owned()).or_default() += 1;
        }
    }
    let full: Vec<String> = files
        .iter()
        .filter(|(_, count)| **count > MOST_FILES)
        .map(|(folder, count)| format!("{} has {count}", folder.display()))
        .collect();
    if !full.is_empty() {
        bail!("more than {MOST_FILES} files, so make folders by subject:\n  {}", full.join("\n  "));
    }
    Ok(())
}
