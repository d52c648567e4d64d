//! `cargo xtask test`: runs all tests that a change has to pass; with `--full` also those that take
//! an hour.

use crate::aarch64;
use crate::conform;
use crate::disk;
use crate::drivers;
use crate::extensions;
use crate::failures;
use crate::hunts::{fuzz, loom, sanitize, soak};
use crate::minutes;
use crate::plugins::{self, Built as Plugin};
use crate::profile::Profile;
use crate::python::{DLPACK_CHECK, ULTRAMARINE, Venv};
use crate::report::{Report, Step, step};
use crate::sh;
use crate::validation;
use anyhow::{Result, anyhow, bail};
use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;

/// The CUDA backend without a GPU.
const EMULATED: &str = "cuda, emulated, strict";
/// The Vulkan backend, on llvmpipe where there is no GPU.
const VULKAN: &str = "vulkan, strict";

/// Number of headers that the fuzzer tries.
const FUZZED: u64 = 300_000;
const FUZZED_FULL: u64 = 10_000_000;

/// Makes the Python tests run every case instead of a sample.
const FULL: &str = "ULTRAMARINE_TEST_FULL";

/// Outcome of a kind of test, with its message.
pub enum Outcome {
    /// It passed.
    Right(String),
    /// It failed.
    Wrong(String),
    /// This machine cannot run it, because something is missing.
    Missing(String),
}

impl Outcome {
    /// Prints a line for a separate command. Returns an error if the test failed.
    pub fn show(self, name: &str) -> Result<()> {
        match self {
            Outcome::Right(message) => println!("{name:28} {message}"),
            Outcome::Wrong(message) => bail!("{name}: {message}"),
            Outcome::Missing(thing) => println!("{name:28} SKIPPED: {thing}"),
        }
        Ok(())
    }
}

/// `cargo xtask test [--full]`.
pub fn command(args: &[String]) -> Result<()> {
    match args {
        [] => run(std::env::var_os(FULL).is_some()),
        [full] if full == "--full" => run(true),
        _ => bail!("usage: cargo xtask test [--full]"),
    }
}

/// Runs every kind of test, even after a failure. Returns an error if any failed.
fn run(full: bool) -> Result<()> {
    disk::check()?;
    minutes::begin()?;
    let mut report = Report::default();
    minutes::step("system packages", || {
        drivers::opencl();
        drivers::vulkan();
        drivers::mpi();
    });
    // Remove the sources of kernels that tests no longer use.
    let _ = std::fs::remove_dir_all(plugins::sources());
    // Download packages while the compiler uses the processor.
    let packages = std::thread::spawn(|| minutes::step("Python packages", packages));
    minutes::step("build: Rust tests", build_tests)?;
    let peers = packages.join().map_err(|_| anyhow!("installing packages panicked"))??;
    let venv = &Venv::open(".venv")?;
    let built =
        minutes::step("build: Python packages, plugins, kit", || Built::all(venv, &mut report))?;
    let mut rust = tests(&[]);
    rust.envs(full.then_some((FULL, "1")));
    minutes::step("Rust tests", || report.cargo_test("cargo test", rust))?;
    peers.join().map_err(|_| anyhow!("installing packages panicked"))?;
    report.side_by_side(steps(venv, &built, full));
    let closed = report.close();
    minutes::show()?;
    failures::show();
    closed
}

/// Makes the environment with the packages of the tests. The libraries that arrays are exchanged
/// with are large, so a separate thread installs them, together with language models' programs and
/// weights. They may be missing. The tests that need them are then skipped, unless
/// `ULTRAMARINE_NEEDS_PEERS=1` and `ULTRAMARINE_NEEDS_MODELS=1` are set.
fn packages() -> Result<JoinHandle<()>> {
    let venv = Venv::open(".venv")?;
    venv.require("demo")?;
    venv.require("test")?;
    Ok(std::thread::spawn(move || {
        let installed = minutes::step("Python packages: other libraries", || {
            venv.require_large("interchange")?;
            venv.require_large("models")?;
            venv.require_alone("models-weights")
        });
        if let Err(error) = installed {
            eprintln!("left out: the tests with libraries that are missing: {error:#}");
        }
    }))
}

/// Returns `cargo test` for the workspace: unit tests, integration tests, doctests; examples are
/// built. It does not use `--all-targets`, which would build the Python modules as programs.
fn tests(arguments: &[&str]) -> Command {
    let mut command = Profile::Checked.workspace("test", arguments);
    command.arg("--no-fail-fast").env("POCL_CACHE_DIR", plugins::pocl_cache());
    plugins::on_vulkan(&mut command);
    command
}

