//! The project's automation, run as `cargo xtask COMMAND`. Continuous integration and
//! people call the same commands.

mod aarch64;
mod bench;
mod boundaries;
mod conform;
mod demo;
mod disk;
mod drivers;
mod extensions;
mod failures;
mod floors;
mod generate;
mod gpu;
mod hunts;
mod lint;
mod minutes;
mod package;
mod plugins;
mod profile;
mod python;
mod report;
mod semver;
mod sh;
mod systems;
mod test;
mod texts;
mod validation;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  demo             build, make .venv, train a classifier of digits and show what it learnt
  test [--full]    Rust tests, Python tests, type checks, comparison with mlx; --full: also what takes hours
                   (every combination of operation, dtype and layout, long fuzzing, all sanitizers, AArch64)
  lint [--full]    formatting, clippy, documentation, ruff, length of files; --full: semver, too
  bench [NAME...]  our figures beside numpy, torch, jax and mlx, as tables and JSON in target/bench/; NAMEs pick
                   groups (dlpack, axpby, gemm ...) or workloads; --keep copies the JSON to bench/history/
  plugins          build the plugins that are made of this repository into target/backends/
  gpu              the bundle in target/gpu/ that checks and times the CUDA backend on a machine with a GPU and no Rust
  conform          run the conformance kit on every backend that this repository builds
  fuzz             tensors' headers that a fuzzer makes, against the validation: --runs N (a million),
                   --keep adds what reaches more of the code to the corpus
  sanitize [address|thread]
                   the tests of the interchange under address, leak and thread sanitizer, of threads under the last
  loom [--full]    the protocols between threads (pool, claims, buffers) under the model checker loom; --full: deeper
  boundaries       who may know whom: dependencies, names, the plugins' binaries, the core without
                   its loader (lint runs it, too)
  semver           what changed in the public crates and breaks programs since the last release: --baseline REV
                   another revision; --install: the tool cargo-semver-checks, too, where it is missing
  generate         make the header, tables and docs of the operations from schema.toml
  docs             build the site into target/docs/html, and check its links
  prose [--write]  how the comments of each crate read, in figures that may only get better; --write keeps them
  package          build the wheel into dist/, check its size, install it afresh, import it

All but lint and package leave their Python packages in .venv (bench: .venv-bench); delete
those directories to start afresh.";

fn run() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    if !matches!(
        command.as_deref(),
        Some("bench" | "fuzz" | "lint" | "loom" | "prose" | "sanitize" | "semver" | "test")
    ) && !rest.is_empty()
    {
        bail!("{} takes no arguments\n\n{HELP}", command.unwrap_or_default());
    }
    match command.as_deref() {
        Some("demo") => demo::run(),
        Some("test") => test::command(&rest),
        Some("lint") => lint::command(&rest),
        Some("loom") => hunts::loom::command(&rest),
        Some("bench") => bench::run(&rest),
        Some("docs") => texts::site::run(),
        Some("prose") => texts::prose::command(&rest),
        Some("package") => package::run(),
        Some("generate") => generate::run(),
        Some("conform") => conform::run(),
        Some("plugins") => plugins::run(),
        Some("gpu") => gpu::run(),
        Some("boundaries") => boundaries::run(),
        Some("fuzz") => hunts::fuzz::run(&rest),
        Some("sanitize") => hunts::sanitize::command(&rest),
        Some("semver") => semver::command(&rest),
        None | Some("help" | "-h" | "--help") => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("no command {other:?}\n\n{HELP}"),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
