//! `cargo xtask test`: everything that can be right or wrong.

use crate::conform;
use crate::drivers;
use crate::extensions;
use crate::fuzz;
use crate::plugins::{self, Built};
use crate::python::Venv;
use crate::sanitize;
use crate::sh;
use anyhow::{Result, anyhow, bail};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The CUDA backend without a GPU.
const EMULATED: &str = "cuda, emulated, strict";

/// Headers that the fuzzer tries each time; ten million are a matter of minutes by hand.
const FUZZED: u64 = 300_000;

/// Runs every kind of test, also after a failure; an error if any failed.
pub fn run() -> Result<()> {
    let mut report = Report::default();
    drivers::opencl();
    // Texts of kernels that are no more.
    let _ = std::fs::remove_dir_all(plugins::sources());
    // Packages come by the network while the Rust tests have the processor.
    let packages = std::thread::spawn(packages);
    sh::say("Rust tests: unit, integration, documentation");
    report.rust(&["--all-targets"])?;
    // Examples in the documentation are their own kind for cargo.
    report.rust(&["--doc"])?;

    for (name, right, told) in conform::all()? {
        report.note(&format!("conformance: {name}"), right, &told);
    }

    for (name, told) in
        [("fuzzing", fuzz::all(FUZZED, false)), (sanitize::ADDRESS, sanitize::address(false))]
    {
        report.outcome(name, told);
    }

    let venv = packages.join().map_err(|_| anyhow!("installing packages panicked"))??;
    venv.install_ours()?;
    let other = extensions::other_build(&venv)?;
    for example in extensions::examples()? {
        if let Err(error) = extensions::install(&venv, &example) {
            report.note(&example.display().to_string(), false, &format!("{error:#}"));
        }
    }
    let opencl = plugins::opencl()?;
    let overlay = plugins::overlay()?;
    let minimal = plugins::minimal()?;
    let emulated = plugins::on_emulator()?;

    let venv = &venv;
    let mut steps: Vec<(String, Step<'_>)> = vec![(
        "Python tests, and the comparison with mlx, on the built-in CPU backend".to_owned(),
        Box::new(|report: &mut Report| {
            let other = Some(("ULTRAMARINE_OTHER_BUILD", other.as_path()));
            report.pytest_with(venv, "pytest", &["python/tests"], other)
        }),
    )];
    for (name, built, device, strict, operands) in [
        ("opencl, strict", &opencl, "gpu:0", "opencl", ""),
        (EMULATED, &emulated, "gpu:0", "cuda", ""),
        ("minimal", &minimal, "gpu:0", "", ""),
        ("minimal, operands on gpu:1", &minimal, "gpu:0", "", "gpu:1"),
        ("overlay", &overlay, "cpu:0", "", ""),
    ] {
        let run = move |report: &mut Report| {
            let path = match built {
                Built::At(path) => path.to_string_lossy(),
                Built::Missing(what) => {
                    report.note(name, true, &format!("SKIPPED: {what}"));
                    return Ok(());
                }
            };
            let suite = ["-m", "ops", "--backend", &path, "--device", device];
            let how = ["--strict-for", strict, "--operands", operands, "python/tests"];
            let suite = [&suite[..], &how].concat();
            match name {
                EMULATED => report.emulated(venv, &suite),
                _ => report.pytest(venv, name, &suite),
            }
        };
        let title = format!("the Python suite of operations on {device}: {name}");
        steps.push((title, Box::new(run)));
    }
    steps.push((
        "arrays exchanged with numpy, torch, jax, tvm-ffi, pyarrow and mlx".to_owned(),
        Box::new(|report| report.pytest(venv, "interchange", &["python/tests/interchange"])),
    ));
    steps.push((
        "types, and examples of extensions".to_owned(),
        // One after the other: they share a cache of types.
        Box::new(|report| types(report, venv).and_then(|()| extensions(report, venv, &opencl))),
    ));
    report.side_by_side(steps)?;
    report.close()
}

/// A kind of test that does not mind what runs beside it.
type Step<'a> = Box<dyn FnOnce(&mut Report) -> Result<()> + Send + 'a>;

