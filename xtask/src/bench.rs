//! `cargo xtask bench`: our figures beside those of other libraries, in one run.

use crate::python::Venv;
use crate::sh;
use anyhow::Result;
use std::path::Path;

/// Installs what it can of the other libraries and runs the workloads that `names` pick (all, if none).
pub fn run(names: &[String]) -> Result<()> {
    // An environment of its own: what is measured does not depend on what the tests need.
    let venv = Venv::open(".venv-bench")?;
    venv.require("bench")?;
    // The exchange of arrays is measured by itself, on one core, in one process.
    let exchange_only = matches!(names, [name] if name == "dlpack");
    let axpby_only = matches!(names, [name] if name == "axpby");
    let axpby = names.is_empty() || names.iter().any(|name| name == "axpby");
    let exchange = names.is_empty() || names.iter().any(|name| name == "dlpack");
    let peers = ["bench-mlx", "bench-jax", "bench-torch-cpu", "bench-torch", "bench-tvm-ffi"];
    for peer in peers {
        let unused = match peer {
            "bench-jax" => exchange_only,
            "bench-tvm-ffi" => !exchange,
            _ => false,
        };
        if unused {
            continue;
        }
        // The ordinary torch only where its smaller CPU-only build cannot be had.
        let has_torch = || sh::read(venv.python(&["-c", "import torch"])).is_ok();
        if peer == "bench-torch" && has_torch() {
            continue;
        }
        if let Err(error) = venv.require(peer) {
            eprintln!("left out: {peer}: {error:#}");
        }
    }
    venv.install_ours()?;
    if exchange {
        sh::say("arrays from one library to another");
        sh::run(venv.python(&["bench/dlpack.py"]))?;
    }
    if exchange_only {
        return Ok(());
    }

    sh::say("the machine's limits");
    let limits = "target/limits.json";
    let args = ["run", "--quiet", "--release", "-p", "ultramarine-cpu", "--example", "limits"];
    let told = sh::read(sh::cargo(&args))?;
    print!("{told}");
    std::fs::write(sh::root().join(Path::new(limits)), told)?;

    if axpby {
        sh::say("axpby: one expression, and a kernel of one's own");
        let folder = "examples/extensions/axpby";
        // In a release build of its own, as a user installs it.
        let installed = match sh::root().join(folder).is_dir() {
            true => venv.pip_install(&["--no-build-isolation", "--no-deps", folder]),
            false => Ok(()),
        };
        if let Err(error) = installed {
            eprintln!("left out: {folder}: {error:#}");
        }
        let limits = sh::root().join("target/release/examples/limits");
        let limits = limits.to_string_lossy().into_owned();
        sh::run(venv.python(&["bench/axpby.py", "--limits", &limits]))?;
    }
    if axpby_only {
        return Ok(());
    }

    sh::say("the boundary to backends");
    for example in ["boundary", "plugins"] {
        let args = ["run", "--quiet", "--release", "-p", "ultramarine", "--example", example];
        sh::run(sh::cargo(&args))?;
    }

    sh::say("workloads");
    let mut args = vec!["bench/run.py", "--limits", limits];
    args.extend(
        names.iter().map(String::as_str).filter(|name| !matches!(*name, "dlpack" | "axpby")),
    );
    sh::run(venv.python(&args))
}
