//! `cargo xtask lint`: what needs no run to be seen.

use crate::boundaries;
use crate::python::Venv;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// The longest that a source file may be. One subject each: split what grows beyond.
const MOST_LINES: usize = 600;

/// Files that may be longer, with the reason.
const LONGER: &[(&str, &str)] = &[
    ("python/ultramarine/__init__.pyi", "one stub per module is what type checkers read"),
    ("crates/ultramarine-abi/src/schema/table.rs", "generated: it grows with the schema"),
];

/// Crates that are workspaces of their own: the fuzz target, which wants flags of its own, and extensions.
const FUZZ: &str = "crates/ultramarine-dlpack/fuzz";
const EXTENSIONS: &[&str] = &["examples/extensions/axpby", "python/tests/extension/panicking"];

/// Checks all of it, also after a failure.
pub fn run() -> Result<()> {
    let mut failed = Vec::new();
    let mut check = |name: &str, result: Result<()>| {
        if let Err(error) = result {
            eprintln!("error: {error:#}");
            failed.push(name.to_owned());
        }
    };
    sh::say("rustfmt");
    check("rustfmt", sh::run(sh::cargo(&["fmt", "--all", "--check"])));
    // Modules that a macro finds are not seen from the crate's root.
    check("rustfmt of the operations", operations_formatted());
    for folder in [&[FUZZ][..], EXTENSIONS].concat() {
        let manifest = format!("{folder}/Cargo.toml");
        let fmt = ["fmt", "--check", "--manifest-path", &manifest];
        check(&format!("rustfmt of {folder}"), sh::run(sh::cargo(&fmt)));
    }

    sh::say("clippy");
    let lints = ["-D", "warnings", "-D", "clippy::undocumented_unsafe_blocks"];
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--"];
    check("clippy", sh::run(sh::cargo(&[&clippy[..], &lints].concat())));
    for folder in EXTENSIONS {
        let manifest = format!("{folder}/Cargo.toml");
        let clippy = ["clippy", "--quiet", "--manifest-path", &manifest, "--"];
        let mut clippy = sh::cargo(&[&clippy[..], &lints].concat());
        clippy.env("CARGO_TARGET_DIR", sh::root().join("target/extensions"));
        check(&format!("clippy of {folder}"), sh::run(clippy));
    }

    sh::say("rustdoc");
    let mut doc = sh::cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    check("rustdoc", sh::run(doc));

    sh::say("ruff");
    check("ruff", ruff());

    check("boundaries", boundaries::run());

    sh::say("generated files");
    check("generated files", crate::generate::check());

    sh::say("length of files");
    check("length of files", lengths());

    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn operations_formatted() -> Result<()> {
    let folder = Path::new("crates/ultramarine/src/ops");
    let files = sh::tree()?
        .into_iter()
        .filter(|f| f.parent() == Some(folder) && f.extension().is_some_and(|e| e == "rs"));
    let mut rustfmt = std::process::Command::new("rustfmt");
    rustfmt.current_dir(sh::root()).args(["--check", "--edition", "2024"]).args(files);
    sh::run(rustfmt)
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
