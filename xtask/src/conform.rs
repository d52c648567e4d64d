//! `cargo xtask conform`: the conformance kit on every backend that this repository builds.

use crate::plugins::{self, Built};
use crate::profile::Profile;
use crate::sh;
use crate::test::Outcome;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// A backend of this repository, and the grade that it has to reach.
pub struct Backend {
    /// Its name, for people.
    pub name: &'static str,
    grade: &'static str,
    /// The plugin; `None` for the linked-in CPU kernels.
    plugin: Option<Built>,
}

/// The name of the CUDA backend, which runs on the emulated driver.
const EMULATED: &str = "cuda, emulated";
/// The same backend, with its kernels for devices without warpgroup matrix products.
const WITHOUT_WARPGROUPS: &str = "cuda, emulated, compute capability 8.0";

/// The same backend, using cuDNN wherever possible.
const BY_CUDNN: &str = "cuda, emulated, cuDNN";

/// The Vulkan backend, mostly on llvmpipe.
const VULKAN: &str = "vulkan";
/// The same backend, with its kernels for GPUs.
const VULKAN_FOR_GPUS: &str = "vulkan, kernels for GPUs";

/// The environment variable with the directory for the Vulkan backend's programs.
const PROGRAMS: &str = "ULTRAMARINE_WGPU_SOURCES";

/// The operations for which cuDNN is used.
const OF_CUDNN: [&str; 5] =
    ["convolve", "convolve_input", "convolve_weight", "attention", "attention_gradient"];

/// The operations whose kernels exist with and without warpgroup products.
const BY_WARPGROUPS: [&str; 4] =
    ["attention", "attention_gradient", "quantized_matmul", "gather_matmul"];

/// Builds the kit and all backends.
pub fn backends() -> Result<Vec<Backend>> {
    Profile::Checked.build()?;
    let backend = |name, grade, plugin| Backend { name, grade, plugin };
    Ok(vec![
        // The slowest come first, because the others run beside them.
        backend(EMULATED, "complete", Some(plugins::on_emulator()?)),
        backend("opencl", "complete", Some(plugins::opencl()?)),
        backend(WITHOUT_WARPGROUPS, "complete", Some(plugins::on_emulator()?)),
        backend(BY_CUDNN, "complete", Some(plugins::on_emulator()?)),
        backend(VULKAN, "complete", Some(plugins::vulkan_with_driver()?)),
        backend(VULKAN_FOR_GPUS, "complete", Some(plugins::vulkan_with_driver()?)),
        backend("linked-in CPU", "complete", None),
        backend("CPU plugin", "complete", Some(plugins::overlay()?)),
        backend("minimal", "basic", Some(plugins::minimal()?)),
    ])
}

/// Prints one line for each backend. Returns an error if a backend does not conform.
pub fn run() -> Result<()> {
    let mut failed = Vec::new();
    for backend in backends()? {
        sh::say(&format!("conformance: {}", backend.name));
        let outcome = check(&backend)?;
        if let Err(error) = outcome.show(backend.name) {
            eprintln!("{error:#}");
            failed.push(backend.name);
        }
    }
    if !failed.is_empty() {
        bail!("these do not conform: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs the kit on a backend. The outcome has the last line of the kit's report.
pub fn check(backend: &Backend) -> Result<Outcome> {
    let plugin = match &backend.plugin {
        None => "--builtin".to_owned(),
        Some(Built::At(path)) => path.to_string_lossy().into_owned(),
        Some(Built::Missing(what)) => return Ok(Outcome::Missing(what.clone())),
    };
    let mut last = String::new();
    let mut kit = kit(&["--grade", backend.grade, &plugin]);
    kit.env("POCL_CACHE_DIR", plugins::pocl_cache());
    let groups: &[&str] = match backend.name {
        WITHOUT_WARPGROUPS => &BY_WARPGROUPS,
        BY_CUDNN => &OF_CUDNN,
        _ => &[],
    };
    for group in groups {
        kit.args(["--group", &format!("ops.{group}")]);
    }
    match backend.name {
        WITHOUT_WARPGROUPS => {
            kit.env("EMULATED_CUDA_CAPABILITY", "80");
        }
        BY_CUDNN => {
            kit.env("ULTRAMARINE_CUDA_CUDNN", "1");
        }
        VULKAN => plugins::on_vulkan(&mut kit),
        VULKAN_FOR_GPUS => {
            plugins::on_vulkan(&mut kit);
            kit.env("ULTRAMARINE_VULKAN_KERNELS", "gpu");
            // llvmpipe's compiler takes long for kernels with barriers.
            kit.args(["--time-limit", "900"]);
            // Remove the programs of earlier versions, which would be tested again.
            std::fs::remove_dir_all(programs()?)?;
            kit.env(PROGRAMS, programs()?);
        }
        _ => {}
    }
    if [EMULATED, WITHOUT_WARPGROUPS, BY_CUDNN].contains(&backend.name) {
        plugins::emulate(&mut kit);
        if backend.name == EMULATED {
            // Several devices are needed for the ranks of collectives.
            kit.env("ULTRAMARINE_CUDA_DEVICES", "3").env("EMULATED_CUDA_DEVICES", "3");
        }
        // A C++ compiler compiles every kernel at its first use.
        kit.args(["--time-limit", "900"]);
    }
    let conforms = sh::follow(kit, |line| {
        if !line.trim().is_empty() {
            last = line.trim().to_owned();
        }
    })?;
    if conforms && backend.name == VULKAN_FOR_GPUS {
        // Test the programs that the kit ran in the languages of the hals that this machine lacks.
        let mut others = Profile::Checked.workspace("test", &["--quiet", "--test", "other_hals"]);
        others.env(PROGRAMS, programs()?);
        let (written, totals) = sh::test_totals(others)?;
        if !written {
            return Ok(Outcome::Wrong(format!("in MSL and HLSL: {totals}")));
        }
    }
    Ok(if conforms { Outcome::Right(last) } else { Outcome::Wrong(last) })
}

/// Returns the directory to which the Vulkan backend writes its programs.
fn programs() -> Result<PathBuf> {
    let folder = sh::root().join("target/wgpu-programs");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The kit's program with arguments.
fn kit(args: &[&str]) -> Command {
    let program = format!("ultramarine-conform{}", std::env::consts::EXE_SUFFIX);
    sh::cmd(Profile::Checked.folder().join(program), args)
}
