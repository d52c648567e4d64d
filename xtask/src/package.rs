//! `cargo xtask package`: builds the wheel, and checks that it can be used.

use crate::plugins::{self, Built};
use crate::profile::Profile;
use crate::python::Venv;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest that the wheel may be, in bytes.
const MOST_BYTES: u64 = 25 * 1000 * 1000;

/// Builds the abi3 wheel into `dist/`, installs it in a fresh environment and imports it there.
pub fn run() -> Result<()> {
    let venv = Venv::open(".venv")?;
    venv.require("demo")?;
    let dist = sh::root().join("dist");
    if dist.exists() {
        std::fs::remove_dir_all(&dist).context("cannot remove the old dist/")?;
    }
    sh::say("building the wheel");
    sh::run(venv.python(&["-m", "maturin", "build", "--release", "--quiet", "--out", "dist"]))?;

    let wheel = only_wheel(dist)?;
    let bytes = std::fs::metadata(&wheel)?.len();
    let name = file_name(&wheel);
    println!("dist/{name}: {:.2} MB", bytes as f64 / 1e6);
    if !name.contains("-abi3-") {
        bail!("{name} is bound to one version of Python: an abi3 wheel was wanted");
    }
    if bytes > MOST_BYTES {
        bail!("the wheel is larger than {} MB", MOST_BYTES / 1_000_000);
    }

    sh::say("installing it in a fresh environment, as the README says, from an index of its own");
    let index = Index::new()?;
    index.publish("ultramarine", &wheel)?;
    let fresh = Venv::fresh("target/package-venv")?;
    fresh.pip_install_from(&index.folder, &packages_of_the_readme()?)?;
    const TRY: &str = "import ultramarine as mx; x = mx.array([1.0, 2.0]); print((x + x).tolist())";
    let printed = sh::read(fresh.python(&["-c", TRY]))?;
    if printed.trim() != "[2.0, 4.0]" {
        bail!("the installed package computes {}", printed.trim());
    }
    const HEADERS: &str = "import ultramarine, pathlib; \
        folder = pathlib.Path(ultramarine.get_include(), 'ultramarine'); \
        config = pathlib.Path(ultramarine.backends.cmake_dir(), 'UltramarineConfig.cmake'); \
        print(config.is_file() and \
        all((folder / f'{name}.h').is_file() for name in ('backend', 'extension_python')))";
    if sh::read(fresh.python(&["-c", HEADERS]))?.trim() != "True" {
        bail!("the installed package has no headers or CMake package for backends and extensions");
    }
    sh::run(fresh.python(&["-m", "ultramarine", "backends"]))?;
    let made = Made { venv: &venv, fresh: &fresh, index: &index };
    made.backend("ultramarine-cuda", "cuda", plugins::cuda(Profile::Release)?)?;
    made.backend("ultramarine-wgpu", "vulkan", plugins::vulkan(Profile::Release)?)?;
    made.conform()?;
    made.dlpack_check()?;
    let import = best_seconds(&fresh, "import ultramarine")? - best_seconds(&fresh, "pass")?;
    println!("importing takes {:.1} ms beyond the interpreter's start", import * 1e3);
    Ok(())
}

/// Returns the packages in the README's line `pip install ...`.
fn packages_of_the_readme() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(sh::root().join("README.md"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("pip install "));
    let line = line.context("the README has no line `pip install ...`")?;
    let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
    Ok(words.map(str::to_owned).collect())
}

/// A package index in files, in pip's format: a directory for each package, with a page of links.
struct Index {
    folder: PathBuf,
}

impl Index {
    fn new() -> Result<Index> {
        let folder = sh::root().join("dist/simple");
        std::fs::create_dir_all(&folder)?;
        Ok(Index { folder })
    }

    /// Adds the only wheel of a package.
    fn publish(&self, package: &str, wheel: &Path) -> Result<()> {
        let folder = self.folder.join(package);
        std::fs::create_dir_all(&folder)?;
        let name = wheel.file_name().unwrap_or_default().to_string_lossy();
        let page =
            format!("<!DOCTYPE html><html><body><a href=\"{name}\">{name}</a></body></html>\n");
        std::fs::write(folder.join("index.html"), page)?;
        sh::copy(wheel, &folder.join(&*name))
    }
}

/// The environment that builds wheels, a fresh one that installs them, and the index that connects
/// both.
struct Made<'a> {
    venv: &'a Venv,
    fresh: &'a Venv,
    index: &'a Index,
}

