//! AArch64 on an x86-64 machine: the workspace is type-checked, and the CPU crate's tests run under
//! QEMU. Times under QEMU mean nothing.

use crate::drivers;
use crate::profile::Profile;
use crate::sh;
use crate::test::Outcome;
use anyhow::Result;

/// The name of the step.
pub const NAME: &str = "AArch64, emulated";

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const RUNNER: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Debian's packages, each with a file that it installs.
const PACKAGES: [(&str, &str); 3] = [
    ("gcc-aarch64-linux-gnu", "/usr/bin/aarch64-linux-gnu-gcc"),
    ("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/lib/crt1.o"),
    ("qemu-user", "/usr/bin/qemu-aarch64"),
];

/// Installs missing packages, then checks and tests.
pub fn tests() -> Result<Outcome> {
    sh::say(NAME);
    let missing = |what: &str| Ok(Outcome::Missing(what.to_owned()));
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return missing("made for x86-64 with Linux");
    }
    if !drivers::install("AArch64's emulation", &PACKAGES) {
        return missing("the compiler for C, its library or QEMU is not installed");
    }
    if sh::run(sh::cmd("rustup", &["target", "add", TARGET])).is_err() {
        return missing("Rust's library for the target is not installed");
    }
    let target = ["--target", TARGET];
    sh::run(Profile::Checked.workspace("check", &target))?;
    let mut tests =
        sh::cargo(&["test", "--no-fail-fast", "-p", "ultramarine-cpu", "--test", "units"]);
    tests.arg(Profile::Checked.argument()).args(target);
    // The references of these tests are sums in float64, which take half an hour in the emulator.
    tests.args(["--", "--skip", "linalg::blocked"]);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", RUNNER);
    let (passed, totals) = sh::test_totals(tests)?;
    Ok(if passed { Outcome::Right(totals) } else { Outcome::Wrong(totals) })
}
