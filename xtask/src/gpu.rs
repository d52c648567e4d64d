//! `cargo xtask gpu`: what a machine with a GPU and no Rust needs to check the CUDA backend, in `target/gpu`.

use crate::plugins::{self, Built};
use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// Builds and lays out; then `python crates/ultramarine-cuda/machine/check.py` does the rest there.
pub fn run() -> Result<()> {
    let to = sh::root().join("target/gpu");
    if to.exists() {
        std::fs::remove_dir_all(&to).context("cannot remove the old target/gpu")?;
    }
    // As maturin builds it: without the feature it would ask for this machine's library of Python.
    let python = ["-p", "ultramarine-python", "--features", "pyo3/extension-module"];
    for packages in [&python[..], &["-p", "ultramarine-conform"]] {
        sh::run(sh::cargo(&[&["build", "--release", "--quiet"][..], packages].concat()))?;
    }
    let release = sh::root().join("target/release");
    let Built::At(plugin) = plugins::cuda()? else { bail!("the CUDA backend was not built") };
    let python = to.join("site/ultramarine");
    let axpby = sh::root().join("examples/extensions/axpby");
    let mut build = sh::cargo(&["build", "--release", "--quiet"]);
    build.current_dir(&axpby);
    sh::run(build)?;
    let package = to.join("site/ultramarine_axpby");
    tree(&axpby.join("python/ultramarine_axpby"), &package)?;
    tree(&sh::root().join("python/ultramarine"), &python)?;
    for (from, file) in [
        (release.join("lib_core.so"), python.join("_core.abi3.so")),
        (plugin, to.join("backends/libultramarine-cuda.so")),
        (axpby.join("target/release/lib_native.so"), package.join("_native.abi3.so")),
        (release.join("ultramarine-conform"), to.join("bin/ultramarine-conform")),
    ] {
        copy(&from, &file)?;
        // Symbols for debuggers are most of it.
        sh::run(sh::cmd("strip", &["--strip-unneeded", &file.to_string_lossy()]))?;
    }
    // Wheels that the machine lacks, for comparison: what is laid there by hand stays.
    std::fs::create_dir_all(to.join("wheels"))?;
    println!("target/gpu: bring it and this tree to a machine with a GPU, and run there");
    println!("    python3 crates/ultramarine-cuda/machine/check.py");
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(directory) = to.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// The files of a package, without what Python and builds leave there.
fn tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in
        std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?
    {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "__pycache__" || name.ends_with(".so") {
            continue;
        }
        match path.is_dir() {
            true => tree(&path, &to.join(name))?,
            false => copy(&path, &to.join(name))?,
        }
    }
    Ok(())
}