impl Made<'_> {
    /// Publishes a wheel, and installs it by its package's name, with its dependencies.
    fn install(&self, package: &str, wheel: &Path) -> Result<()> {
        self.index.publish(package, wheel)?;
        self.fresh.pip_install_from(&self.index.folder, &[package.to_owned()])
    }

    /// Checks the wheel of a backend: builds it, installs it, and checks that the backend is found.
    /// If there is no device, prints that.
    fn backend(&self, package: &str, name: &str, built: Built) -> Result<()> {
        sh::say(&format!("building the wheel of {package}"));
        let Built::At(library) = built else { bail!("{package} was not built") };
        self.venv.pip_install(&["setuptools>=77"])?;
        let dist = format!("dist/{name}");
        let mut build = self.pip_wheel(&dist, &format!("crates/{package}/package"));
        build.env(format!("{}_LIBRARY", package.replace('-', "_").to_uppercase()), library);
        sh::run(build)?;
        let wheel = only_wheel(sh::root().join(&dist))?;
        let file = file_name(&wheel);
        println!("{dist}/{file}: {:.2} MB", megabytes(&wheel)?);
        let platform = if cfg!(target_env = "gnu") { "manylinux_2_" } else { "" };
        if !file.contains(&format!("-py3-none-{platform}")) || file.ends_with("-any.whl") {
            bail!("{file} is not for any Python on this platform, or on this system alone");
        }
        self.install(package, &wheel)?;
        let found = format!(
            "from ultramarine import backends; backends.load_all(); \
             print([c.rule for c in backends.report() if c.name == '{name}'])"
        );
        let printed = sh::read(self.fresh.python(&["-c", &found]))?;
        if !printed.contains(&format!("entry point of {package}")) {
            bail!("the installed backend {name} is not found: {}", printed.trim());
        }
        Ok(())
    }

    /// `pip wheel` of a package's folder.
    fn pip_wheel(&self, dist: &str, source: &str) -> Command {
        let wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"];
        self.venv.python(&[&wheel[..], &["-w", dist, source]].concat())
    }

    /// Checks the wheel of the conformance kit: builds it, installs it, and runs it by `python -m
    /// ultramarine conform`.
    fn conform(&self) -> Result<()> {
        sh::say("building the wheel of the conformance kit");
        sh::run(self.pip_wheel("dist/conform", "crates/ultramarine-conform/package"))?;
        let wheel = only_wheel(sh::root().join("dist/conform"))?;
        println!("dist/conform/{}: {:.2} MB", file_name(&wheel), megabytes(&wheel)?);
        self.install("ultramarine-conform", &wheel)?;
        let conform = ["-m", "ultramarine", "conform", "--builtin", "--group", "abi"];
        sh::run(self.fresh.python(&conform))
    }

    /// Checks the wheel of the DLPack checks: builds it, installs it, and runs it on the installed
    /// package.
    fn dlpack_check(&self) -> Result<()> {
        sh::say("building the wheel of the DLPack checks");
        let manifest = "crates/ultramarine-dlpack-check/Cargo.toml";
        let build =
            ["-m", "maturin", "build", "--release", "--quiet", "--out", "dist/dlpack-check"];
        sh::run(self.venv.python(&[&build[..], &["--manifest-path", manifest]].concat()))?;
        let wheel = only_wheel(sh::root().join("dist/dlpack-check"))?;
        println!("dist/dlpack-check/{}: {:.2} MB", file_name(&wheel), megabytes(&wheel)?);
        self.install("ultramarine-dlpack-check", &wheel)?;
        sh::run(self.fresh.python(&["-m", "ultramarine_dlpack_check", "--only", "valid/*"]))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn megabytes(path: &Path) -> Result<f64> {
    Ok(std::fs::metadata(path)?.len() as f64 / 1e6)
}

fn only_wheel(dist: PathBuf) -> Result<PathBuf> {
    let mut wheels = Vec::new();
    for entry in std::fs::read_dir(&dist)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "whl") {
            wheels.push(path);
        }
    }
    match wheels.pop() {
        Some(wheel) if wheels.is_empty() => Ok(wheel),
        _ => bail!("dist/ does not hold exactly one wheel"),
    }
}

/// The shortest of several runs of a program in a new interpreter.
fn best_seconds(venv: &Venv, program: &str) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let started = std::time::Instant::now();
        sh::run(venv.python(&["-c", program]))?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(best)
}