/// The types of the examples, the stubs and the packages that have none.
fn types(report: &mut Report, venv: &Venv) -> Result<()> {
    // The backends' own build scripts subclass what has no types.
    let examples = ["--exclude", "examples/(backends|extensions)", "examples"];
    let package = [
        "python/tests/typing_check.py",
        "python/ultramarine/dlpack_check",
        "python/ultramarine/array_api",
    ];
    let mypy = [&["-m", "mypy", "--strict"][..], &examples, &package].concat();
    let right = sh::follow(venv.python(&mypy), |_| {})?;
    report.note("mypy", right, if right { "no errors" } else { "errors" });
    Ok(())
}

/// The examples of extensions: installed, their types checked, tested on the CPU and on OpenCL.
fn extensions(report: &mut Report, venv: &Venv, opencl: &Built) -> Result<()> {
    let device = match opencl {
        Built::At(path) => Some(extensions::alone(path)?),
        Built::Missing(what) => {
            report.note("extensions on opencl", true, &format!("SKIPPED: {what}"));
            None
        }
    };
    for example in extensions::examples()? {
        let shown = example.display().to_string();
        let places = device.as_ref().map_or("", |_| " and on opencl");
        sh::say(&format!("{shown}, on the CPU{places}"));
        let settings = format!("{shown}/pyproject.toml");
        let mypy = ["-m", "mypy", "--config-file", &settings, &shown];
        let right = sh::follow(venv.python(&mypy), |_| {})?;
        report.note(&format!("mypy {shown}"), right, if right { "no errors" } else { "errors" });
        let directory = device.as_deref().map(|d| ("ULTRAMARINE_BACKEND_PATH", d));
        report.pytest_with(venv, &shown, &[&format!("{shown}/tests")], directory)?;
    }
    Ok(())
}

/// The environment with all packages of the tests. The libraries that arrays are exchanged with
/// may be missing: their tests are skipped, unless `ULTRAMARINE_NEEDS_PEERS=1`.
fn packages() -> Result<Venv> {
    let venv = Venv::open(".venv")?;
    venv.require("demo")?;
    venv.require("test")?;
    if let Err(error) = venv.require_large("interchange") {
        eprintln!("left out: the tests with libraries that are missing: {error:#}");
    }
    Ok(venv)
}

/// What came of a kind of test, in words.
pub enum Outcome {
    /// All is well.
    Right(String),
    /// Something was found.
    Wrong(String),
    /// This machine cannot run it: what it lacks.
    Missing(String),
}

