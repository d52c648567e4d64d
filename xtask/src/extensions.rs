//! Operations that are built outside of this repository's crates. The examples are installed as
//! their users would install them. Then there is a second build of the package, with which an
//! extension that was built for the first build has to work.

use crate::profile::Profile;
use crate::python::{ULTRAMARINE, Venv};
use crate::sh;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The directory of the examples.
const EXAMPLES: &str = "examples/extensions";

/// The directories that an example needs in addition to its own.
const BELOW: [&str; 3] =
    ["crates/ultramarine-abi", "crates/ultramarine-extension", "python/ultramarine/extension.py"];

/// The examples: folders with a `pyproject.toml`, relative to the root.
pub fn examples() -> Result<Vec<PathBuf>> {
    let projects = sh::tree()?.into_iter().filter(|f| {
        f.starts_with(EXAMPLES) && f.file_name().is_some_and(|name| name == "pyproject.toml")
    });
    Ok(projects.filter_map(|f| f.parent().map(Path::to_path_buf)).collect())
}

/// Builds an example and installs it, unless its inputs are unchanged. All examples share the
/// compiled Rust code, but the workspace does not share it with them.
pub fn install(venv: &Venv, example: &Path) -> Result<()> {
    let name = example.file_name().unwrap_or_default().to_string_lossy();
    let goes_in =
        |f: &Path| f.starts_with(example) || BELOW.iter().any(|below| f.starts_with(below));
    venv.once_for(&format!("extension-{name}"), goes_in, || {
        sh::say(&format!("building and installing {}", example.display()));
        let mut pip = venv.python(&["-m", "pip", "install", "--quiet"]);
        pip.args(["--disable-pip-version-check", "--no-build-isolation", "--no-deps"]);
        pip.arg("--force-reinstall").arg(sh::root().join(example));
        pip.env("CARGO_TARGET_DIR", sh::root().join("target/extensions"));
        sh::run(pip)
    })
}

/// Makes a directory with only this backend, for `ULTRAMARINE_BACKEND_PATH`.
pub fn alone(backend: &Path) -> Result<PathBuf> {
    let directory = sh::root().join("target/backend-of-extensions");
    let name = backend.file_name().context("a backend is a file")?;
    sh::copy(backend, &directory.join(name))?;
    Ok(directory)
}

/// Makes a directory with the package, whose module was compiled differently from the installed
/// one.
pub fn other_build() -> Result<PathBuf> {
    sh::say("building ultramarine once more, with other settings of the compiler");
    let profile = Profile::Checked;
    let mut build = profile.libraries();
    // The other crates are unchanged, and are not compiled again.
    for package in ["ultramarine", "ultramarine-python"] {
        let name = profile.name();
        build.args(["--config", &format!("profile.{name}.package.{package}.opt-level=0")]);
    }
    sh::run(build)?;
    let folder = sh::root().join("target/other-build");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove target/other-build")?;
    }
    ULTRAMARINE.copy_to(&folder.join("ultramarine"), profile)?;
    Ok(folder)
}
