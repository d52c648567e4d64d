//! Type-checks the whole workspace for systems on which it does not run here.

use crate::profile::Profile;
use crate::sh;
use anyhow::{Result, bail};

/// macOS, whose GPUs have Metal, and Windows with DirectX 12.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Checks each target for which rustup has Rust's library, and names the targets for which it has
/// none.
pub fn check() -> Result<()> {
    let mut wrong = Vec::new();
    for target in TARGETS {
        if sh::run(sh::cmd("rustup", &["target", "add", target])).is_err() {
            println!("skipped: {target}, whose Rust library is not installed");
            continue;
        }
        let mut check = Profile::Checked.workspace("check", &["--quiet", "--target", target]);
        // Checks do not link, so C code of build scripts may be missing.
        let of_target = target.replace('-', "_");
        for tool in ["CC", "CXX", "AR"] {
            check.env(format!("{tool}_{of_target}"), "true");
        }
        if sh::run(check).is_err() {
            wrong.push(target);
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => bail!("it does not compile for {}", wrong.join(", ")),
    }
}
