//! The soak (`testing/soak/soak.py`): random programs on all devices, with faults, forks and exports.

use crate::plugins::{self, Built};
use crate::python::Venv;
use crate::report::Report;
use crate::sh;
use anyhow::Result;
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the step.
pub const NAME: &str = "soak";

/// Runs for half an hour with a new seed if `full`, otherwise for a few seconds.
pub fn check(report: &mut Report, venv: &Venv, plugins: &[&Built], full: bool) -> Result<()> {
    let seed = match full {
        true => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs()),
        false => 1,
    };
    let seconds = if full { 1800 } else { 5 };
    let mut soak = venv.python(&["testing/soak/soak.py"]);
    soak.args([format!("--seconds={seconds}"), format!("--seed={seed}")]);
    plugins::emulate(&mut soak);
    soak.env("POCL_CACHE_DIR", plugins::pocl_cache());
    for plugin in plugins {
        match plugin {
            Built::At(path) => {
                soak.arg("--backend").arg(path);
            }
            Built::Missing(what) => {
                report.note("soak on a device", true, &format!("SKIPPED: {what}"))
            }
        }
    }
    let mut last = String::new();
    let passed = sh::follow(soak, |line| last = line.to_owned())?;
    report.note(NAME, passed, &format!("seed {seed}, {seconds} s: {last}"));
    Ok(())
}
