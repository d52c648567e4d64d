//! `cargo xtask package`: the wheel, and proof that it can be used.

use crate::plugins::{self, Built};
use crate::profile::Profile;
use crate::python::Venv;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

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
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("dist/{name}: {:.2} MB", bytes as f64 / 1e6);
    if !name.contains("-abi3-") {
        bail!("{name} is bound to one version of Python: an abi3 wheel was wanted");
    }
    if bytes > MOST_BYTES {
        bail!("the wheel is larger than {} MB", MOST_BYTES / 1_000_000);
    }

    sh::say("installing it in a fresh environment");
    let fresh = Venv::fresh("target/package-venv")?;
    fresh.pip_install(&[&wheel.to_string_lossy()])?;
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
    backend(&venv, &fresh, "ultramarine-cuda", "cuda", plugins::cuda(Profile::Release)?)?;
    backend(&venv, &fresh, "ultramarine-wgpu", "vulkan", plugins::vulkan(Profile::Release)?)?;
    conform(&venv, &fresh)?;
    dlpack_check(&venv, &fresh)?;
    let import = best_seconds(&fresh, "import ultramarine")? - best_seconds(&fresh, "pass")?;
    println!("importing takes {:.1} ms beyond the interpreter's start", import * 1e3);
    Ok(())
}

/// The wheel of a backend: built, installed beside, found. Where there is no device it says so.
fn backend(venv: &Venv, fresh: &Venv, package: &str, name: &str, built: Built) -> Result<()> {
    sh::say(&format!("building the wheel of {package}"));
    let Built::At(library) = built else { bail!("{package} was not built") };
    venv.pip_install(&["setuptools>=77"])?;
    let dist = format!("dist/{name}");
    let wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", &dist];
    let source = format!("crates/{package}/package");
    let mut build = venv.python(&[&wheel[..], &[source.as_str()]].concat());
    build.env(format!("{}_LIBRARY", package.replace('-', "_").to_uppercase()), library);
    sh::run(build)?;
    let wheel = only_wheel(sh::root().join(&dist))?;
    let file = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("{dist}/{file}: {:.2} MB", std::fs::metadata(&wheel)?.len() as f64 / 1e6);
    let platform = if cfg!(target_env = "gnu") { "manylinux_2_" } else { "" };
    if !file.contains(&format!("-py3-none-{platform}")) || file.ends_with("-any.whl") {
        bail!("{file} is not for any Python on this platform, or on this system alone");
    }
    fresh.pip_install(&["--no-deps", &wheel.to_string_lossy()])?;
    let found = format!(
        "from ultramarine import backends; backends.load_all(); \
         print([c.rule for c in backends.report() if c.name == '{name}'])"
    );
    let printed = sh::read(fresh.python(&["-c", &found]))?;
    if !printed.contains(&format!("entry point of {package}")) {
        bail!("the installed backend {name} is not found: {}", printed.trim());
    }
    Ok(())
}

/// The wheel of the conformance kit: built, installed beside, run by `python -m ultramarine conform`.
fn conform(venv: &Venv, fresh: &Venv) -> Result<()> {
    sh::say("building the wheel of the conformance kit");
    let wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"];
    let place = ["-w", "dist/conform", "crates/ultramarine-conform/package"];
    sh::run(venv.python(&[&wheel[..], &place].concat()))?;
    let wheel = only_wheel(sh::root().join("dist/conform"))?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("dist/conform/{name}: {:.2} MB", std::fs::metadata(&wheel)?.len() as f64 / 1e6);
    fresh.pip_install(&["--no-deps", &wheel.to_string_lossy()])?;
    sh::run(fresh.python(&["-m", "ultramarine", "conform", "--builtin", "--group", "abi"]))
}

/// The wheel of the DLPack checks: built, installed beside, run on the installed package.
fn dlpack_check(venv: &Venv, fresh: &Venv) -> Result<()> {
    sh::say("building the wheel of the DLPack checks");
    let manifest = "crates/ultramarine-dlpack-check/Cargo.toml";
    let build = ["-m", "maturin", "build", "--release", "--quiet", "--out", "dist/dlpack-check"];
    sh::run(venv.python(&[&build[..], &["--manifest-path", manifest]].concat()))?;
    let wheel = only_wheel(sh::root().join("dist/dlpack-check"))?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("dist/dlpack-check/{name}: {:.2} MB", std::fs::metadata(&wheel)?.len() as f64 / 1e6);
    fresh.pip_install(&["--no-deps", &wheel.to_string_lossy()])?;
    sh::run(fresh.python(&["-m", "ultramarine_dlpack_check", "--only", "valid/*"]))
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
