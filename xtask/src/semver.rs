//! `cargo xtask semver`: finds changes of the public crates that break programs which use them, by
//! cargo-semver-checks.

use crate::sh;
use crate::test::Outcome;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// The crates on which Rust programs and extensions depend.
const CRATES: &[&str] = &["ultramarine", "ultramarine-nn", "ultramarine-extension"];

const TOOL: &str = "cargo-semver-checks";
const USAGE: &str = "usage: cargo xtask semver [--baseline REV] [--install]";

/// `cargo xtask semver [--baseline REV] [--install]`: compares with a revision, by default the last
/// release. `--install` installs the tool if it is missing.
pub fn command(args: &[String]) -> Result<()> {
    let (mut baseline, mut install) = (None, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--install" => install = true,
            "--baseline" => match args.next() {
                Some(revision) => baseline = Some(revision.clone()),
                None => bail!("--baseline wants a revision\n\n{USAGE}"),
            },
            _ => bail!("{USAGE}"),
        }
    }
    if install && tool().is_none() {
        let folder = folder().display().to_string();
        sh::run(sh::cargo(&["install", TOOL, "--locked", "--root", &folder]))?;
    }
    let outcome = compare(baseline)?;
    match outcome {
        Outcome::Missing(thing) => bail!("{thing}"),
        other => other.show("semver"),
    }
}

/// Compares with the last release, as a part of `lint --full`. It is skipped if something is
/// missing.
pub fn lint() -> Result<()> {
    compare(None)?.show("semver")
}

fn compare(baseline: Option<String>) -> Result<Outcome> {
    let missing = |thing: &str| Ok(Outcome::Missing(thing.to_owned()));
    let Some(tool) = tool() else {
        return missing("cargo-semver-checks, which `cargo xtask semver --install` installs");
    };
    let Some(baseline) = baseline.or_else(released) else {
        return missing("a release to compare with (a tag v*), or --baseline REV");
    };
    sh::say(&format!("comparing with {baseline}"));
    let mut check = sh::cmd(tool, &["semver-checks", "--baseline-rev", &baseline]);
    for name in CRATES {
        check.args(["--package", name]);
    }
    sh::run(check)?;
    Ok(Outcome::Right(format!("no breaking changes since {baseline}")))
}

/// Where `--install` puts the tool.
fn folder() -> PathBuf {
    sh::root().join("target/tools")
}

/// The tool, in `target/tools` or on the path.
fn tool() -> Option<PathBuf> {
    let own = folder().join("bin").join(TOOL);
    let works = |tool: &PathBuf| sh::read(sh::cmd(tool, &["semver-checks", "--version"])).is_ok();
    [own, TOOL.into()].into_iter().find(works)
}

/// The tag of the last release.
fn released() -> Option<String> {
    let tag =
        sh::read(sh::cmd("git", &["describe", "--tags", "--abbrev=0", "--match", "v*"])).ok()?;
    Some(tag.trim().to_owned())
}