impl Outcome {
    /// For a command of its own.
    pub fn show(self, name: &str) -> Result<()> {
        match self {
            Outcome::Right(told) => println!("{name:28} {told}"),
            Outcome::Wrong(told) => bail!("{name}: {told}"),
            Outcome::Missing(thing) => println!("{name:28} SKIPPED: {thing}"),
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was run, and what came of it.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    failed: Vec<String>,
}

impl Report {
    fn note(&mut self, what: &str, right: bool, told: &str) {
        self.lines.push(format!("{what:28} {told}"));
        if !right {
            self.failed.push(what.to_owned());
        }
    }

    /// What came of a kind of test that this machine may be unable to run.
    fn outcome(&mut self, what: &str, outcome: Result<Outcome>) {
        match outcome {
            Ok(Outcome::Right(told)) => self.note(what, true, &told),
            Ok(Outcome::Wrong(told)) => self.note(what, false, &told),
            Ok(Outcome::Missing(thing)) => self.note(what, true, &format!("SKIPPED: {thing}")),
            Err(error) => self.note(what, false, &format!("{error:#}")),
        }
    }

    /// `cargo test` with totals over all its binaries. The Python module has no tests in Rust,
    /// and outside maturin it would want a library of Python to link with.
    fn rust(&mut self, kind: &[&str]) -> Result<()> {
        let args = [
            &["test", "--workspace", "--exclude=ultramarine-python", "--release", "--no-fail-fast"],
            kind,
        ]
        .concat();
        let mut total = [0u64; 3];
        let right = sh::follow(sh::cargo(&args), |line| {
            if let Some(result) = line.strip_prefix("test result:") {
                for (sum, word) in total.iter_mut().zip(["passed", "failed", "ignored"]) {
                    *sum += sh::count_before(result, word);
                }
            }
        })?;
        let [passed, failed, ignored] = total;
        let told = format!("{passed} passed, {failed} failed, {ignored} ignored");
        self.note(&format!("cargo test {}", kind.join(" ")), right, &told);
        Ok(())
    }

    /// Runs steps, two at a time, in their order: each prints what it has to say when it is done. What one
    /// of them cannot do is a failure of its own.
    fn side_by_side(&mut self, steps: Vec<(String, Step<'_>)>) -> Result<()> {
        let queue = Mutex::new(steps.into_iter().enumerate());
        let reports = Mutex::new(Vec::new());
        let work = || {
            loop {
                // A statement of its own: the lock is not held while the step runs.
                let next = lock(&queue).next();
                let Some((at, (title, step))) = next else { break };
                sh::print(&format!("begun      {title}"));
                let mut report = Report::default();
                let started = Instant::now();
                let (outcome, printed) = sh::captured(|| step(&mut report));
                if let Err(error) = outcome {
                    report.note(&title, false, &format!("{error:#}"));
                }
                let seconds = started.elapsed().as_secs();
                sh::print(&format!("\n== {title} ({seconds} s)\n{printed}"));
                lock(&reports).push((at, report));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
        let mut reports = std::mem::take(&mut *lock(&reports));
        reports.sort_by_key(|(at, _)| *at);
        for (_, report) in reports {
            self.lines.extend(report.lines);
            self.failed.extend(report.failed);
        }
        Ok(())
    }

    /// The suite of operations on the CUDA backend, by way of the emulated driver: a tenth of it, since
    /// each kernel is compiled by a C++ compiler. A GPU takes all of it in minutes. Then NVIDIA's own
    /// compiler takes the kernels that were met, by the kit too.
    fn emulated(&mut self, venv: &Venv, suite: &[&str]) -> Result<()> {
        let each = if std::env::var_os("ULTRAMARINE_TEST_FULL").is_some() { "1" } else { "10" };
        let suite = [suite, &["--each", each]].concat();
        self.pytest_how(venv, EMULATED, &suite, plugins::emulate)?;
        sh::say("the kernels of the CUDA backend, by NVIDIA's compiler");
        let mut told = String::new();
        let sources = plugins::sources();
        let compile = ["crates/ultramarine-cuda/machine/compile.py", &sources.to_string_lossy()];
        let right = sh::follow(venv.python(&compile), |line| told = line.to_owned())?;
        self.note("kernels by NVRTC", right, &told);
        Ok(())
    }

    /// The Python tests, with the last line that they print.
    fn pytest(&mut self, venv: &Venv, what: &str, args: &[&str]) -> Result<()> {
        self.pytest_with(venv, what, args, None)
    }

    /// The same, with a variable of the environment.
    fn pytest_with(
        &mut self,
        venv: &Venv,
        what: &str,
        args: &[&str],
        variable: Option<(&str, &Path)>,
    ) -> Result<()> {
        self.pytest_how(venv, what, args, |python| {
            python.envs(variable);
        })
    }

    /// The same, with an environment that `prepare` makes.
    fn pytest_how(
        &mut self,
        venv: &Venv,
        what: &str,
        args: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Result<()> {
        let mut last = String::new();
        let pytest = ["-m", "pytest", "-q", "-rfE", "--durations=5"];
        let mut python = venv.python(&[&pytest[..], args].concat());
        // Kernels that were compiled once need not be again.
        python.env("POCL_CACHE_DIR", sh::root().join("target/pocl"));
        // The examples of extensions are installed: what wants them is not to be skipped.
        python.env("ULTRAMARINE_NEEDS_EXTENSIONS", "1");
        prepare(&mut python);
        let (mut counting, mut counts) = (false, String::new());
        let right = sh::follow(python, |line| {
            counting |= line.contains("by how they ran");
            if counting && !line.starts_with([' ', '=']) && line.matches(" / ").count() == 2 {
                let words: Vec<&str> = line.split_whitespace().collect();
                counts = format!("{counts}; {}", words.join(" "));
            }
            // Which libraries there were.
            if line.starts_with("libraries: ") {
                counts = format!("{counts}; {line}");
            }
            if !line.trim().is_empty() {
                last = line.trim_matches(|c| c == '=' || c == ' ').to_owned();
            }
        })?;
        let last = format!("{last}{counts}");
        self.note(what, right, &last);
        Ok(())
    }

    fn close(self) -> Result<()> {
        sh::say("totals");
        for line in &self.lines {
            println!("{line}");
        }
        if !self.failed.is_empty() {
            bail!("failed: {}", self.failed.join(", "));
        }
        Ok(())
    }
}
