//! Checks the boundaries between crates: no plugin links the core, the core contains no backend's
//! name, its runtime knows no backend, and without the feature `loader` no code in it opens
//! libraries.

use crate::plugins::{self, Built};
use crate::profile::Profile;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// The crates below the core: none may depend on it.
const BELOW: &[&str] = &[
    "ultramarine-runtime",
    "ultramarine-dlpack",
    "ultramarine-dlpack-check",
    "ultramarine-abi",
    "ultramarine-linalg",
    "ultramarine-mpi",
    "ultramarine-mpi",
    "ultramarine-cpu",
    "ultramarine-cpu-plugin",
    "ultramarine-cuda",
    "ultramarine-wgpu",
    "ultramarine-conform",
    "ultramarine-extension",
    "ultramarine-nn-derive",
];

/// Names of known backends. The core must not contain them.
const BACKENDS: &[&str] = &["cuda", "hip", "metal", "minimal", "opencl", "rocm", "vulkan", "wgpu"];

/// The sources of the core and of its runtime.
const CORE: &[&str] = &["crates/ultramarine/src", "crates/ultramarine-runtime/src"];

/// The files of the core that may contain these names:
///
/// - those with DLPack's numbers of device types, including the type whose addresses MPI libraries
///   accept;
/// - those with the packages for device types, for messages;
/// - those with kernel languages, because some languages have the name of a backend.
const NAMES: &[&str] = &[
    "crates/ultramarine/src/interchange/kinds.rs",
    "crates/ultramarine/src/distributed/device_memory.rs",
    "crates/ultramarine-runtime/src/packages.rs",
    "crates/ultramarine/src/fast",
];

/// Kernel languages, which are not names of backends.
const LANGUAGES: [&str; 2] = ["\"cuda-c\"", "\"opencl-c\""];

/// Marks of the core and its runtime in a binary: Rust's mangling of a crate's name, and the paths
/// of its sources in panic messages.
const OF_THE_CORE: &[&[u8]] = &[
    b"11ultramarine",
    b"crates/ultramarine/src/",
    b"19ultramarine_runtime",
    b"crates/ultramarine-runtime/src/",
];

/// Runs all of these checks.
pub fn run() -> Result<()> {
    graph()?;
    names()?;
    binaries()?;
    without_loader()
}

/// Checks the dependency graph.
fn graph() -> Result<()> {
    for name in BELOW {
        let args = ["tree", "--quiet", "-p", name, "-e", "normal,build", "--prefix", "none"];
        let tree = sh::read(sh::cargo(&[&args[..], &["--format", "{p}"]].concat()))?;
        if tree.lines().any(|line| line.split(' ').next() == Some("ultramarine")) {
            bail!("{name} depends on the core, see `cargo tree -p {name}`");
        }
    }
    // These crates must depend only on the contract. A hardware maker can then do everything that a
    // plugin here does; and the runtime gets its CPU backend from the core.
    for alone in ["ultramarine-cuda", "ultramarine-runtime", "ultramarine-wgpu"] {
        let args = ["tree", "--quiet", "-p", alone, "-e", "normal,build", "--prefix", "none"];
        let tree = sh::read(sh::cargo(&[&args[..], &["--format", "{p}"]].concat()))?;
        let known = ["ultramarine-abi", "ultramarine-dlpack", alone];
        let mut names = tree.lines().filter_map(|line| line.split(' ').next());
        if let Some(other) =
            names.find(|name| name.starts_with("ultramarine") && !known.contains(name))
        {
            bail!("{alone} depends on {other}, and may know the contract alone");
        }
    }
    // Make sure that the check would find a dependency.
    let tree = sh::read(sh::cargo(&["tree", "--quiet", "-p", "ultramarine", "--prefix", "none"]))?;
    if !tree.lines().any(|line| line.split(' ').next() == Some("ultramarine")) {
        bail!("`cargo tree` no longer shows the core by its name");
    }
    Ok(())
}