fn build_tests() -> Result<()> {
    sh::say("building the Rust tests, the Python modules, the plugins and the kit");
    sh::run(tests(&["--no-run"]))?;
    Profile::Checked.build()
}

/// The libraries that tests load, built before any of them runs.
struct Built {
    other_build: PathBuf,
    kit: Vec<conform::Backend>,
    opencl: Plugin,
    overlay: Plugin,
    minimal: Plugin,
    emulated: Plugin,
    vulkan: Plugin,
}

impl Built {
    fn all(venv: &Venv, report: &mut Report) -> Result<Built> {
        for package in [ULTRAMARINE, DLPACK_CHECK] {
            venv.lay_out(&package, Profile::Checked)?;
        }
        for example in extensions::examples()? {
            if let Err(error) = extensions::install(venv, &example) {
                report.note(&example.display().to_string(), false, &format!("{error:#}"));
            }
        }
        Ok(Built {
            other_build: extensions::other_build()?,
            kit: conform::backends()?,
            opencl: plugins::opencl()?,
            overlay: plugins::overlay()?,
            minimal: plugins::minimal()?,
            emulated: plugins::on_emulator()?,
            vulkan: plugins::vulkan_with_driver()?,
        })
    }
}

/// Returns the steps that may run at the same time as others. The longest come first, because a
/// long step at the end would leave a core idle.
fn steps<'a>(venv: &'a Venv, built: &'a Built, full: bool) -> Vec<Step<'a>> {
    let pytest = move |report: &mut Report, name: &str, args: &[&str]| {
        report.pytest(venv, name, args, |python| {
            python.env("ULTRAMARINE_OTHER_BUILD", &built.other_build);
            python.envs(full.then_some((FULL, "1")));
        })
    };
    let mut steps = Vec::new();
    let kit = built.kit.iter().map(|backend| {
        let name = format!("conformance: {}", backend.name);
        step(name.clone(), move |report: &mut Report| {
            report.outcome(&name, conform::check(backend));
            Ok(())
        })
    });
    steps.extend(kit);
    // Insert it beside the longest step of the kit.
    steps.insert(
        1,
        step("pytest, with the comparison with mlx", move |report: &mut Report| {
            pytest(report, "pytest", &["python/tests"])?;
            pytest(report, "dlpack check", &["crates/ultramarine-dlpack-check/tests"])?;
            pytest(report, "gpu checks", &["testing/gpu-checks"])
        }),
    );
    steps.insert(
        2,
        step("language models", move |report: &mut Report| {
            pytest(report, "language models", &["python/tests/models"])
        }),
    );
    for (name, plugin, device, strict, operands) in [
        ("opencl, strict", &built.opencl, "gpu:0", "opencl", ""),
        (EMULATED, &built.emulated, "gpu:0", "cuda", ""),
        (VULKAN, &built.vulkan, "gpu:0", "vulkan", ""),
        ("minimal", &built.minimal, "gpu:0", "", ""),
        ("minimal, operands on gpu:1", &built.minimal, "gpu:0", "", "gpu:1"),
        ("overlay", &built.overlay, "cpu:0", "", ""),
    ] {
        steps.push(step(format!("op suite: {name}"), move |report| {
            let path = match plugin {
                Plugin::At(path) => path.to_string_lossy(),
                Plugin::Missing(what) => {
                    report.note(name, true, &format!("SKIPPED: {what}"));
                    return Ok(());
                }
            };
            // Join options and paths with `=`: as separate words, pytest would take the paths for
            // paths of tests and would not find pytest.ini.
            let options = [
                format!("--backend={path}"),
                format!("--device={device}"),
                format!("--strict-for={strict}"),
                format!("--operands={operands}"),
            ];
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let suite = [&["-m", "ops"], &options[..], &["python/tests"]].concat();
            match name {
                EMULATED => a_part(report, venv, name, &suite, full, plugins::emulate),
                VULKAN => a_part(report, venv, name, &suite, full, plugins::on_vulkan),
                _ => pytest(report, name, &suite),
            }
        }));
    }
    steps.push(step("vulkan, validation layer", move |report: &mut Report| {
        report.outcome("vulkan, validation layer", validation::check(&built.vulkan, full));
        Ok(())
    }));
    steps.push(step("interchange with numpy, torch, jax, tvm-ffi, pyarrow, mlx", move |report| {
        pytest(report, "interchange", &["python/tests/interchange"])
    }));
    steps.push(step("mypy", move |report| types(report, venv)));
    steps.push(step("examples of extensions", move |report| {
        extensions(report, venv, &built.opencl)
    }));
    let headers = if full { FUZZED_FULL } else { FUZZED };
    steps.push(step("fuzzing", move |report| {
        report.outcome("fuzzing", fuzz::all(headers, false));
        Ok(())
    }));
    steps.push(step("sanitizers", move |report| {
        report.outcome(sanitize::ADDRESS, sanitize::address(full));
        if full {
            report.outcome(sanitize::THREAD, sanitize::thread());
        }
        Ok(())
    }));
    steps.push(step(loom::NAME, move |report| {
        report.outcome(loom::NAME, loom::check(full));
        Ok(())
    }));
    steps.push(step(soak::NAME, move |report: &mut Report| {
        soak::check(report, venv, &[&built.opencl, &built.emulated], full)
    }));
    if full {
        steps.push(step(aarch64::NAME, |report| {
            report.outcome(aarch64::NAME, aarch64::tests());
            Ok(())
        }));
    }
    // Run it last, when the kit and the suite have written all their kernels.
    steps.push(step("kernels by NVRTC", move |report| nvrtc(report, venv, full)));
    steps
}

