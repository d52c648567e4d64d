//! Debian sid in a directory, `target/sid`, installed by `debootstrap`. The sources of its
//! compiler's standard library are available. They are needed because the thread sanitizer requires
//! that all code is built with it.

use crate::{drivers, sh};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Clang has the sanitizer's runtime, which Debian's Rust compiler lacks. LLVM resolves the names
/// of functions in reports.
const PACKAGES: &str =
    "--include=rustc,cargo,rust-src,gcc,libc6-dev,clang,libclang-rt-dev,llvm,ca-certificates";

fn folder() -> PathBuf {
    sh::root().join("target/sid")
}

/// Installs sid if it is not installed yet. The error is the reason why it cannot be installed.
pub fn install() -> Result<(), String> {
    if folder().join("installed").exists() {
        return Ok(());
    }
    let installer = [("debootstrap", "/usr/sbin/debootstrap")];
    if !cfg!(target_os = "linux") || !drivers::install("the thread sanitizer", &installer) {
        return Err("there is no debootstrap, which needs Debian and root".to_owned());
    }
    sh::say("installing Debian sid into target/sid");
    // An interrupted installation cannot be continued.
    let _ = std::fs::remove_dir_all(folder());
    let mut command = sh::cmd("debootstrap", &["--variant=minbase", PACKAGES, "sid"]);
    command.arg(folder());
    sh::run(command).map_err(|error| format!("Debian sid cannot be installed: {error:#}"))?;
    std::fs::write(folder().join("installed"), "").map_err(|error| error.to_string())
}

/// Returns `cargo` of this installation, with arguments, on this repository. The directories are
/// mounted only for this command.
pub fn cargo(args: &str, environment: &str) -> Result<Command> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registry = home.context("HOME is not set")?.join("registry");
    let script = format!(
        "set -e; mkdir -p \"$S/work\" \"$S/cargo/registry\" \"$S/target\"
        mount --bind . \"$S/work\"; mount --bind \"$R\" \"$S/cargo/registry\"
        mount -t proc proc \"$S/proc\"; mount --bind /dev \"$S/dev\"
        cp /etc/resolv.conf /etc/hosts \"$S/etc\"
        cp /etc/ssl/certs/ca-certificates.crt \"$S/etc/ssl/certs\"
        exec chroot \"$S\" env -i -C /work PATH=/usr/bin:/bin HOME=/root CARGO_HOME=/cargo \
        CARGO_TARGET_DIR=/target {environment} cargo {args}"
    );
    let mut command = sh::cmd("unshare", &["--mount", "sh", "-c", &script]);
    command.current_dir(sh::root()).env("S", folder()).env("R", registry);
    Ok(command)
}
