//! The backends that this repository holds as plugins, built into `target/backends`: the
//! examples in C with the C compiler and the contract's headers alone, the CPU crate by cargo.

use crate::sh;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Where the plugins are.
pub fn directory() -> PathBuf {
    sh::root().join("target/backends")
}

/// A plugin, or why there is none on this machine.
pub enum Built {
    /// The library.
    At(PathBuf),
    /// What is missing.
    Missing(String),
}

/// The minimal backend in C.
pub fn minimal() -> Result<Built> {
    c("minimal", &[])
}

/// The OpenCL backend in C; it needs OpenCL's headers and its loader.
pub fn opencl() -> Result<Built> {
    if !compiles("#include <CL/cl.h>\nint main(void) { return clFlush(0); }", "-lOpenCL") {
        let missing = "OpenCL's headers and loader are not installed (Debian: ocl-icd-opencl-dev, \
                       pocl-opencl-icd)";
        return Ok(Built::Missing(missing.to_owned()));
    }
    c("opencl", &["-lOpenCL", "-lpthread"])
}

/// `examples/backends/{name}/*.c` as `libultramarine-{name}.so`.
fn c(name: &str, libraries: &[&str]) -> Result<Built> {
    let source = sh::root().join("examples/backends").join(name);
    let mut sources = Vec::new();
    for file in
        std::fs::read_dir(&source).with_context(|| format!("cannot list {}", source.display()))?
    {
        let file = file?.path();
        if file.extension().is_some_and(|e| e == "c") {
            sources.push(file.to_string_lossy().into_owned());
        }
    }
    sources.sort();
    std::fs::create_dir_all(directory())?;
    let to = directory().join(format!("libultramarine-{name}.so"));
    let flags = ["-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"];
    let mut cc = sh::cmd(compiler(), &flags);
    cc.args(["-I", "crates/ultramarine-abi/include", "-o"]).arg(&to);
    cc.args(&sources).args(libraries).arg("-lm");
    sh::run(cc)?;
    Ok(Built::At(to))
}

/// The CPU crate as a plugin that lies over cpu:0: the variant that this machine can run.
pub fn overlay() -> Result<Built> {
    #[cfg(target_arch = "x86_64")]
    for (variant, runs) in [
        ("x86_64_v4", std::arch::is_x86_feature_detected!("avx512f")),
        ("x86_64_v3", std::arch::is_x86_feature_detected!("avx2")),
    ] {
        if runs {
            return cpu(variant);
        }
        println!("skipped: this machine cannot run the variant {variant}");
    }
    Ok(Built::Missing("no variant of the CPU plugin runs on this machine".to_owned()))
}

/// The CPU crate as a plugin.
fn cpu(variant: &str) -> Result<Built> {
    let to = directory().join(format!("libultramarine-cpu-{variant}.so"));
    std::fs::create_dir_all(directory())?;
    sh::run(sh::cargo(&["build", "--release", "--quiet", "-p", "ultramarine-cpu-plugin"]))?;
    let from = sh::root().join("target/release/libultramarine_cpu_plugin.so");
    std::fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(Built::At(to))
}

fn compiler() -> std::ffi::OsString {
    std::env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Whether a program can be compiled and linked.
fn compiles(program: &str, library: &str) -> bool {
    let directory = directory();
    let (source, to) = (directory.join("probe.c"), directory.join("probe"));
    let written = std::fs::create_dir_all(&directory).is_ok();
    let compiled = written && std::fs::write(&source, program).is_ok() && {
        let mut cc = sh::cmd(compiler(), &["-DCL_TARGET_OPENCL_VERSION=120", "-o"]);
        cc.arg(&to).arg(&source).arg(library);
        sh::read(cc).is_ok()
    };
    let _ = std::fs::remove_file(source);
    let _ = std::fs::remove_file(to);
    compiled
}
