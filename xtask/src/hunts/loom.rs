//! `cargo xtask loom`: explores the protocols between threads under the model checker loom: the
//! pool, the claims of values, and the counting word of buffers. They are compiled from the same
//! sources as in programs, with `--cfg ultramarine_loom`.

use crate::sh;
use crate::test::Outcome;
use anyhow::{Result, bail};

/// `cargo xtask loom [--full]`.
pub fn command(args: &[String]) -> Result<()> {
    match args {
        [] => check(false)?.show(NAME),
        [full] if full == "--full" => check(true)?.show(NAME),
        _ => bail!("usage: cargo xtask loom [--full]"),
    }
}

/// Name of the step.
pub const NAME: &str = "loom";

/// Explores the models. If `full`, with more preemptions, and for up to ten minutes each.
pub fn check(full: bool) -> Result<Outcome> {
    sh::say("exploring the protocols between threads with loom");
    let mut cargo = sh::cargo(&["test", "--quiet", "--target-dir", "target/loom"]);
    cargo.args(["-p", "ultramarine-runtime", "--lib", "model::"]);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}ultramarine_loom");
    if full {
        cargo.env("LOOM_MAX_PREEMPTIONS", "4").env("LOOM_MAX_DURATION", "600");
    }
    let (mut passed, mut failed) = (0, 0);
    let right = sh::follow(cargo, |line| {
        if let Some(result) = line.strip_prefix("test result:") {
            passed += sh::count_before(result, "passed");
            failed += sh::count_before(result, "failed");
        }
    })?;
    let totals = format!("{passed} models passed, {failed} failed");
    Ok(if right && passed > 0 { Outcome::Right(totals) } else { Outcome::Wrong(totals) })
}
