//! The backends of this repository as plugins, built into `target/backends`. The examples in C need
//! only the C compiler and the contract's headers. Cargo builds the plugins of the CPU crate, CUDA
//! and Vulkan with the profile `checked`.

use crate::drivers;
use crate::profile::Profile;
use crate::sh;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the directory of the plugins.
pub fn directory() -> PathBuf {
    sh::root().join("target/backends")
}

/// A plugin, or the reason why this machine cannot build it.
pub enum Built {
    /// The library.
    At(PathBuf),
    /// The missing tool or library.
    Missing(String),
}

/// `cargo xtask plugins`: builds all plugins, and names those that this machine cannot build.
pub fn run() -> Result<()> {
    let mut all =
        vec![("minimal", minimal()?), ("opencl", opencl()?), ("cuda", cuda(Profile::Checked)?)];
    all.push(("vulkan", vulkan(Profile::Checked)?));
    if cfg!(target_arch = "x86_64") {
        for variant in CPU_VARIANTS {
            all.push((variant, cpu(variant)?));
        }
    }
    for (name, built) in all {
        match built {
            Built::At(path) => println!("built      {}", path.display()),
            Built::Missing(what) => println!("left out   {name}: {what}"),
        }
    }
    Ok(())
}

/// The values of `ULTRAMARINE_CPU_VARIANT` when the CPU crate is built as a plugin.
const CPU_VARIANTS: [&str; 2] = ["x86_64_v4", "x86_64_v3"];

/// The minimal backend in C.
pub fn minimal() -> Result<Built> {
    example("minimal", "libultramarine-minimal.so")
}

/// The OpenCL backend in C; it needs OpenCL's headers and its loader.
pub fn opencl() -> Result<Built> {
    if !compiles("#include <CL/cl.h>\nint main(void) { return clFlush(0); }", "-lOpenCL") {
        let missing = "OpenCL's headers and loader are not installed (Debian: ocl-icd-opencl-dev, \
                       pocl-opencl-icd)";
        return Ok(Built::Missing(missing.to_owned()));
    }
    example("opencl", "libultramarine-opencl.so")
}

/// Builds `examples/backends/{name}` by `make`. It always builds from scratch, because make does
/// not notice changed headers of the contract.
fn example(name: &str, made: &str) -> Result<Built> {
    let source = sh::root().join("examples/backends").join(name);
    std::fs::create_dir_all(directory())?;
    let out = format!("OUT={}", directory().join(name).display());
    let mut make = sh::cmd("make", &["--quiet", "--always-make", &out]);
    make.current_dir(&source);
    sh::run(make)?;
    // Makefiles without OUT build in their own directory.
    let places = [directory().join(name).join(made), source.join(made)];
    let from = places.iter().find(|p| p.is_file()).context("make did not build the plugin")?;
    let to = directory().join(made);
    // Remove the old file first, so that programs that have it open keep it.
    let _ = std::fs::remove_file(&to);
    std::fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(Built::At(to))
}

/// Builds the CPU crate as a plugin that overlays cpu:0, in the variant that this machine can run.
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
    let profile = Profile::Checked;
    let mut build = profile.libraries();
    build.env("ULTRAMARINE_CPU_VARIANT", variant);
    sh::run(build)?;
    place(&profile.folder().join("libultramarine_cpu_plugin.so"), &to)
}

/// Builds the CUDA backend. The build needs no files of NVIDIA, so it works everywhere. Packages
/// take the library from cargo's directory.
pub fn cuda(profile: Profile) -> Result<Built> {
    profile.build()?;
    let from = profile.folder().join("libultramarine_cuda.so");
    match profile {
        Profile::Checked => place(&from, &directory().join("libultramarine-cuda.so")),
        Profile::Release => Ok(Built::At(from)),
    }
}

/// Builds the Vulkan backend into a separate directory. Beside the other plugins, it would add a
/// device to tests that need only their own.
pub fn vulkan(profile: Profile) -> Result<Built> {
    profile.build()?;
    let from = profile.folder().join("libultramarine_wgpu.so");
    match profile {
        Profile::Checked => place(&from, &directory().join("vulkan/libultramarine-vulkan.so")),
        Profile::Release => Ok(Built::At(from)),
    }
}

/// Builds the Vulkan backend, if there is a driver.
pub fn vulkan_with_driver() -> Result<Built> {
    if drivers::has_vulkan() {
        return vulkan(Profile::Checked);
    }
    let missing = "there is no Vulkan driver (Debian: libvulkan1, mesa-vulkan-drivers)";
    Ok(Built::Missing(missing.to_owned()))
}

/// Makes a command keep the kernels that it compiles, and those that Mesa compiles. The drivers
/// complain if no user is logged in.
pub fn on_vulkan(command: &mut Command) {
    let kept = sh::root().join("target/mesa");
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() && std::fs::create_dir_all(&kept).is_ok() {
        command.env("XDG_RUNTIME_DIR", &kept);
    }
    command.env("MESA_SHADER_CACHE_DIR", kept);
    // On llvmpipe most of the time is spent in its compiler, and up to a third of that in its
    // optimizer.
    command.env("GALLIVM_PERF", "nopt");
    command.env("ULTRAMARINE_CACHE_DIR", sh::root().join("target/vulkan-cache"));
}

/// Builds the emulated CUDA driver and NVRTC, which tests use without a GPU, into a directory. They
/// run kernels on the CPU. Needs a C++ compiler.
pub fn emulated_cuda() -> Result<Built> {
    let out = sh::root().join("target/emulated-cuda");
    let cxx = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if sh::read(sh::cmd(cxx, &["--version"])).is_err() {
        return Ok(Built::Missing("there is no C++ compiler (Debian: g++)".to_owned()));
    }
    let mut make = sh::cmd("make", &["--quiet", &format!("OUT={}", out.display())]);
    make.current_dir(sh::root().join("testing/cuda-emulator"));
    sh::run(make)?;
    Ok(Built::At(out))
}

/// Builds the CUDA backend, if [`emulate`] can give it a device.
pub fn on_emulator() -> Result<Built> {
    Ok(match emulated_cuda()? {
        Built::At(_) => cuda(Profile::Checked)?,
        missing => missing,
    })
}

/// Makes a command use the emulated driver, which has one device.
pub fn emulate(command: &mut Command) {
    command.env("ULTRAMARINE_CUDA_LIBRARIES", sh::root().join("target/emulated-cuda"));
    command.env("ULTRAMARINE_CUDA_DEVICES", "1");
    command.env("ULTRAMARINE_CACHE_DIR", sh::root().join("target/cuda-cache"));
    if std::fs::create_dir_all(sources()).is_ok() {
        command.env("ULTRAMARINE_CUDA_SOURCES", sources());
    }
}

/// Returns the directory in which PoCL keeps the kernels that it compiled.
pub fn pocl_cache() -> PathBuf {
    sh::root().join("target/pocl")
}

/// Returns the directory with the sources of all kernels that ran on the emulated driver, for
/// NVIDIA's own compiler.
pub fn sources() -> PathBuf {
    sh::root().join("target/cuda-sources")
}

/// Copies a library to the directory where it is used, as a new file, so that programs that have
/// the former one open keep it.
fn place(from: &Path, to: &Path) -> Result<Built> {
    to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let fresh = to.with_extension("new");
    std::fs::copy(from, &fresh).with_context(|| format!("cannot copy {}", from.display()))?;
    std::fs::rename(&fresh, to)?;
    Ok(Built::At(to.to_owned()))
}

fn compiler() -> std::ffi::OsString {
    std::env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Returns true if a program can be compiled and linked.
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