/// Checks the types of the examples, the stubs and the packages without stubs.
fn types(report: &mut Report, venv: &Venv) -> Result<()> {
    // Exclude the backends' build scripts, because they subclass untyped classes.
    let examples = ["--exclude", "examples/(backends|extensions)", "examples"];
    let package = [
        "python/tests/surface/typing_check.py",
        "python/ultramarine/array_api",
        "python/ultramarine/as_mlx",
        "python/ultramarine/launch",
        "python/ultramarine/nn",
        "python/ultramarine/optimizers",
        "python/ultramarine/utils.py",
        "crates/ultramarine-dlpack-check/python/ultramarine_dlpack_check",
    ];
    mypy(report, venv, "mypy", &[&["--strict"][..], &examples, &package].concat())
}

fn mypy(report: &mut Report, venv: &Venv, name: &str, args: &[&str]) -> Result<()> {
    let passed = sh::follow(venv.python(&[&["-m", "mypy"][..], args].concat()), |_| {})?;
    report.note(name, passed, if passed { "no errors" } else { "errors" });
    Ok(())
}

/// Installs the examples of extensions, checks their types, and tests them on the CPU and on
/// OpenCL.
fn extensions(report: &mut Report, venv: &Venv, opencl: &Plugin) -> Result<()> {
    let device = match opencl {
        Plugin::At(path) => Some(extensions::alone(path)?),
        Plugin::Missing(what) => {
            report.note("extensions on opencl", true, &format!("SKIPPED: {what}"));
            None
        }
    };
    for example in extensions::examples()? {
        let shown = example.display().to_string();
        let places = device.as_ref().map_or("", |_| " and on opencl");
        sh::say(&format!("{shown}, on the CPU{places}"));
        let settings = format!("{shown}/pyproject.toml");
        mypy(report, venv, &format!("mypy {shown}"), &["--config-file", &settings, &shown])?;
        report.pytest(venv, &shown, &[&format!("{shown}/tests")], |python| {
            python.envs(device.as_deref().map(|d| ("ULTRAMARINE_BACKEND_PATH", d)));
        })?;
    }
    Ok(())
}

/// Runs a tenth of the suite, because a slow compiler compiles each kernel at its first use. If
/// `full`, runs all of it.
fn a_part(
    report: &mut Report,
    venv: &Venv,
    name: &str,
    suite: &[&str],
    full: bool,
    prepare: fn(&mut Command),
) -> Result<()> {
    let each = if full { "--each=1" } else { "--each=10" };
    report.pytest(venv, name, &[suite, &[each]].concat(), prepare)
}

/// Compiles the kernels that ran on the emulated driver with NVIDIA's own compiler, except those
/// that it accepted before.
fn nvrtc(report: &mut Report, venv: &Venv, full: bool) -> Result<()> {
    let sources = plugins::sources();
    let mut compile = venv.python(&["testing/gpu-checks/compile.py", &sources.to_string_lossy()]);
    compile.args(full.then_some("--again"));
    let mut last = String::new();
    let passed = sh::follow(compile, |line| last = line.to_owned())?;
    report.note("kernels by NVRTC", passed, &last);
    Ok(())
}
