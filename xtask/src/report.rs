//! The report of `cargo xtask test`: a line for each kind of test. It also runs steps at the same
//! time.

use crate::minutes;
use crate::plugins;
use crate::profile::Profile;
use crate::python::Venv;
use crate::sh;
use crate::test::Outcome;
use anyhow::{Result, bail};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A kind of test that may run at the same time as others.
pub struct Step<'a> {
    name: String,
    work: Work<'a>,
}

type Work<'a> = Box<dyn FnOnce(&mut Report) -> Result<()> + Send + 'a>;

/// A step with its name.
pub fn step<'a>(
    name: impl Into<String>,
    work: impl FnOnce(&mut Report) -> Result<()> + Send + 'a,
) -> Step<'a> {
    Step { name: name.into(), work: Box::new(work) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Results of the tests so far.
#[derive(Default)]
pub struct Report {
    lines: Vec<String>,
    failed: Vec<String>,
}

impl Report {
    /// Adds a line for `what`.
    pub fn note(&mut self, what: &str, passed: bool, message: &str) {
        self.lines.push(format!("{what:28} {message}"));
        if !passed {
            self.failed.push(what.to_owned());
        }
    }

    /// Adds a line for a kind of test that this machine may be unable to run.
    pub fn outcome(&mut self, what: &str, outcome: Result<Outcome>) {
        match outcome {
            Ok(Outcome::Right(message)) => self.note(what, true, &message),
            Ok(Outcome::Wrong(message)) => self.note(what, false, &message),
            Ok(Outcome::Missing(thing)) => self.note(what, true, &format!("SKIPPED: {thing}")),
            Err(error) => self.note(what, false, &format!("{error:#}")),
        }
    }

    /// Runs a `cargo test` command and reports the totals over all its binaries.
    pub fn cargo_test(&mut self, what: &str, command: Command) -> Result<()> {
        let (passed, message) = sh::test_totals(command)?;
        self.note(what, passed, &message);
        Ok(())
    }

    /// Runs the Python tests that `args` select, in an environment that `prepare` extends. Reports
    /// the last line that pytest prints, with the counters of the suite of operations.
    pub fn pytest(
        &mut self,
        venv: &Venv,
        what: &str,
        args: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Result<()> {
        let mut last = String::new();
        let pytest = ["-m", "pytest", "-q", "-rfE", "--durations=5"];
        let mut python = venv.python(&[&pytest[..], args].concat());
        // Keep compiled kernels, so that they need not be compiled again.
        python.env("POCL_CACHE_DIR", plugins::pocl_cache());
        // The examples of extensions are installed, so tests that need them must not be skipped.
        python.env("ULTRAMARINE_NEEDS_EXTENSIONS", "1");
        python.env("ULTRAMARINE_TEST_PROFILE", Profile::Checked.name());
        prepare(&mut python);
        let (mut counting, mut counts) = (false, String::new());
        let passed = sh::follow(python, |line| {
            counting |= line.contains("by how they ran");
            if counting && !line.starts_with([' ', '=']) && line.matches(" / ").count() == 2 {
                let words: Vec<&str> = line.split_whitespace().collect();
                counts = format!("{counts}; {}", words.join(" "));
            }
            // Lines with the versions of the libraries that arrays are exchanged with, and with the
            // operations that strict mode allowed on the CPU.
            if line.starts_with("libraries: ") || line.starts_with("strict for ") {
                counts = format!("{counts}; {line}");
            }
            if !line.trim().is_empty() {
                last = line.trim_matches(|c| c == '=' || c == ' ').to_owned();
            }
        })?;
        self.note(what, passed, &format!("{last}{counts}"));
        Ok(())
    }

    /// Runs steps two at a time, in their order. Each prints its output when it is done. If a step
    /// fails, the report has the failure and the other steps continue.
    pub fn side_by_side(&mut self, steps: Vec<Step<'_>>) {
        let queue = Mutex::new(steps.into_iter().enumerate());
        let reports = Mutex::new(Vec::new());
        let work = || {
            loop {
                // This is a separate statement, so that the lock is not held while the step runs.
                let next = lock(&queue).next();
                let Some((at, Step { name, work })) = next else { break };
                sh::print(&format!("begun      {name}"));
                let mut report = Report::default();
                let started = Instant::now();
                let run = || minutes::step(&name, || work(&mut report));
                let (outcome, printed) = sh::captured(run);
                if let Err(error) = outcome {
                    report.note(&name, false, &format!("{error:#}"));
                }
                let seconds = started.elapsed().as_secs();
                sh::print(&format!("\n== {name} ({seconds} s)\n{printed}"));
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
    }

    /// Prints all lines. Returns an error if a test failed.
    pub fn close(self) -> Result<()> {
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
