//! `cargo xtask conform`: the conformance kit on every backend that this repository builds.

use crate::plugins::{self, Built};
use crate::sh;
use anyhow::{Result, bail};
use std::process::Command;

/// The grade that each backend of ours is to reach. CUDA's runs on the emulated driver.
fn backends() -> Result<Vec<(&'static str, &'static str, Option<Built>)>> {
    Ok(vec![
        ("linked-in CPU", "complete", None),
        ("CPU plugin", "complete", Some(plugins::overlay()?)),
        ("minimal", "basic", Some(plugins::minimal()?)),
        ("opencl", "complete", Some(plugins::opencl()?)),
        (EMULATED, "complete", Some(plugins::on_emulator()?)),
    ])
}

/// What the CUDA backend's line is called.
const EMULATED: &str = "cuda, emulated";

/// One line for each backend; an error if one does not conform.
pub fn run() -> Result<()> {
    let lines = all()?;
    sh::say("conformance");
    let mut failed = Vec::new();
    for (name, right, told) in lines {
        println!("{name:16} {told}");
        if !right {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("these do not conform: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs the kit: name, whether all is well, and what to say of it.
pub fn all() -> Result<Vec<(&'static str, bool, String)>> {
    sh::run(sh::cargo(&["build", "--release", "--quiet", "-p", "ultramarine-conform"]))?;
    let mut lines = Vec::new();
    for (name, grade, built) in backends()? {
        let plugin = match built {
            None => "--builtin".to_owned(),
            Some(Built::At(path)) => path.to_string_lossy().into_owned(),
            Some(Built::Missing(what)) => {
                lines.push((name, true, format!("SKIPPED: {what}")));
                continue;
            }
        };
        sh::say(&format!("conformance: {name}"));
        let mut last = String::new();
        let mut kit = kit(&["--grade", grade, &plugin]);
        if name == EMULATED {
            plugins::emulate(&mut kit);
            // Every kernel is compiled by a C++ compiler at its first use.
            kit.args(["--time-limit", "900"]);
        }
        let right = sh::follow(kit, |line| {
            if !line.trim().is_empty() {
                last = line.trim().to_owned();
            }
        })?;
        lines.push((name, right, last));
    }
    Ok(lines)
}

/// The kit's program with arguments.
fn kit(args: &[&str]) -> Command {
    let program = format!("ultramarine-conform{}", std::env::consts::EXE_SUFFIX);
    sh::cmd(sh::root().join("target/release").join(program), args)
}
