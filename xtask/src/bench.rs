//! `cargo xtask bench`: measurements of this library and of other libraries, in one run of
//! `bench/run.py`.

use crate::python::Venv;
use crate::sh;
use anyhow::Result;

/// The groups of `bench/run.py` that are programs, which need no Python package.
const NATIVE: [&str; 5] = ["limits", "boundary", "plugins", "gemm", "elementwise"];

/// Installs those other libraries that can be installed, and runs the groups and workloads that
/// `names` select (all, if there are none). Other arguments, such as `--keep`, are passed to
/// `bench/run.py`.
pub fn run(arguments: &[String]) -> Result<()> {
    let names: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|name| !name.starts_with('-')).collect();
    let only = |groups: &[&str]| !names.is_empty() && names.iter().all(|n| groups.contains(n));
    let has = |group| names.is_empty() || names.contains(&group);
    let jobs = names.contains(&"jobs");
    // Use a separate environment, so that measurements do not depend on the tests' packages.
    let venv = Venv::open(".venv-bench")?;
    venv.require("bench")?;
    if !only(&NATIVE) {
        if !only(&[&NATIVE[..], &["jobs"]].concat()) {
            peers(&venv, only(&[&NATIVE[..], &["dlpack"]].concat()), has("dlpack"));
        }
        venv.install_wheel()?;
    }
    if jobs {
        // Programs in both languages: Python packages, and Rust builds.
        venv.require("demo")?;
        let examples = ["--example", "digits", "--example", "text"];
        let build = ["build", "--quiet", "--release", "-p", "ultramarine-nn"];
        sh::run(sh::cargo(&[&build[..], &examples].concat()))?;
    }
    if has("axpby") {
        // Build it as a user does, in a separate release build.
        let folder = "examples/extensions/axpby";
        if let Err(error) = venv.pip_install(&["--no-build-isolation", "--no-deps", folder]) {
            eprintln!("left out: {folder}: {error:#}");
        }
    }
    if !only(&["dlpack", "jobs"]) {
        sh::run(sh::cargo(&["build", "--quiet", "--release", "-p", "ultramarine-bench"]))?;
    }
    let program = ["-m", "bench.run", "--native", "target/release", "--out", "target/bench"];
    let arguments = arguments.iter().map(String::as_str);
    sh::run(venv.python(&program.into_iter().chain(arguments).collect::<Vec<_>>()))
}

/// Installs the other libraries, and names those that cannot be installed.
fn peers(venv: &Venv, without_jax: bool, exchange: bool) {
    let peers = [
        "bench-mlx",
        "bench-jax",
        "bench-torch-cpu",
        "bench-torch",
        "bench-llama",
        "bench-tvm-ffi",
    ];
    for peer in peers {
        let unused = match peer {
            "bench-jax" => without_jax,
            "bench-tvm-ffi" => !exchange,
            _ => false,
        };
        // Install the ordinary torch only if the smaller CPU-only build is not available.
        let has_torch = || sh::read(venv.python(&["-c", "import torch"])).is_ok();
        if unused || (peer == "bench-torch" && has_torch()) {
            continue;
        }
        if let Err(error) = venv.require(peer) {
            eprintln!("left out: {peer}: {error:#}");
        }
    }
}