/// Searches for backends' names in the sources of the core. Comments may have them as examples.
fn names() -> Result<()> {
    let mut found = Vec::new();
    for file in sh::tree()? {
        let core = CORE.iter().any(|folder| file.starts_with(folder));
        if !core || NAMES.iter().any(|name| file.starts_with(name)) {
            continue;
        }
        let bytes = std::fs::read(sh::root().join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        // Some files are not UTF-8, because they are tables of numbers.
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let code = LANGUAGES.iter().fold(code.to_owned(), |code, l| code.replace(l, ""));
            if let Some(name) = backend_named(&code) {
                found.push(format!("{}:{}: {name}", file.display(), number + 1));
            }
        }
    }
    if !found.is_empty() {
        bail!("the core names backends:\n  {}", found.join("\n  "));
    }
    Ok(())
}

/// Returns the first of [`BACKENDS`] that is a word or a part of an identifier in a line of code.
fn backend_named(code: &str) -> Option<&'static str> {
    let lower = code.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| BACKENDS.iter().copied().find(|name| *name == word))
}

/// Checks the plugins' binaries: they contain nothing of the core, and export only entry points.
fn binaries() -> Result<()> {
    for built in [
        plugins::minimal()?,
        plugins::opencl()?,
        plugins::overlay()?,
        plugins::cuda(Profile::Checked)?,
        plugins::vulkan(Profile::Checked)?,
    ] {
        match built {
            Built::At(path) => binary(&path)?,
            Built::Missing(what) => println!("skipped: {what}"),
        }
    }
    Ok(())
}

fn binary(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if OF_THE_CORE.iter().any(|part| holds(&bytes, part)) {
        bail!("{name} holds a part of the core");
    }
    let listed = sh::read(sh::cmd("nm", &["-D", "--defined-only", &path.to_string_lossy()]))?;
    let foreign: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|symbol| !symbol.starts_with("ultramarine_backend_"))
        .collect();
    if !foreign.is_empty() {
        bail!("{name} exports more than its entry points: {}", foreign.join(", "));
    }
    if listed.lines().count() < 2 {
        bail!("{name} does not export its entry points");
    }
    println!("{name}: nothing of the core, {} entry points", listed.lines().count());
    Ok(())
}

/// Arguments that select all features except the loader.
const WITHOUT_LOADER: [&str; 3] = ["--no-default-features", "--features", "fft,linalg,npz"];

/// Crates whose optimisation takes minutes and is not needed for this check. They are compiled
/// again because crates below them have other features here.
const UNOPTIMISED: [&str; 4] =
    ["ultramarine", "ultramarine-cpu", "ultramarine-linalg", "ultramarine-runtime"];

/// Checks a program with a linked-in backend. Without the feature `loader` it has no code that
/// opens libraries. With the feature it has, which shows that the check works.
fn without_loader() -> Result<()> {
    let profile = Profile::Checked;
    let example = ["--quiet", "--example", "linked"];
    // Build it like the tests, so that the build is shared.
    let with = profile.workspace("build", &example);
    let mut without = sh::cargo(&["build", "-p", "ultramarine", &profile.argument()]);
    without.args(example).args(WITHOUT_LOADER);
    for package in UNOPTIMISED {
        let name = profile.name();
        without.args(["--config", &format!("profile.{name}.package.{package}.opt-level=0")]);
    }
    for (build, wanted) in [(with, true), (without, false)] {
        sh::run(build)?;
        let program = profile.folder().join("examples/linked");
        let printed = sh::read(sh::cmd(&program, &[]))?;
        print!("{printed}");
        let bytes = std::fs::read(&program)?;
        let opens = holds(&bytes, b"\0dlopen\0");
        if opens != wanted {
            let there = if opens { "is" } else { "is not" };
            bail!("dlopen {there} in the program, and the feature `loader` is on: {wanted}");
        }
    }
    Ok(())
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::{backend_named, holds};

    #[test]
    fn names_are_seen_as_words_and_in_identifiers() {
        assert_eq!(backend_named("if name == \"CUDA\" {"), Some("cuda"));
        assert_eq!(backend_named("fn is_opencl_device()"), Some("opencl"));
        assert_eq!(backend_named("let metallic = barracuda;"), None);
    }

    #[test]
    fn parts_are_found_anywhere() {
        assert!(holds(b"abcd", b"cd") && holds(b"abcd", b"ab") && !holds(b"abcd", b"ce"));
    }
}
