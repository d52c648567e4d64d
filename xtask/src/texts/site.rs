//! `cargo xtask docs`: builds the site from the pages in docs/, the Python package and the crates.

use crate::profile::Profile;
use crate::python::{ULTRAMARINE, Venv};
use crate::sh;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Builds everything that the site documents, then the site.
pub fn run() -> Result<()> {
    super::links::check()?;
    sh::say("building the Python module");
    sh::run(Profile::Checked.libraries())?;
    sh::say("documenting the crates");
    crates()?;
    build()?;
    println!("open {}", folder().join("index.html").display());
    Ok(())
}

/// Builds the site for lint, from the builds of the tests and of `rustdoc`.
pub fn lint() -> Result<()> {
    if !ULTRAMARINE.built(Profile::Checked).is_file() {
        println!("skipped: there is no built module. Run `cargo xtask docs`.");
        return Ok(());
    }
    build()
}

/// Builds the documentation of all crates in `target/doc`. Warnings are errors.
pub fn crates() -> Result<()> {
    let profile = Profile::Checked.argument();
    let mut doc = sh::cargo(&["doc", "--workspace", "--no-deps", "--quiet", &profile]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    sh::run(doc)
}

fn folder() -> PathBuf {
    sh::root().join("target/docs/html")
}

/// Builds the pages by Sphinx, copies the crates' documentation beside them, and checks all links.
fn build() -> Result<()> {
    let venv = Venv::open(".venv")?;
    venv.require("docs")?;
    let package = sh::root().join("target/docs/python");
    ULTRAMARINE.copy_to(&package.join(ULTRAMARINE.import_name()), Profile::Checked)?;
    let site = folder();
    // Remove the old site, because deleted pages would keep links to them valid.
    if site.exists() {
        std::fs::remove_dir_all(&site).context("cannot remove the former site")?;
    }
    let target = site.to_string_lossy();
    let sphinx = ["-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto", "-b", "html"];
    let folders = ["-d", "target/docs/doctrees", "docs", &target];
    let mut sphinx = venv.python(&[&sphinx[..], &folders].concat());
    sphinx.env("PYTHONPATH", &package).env("PYTHONDONTWRITEBYTECODE", "1");
    sh::run(sphinx)?;
    copy(&sh::root().join("target/doc"), &site.join("rust-api"))?;
    sh::run(venv.python(&["docs/site/check_links.py", &target]))
}

/// Copies a folder of files.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let entries = std::fs::read_dir(from)
        .with_context(|| format!("no {}. Run `cargo xtask docs`.", from.display()))?;
    for entry in entries {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        match path.is_dir() {
            true => copy(&path, &to)?,
            false => sh::copy(&path, &to)?,
        }
    }
    Ok(())
}
