//! `cargo xtask sanitize`: tests of the interchange and of threads under the compiler's sanitizers.
//!
//! - **Address and leak sanitizer**: the tests of `ultramarine-dlpack`, the round trips through C
//!   and C++, and the core's interchange tests. The runtime comes with the compiler, and the
//!   standard library need not be rebuilt: its calls of `malloc` are seen like all others.
//! - **Thread sanitizer**: the tests of `ultramarine-dlpack` that have threads, the runtime's, and the core's, with its
//!   pool, streams, mock devices, exports and files. It needs a standard library that is built with it: in one that is not
//!   are fences it cannot see, and the last of any `Arc`s would be an alarm. So it runs where the library's sources are
//!   installed, which rustup is asked for, or else with Debian sid's compiler, which comes into `target/sid` where that is
//!   possible (`sid.rs`); elsewhere it reports that it did not run.
//!
//! `cargo xtask test` has the first without the core, which is built anew for it.
//!
//! Each run begins with a program that does what the sanitizer must find, so that one
//! which sleeps is noticed.

use super::sid;
use crate::sh;
use crate::test::Outcome;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The tests of the core's interchange, as a filter.
const CORE: &str = "interchange::";

/// Tests of the core with threads of streams, of the pool and of mock devices. Not those of plugins, whose drivers are
/// built without the sanitizer.
const CORE_THREADS: &[&str] = &[
    "devices::",
    "evaluation::",
    "export::",
    "extension::",
    "files::",
    "interchange::",
    "ops::",
    "transforms::",
];

/// Options of the thread sanitizer: the first report ends a test, and forked children may start threads.
const THREAD_OPTIONS: &str = "halt_on_error=1 die_after_fork=0";

/// The name of the address sanitizer's run.
pub const ADDRESS: &str = "sanitizers: address, leak";
/// The name of the thread sanitizer's run.
pub const THREAD: &str = "sanitizers: thread";

/// True if the compiler brings runtimes of sanitizers for this machine.
pub const HERE: bool = cfg!(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(all(target_os = "linux", target_env = "gnu"), target_os = "macos")
));

/// `cargo xtask sanitize [address|thread]`: runs what this machine can; an error if anything was found.
pub fn command(args: &[String]) -> Result<()> {
    match args {
        [] => {
            let (address, thread) = (address(true)?, thread()?);
            let first = address.show(ADDRESS);
            thread.show(THREAD).and(first)
        }
        [one] if one == "address" => address(true)?.show(ADDRESS),
        [one] if one == "thread" => thread()?.show(THREAD),
        _ => bail!("usage: cargo xtask sanitize [address|thread]"),
    }
}

/// Address and leak sanitizer. The core is built anew for it, which takes minutes.
pub fn address(with_core: bool) -> Result<Outcome> {
    sh::say(ADDRESS);
    if !HERE {
        return Ok(Outcome::Missing("no address sanitizer for this machine".to_owned()));
    }
    // Leaks are looked for on Linux.
    let misuses = [("use-after-free", "AddressSanitizer"), ("leak", "LeakSanitizer")];
    for (misuse, finder) in &misuses[..1 + usize::from(cfg!(target_os = "linux"))] {
        found(&Kind::Address, misuse, finder)?;
    }
    let test = ["test", "--no-fail-fast", "-p"];
    let c = [&test[..], &["ultramarine-abi", "--test", "integration", "--", "dlpack::"]].concat();
    // One test at a time: one of them reads how much memory the process has.
    let core =
        ["test", "-p", "ultramarine", "--test", "integration", "--", CORE, "--test-threads=1"];
    let tensors = [&test[..], &["ultramarine-dlpack", "--tests"]].concat();
    let mut commands = vec![&tensors[..], &c];
    if with_core {
        commands.push(&core);
    }
    total(&Kind::Address, &commands)
}

/// Thread sanitizer.
pub fn thread() -> Result<Outcome> {
    sh::say(THREAD);
    if !HERE {
        return Ok(Outcome::Missing("no thread sanitizer for this machine".to_owned()));
    }
    let kind = match has_sources()? {
        true => Kind::Thread,
        false => match sid::install() {
            Ok(()) => Kind::ThreadOnSid,
            Err(why) => {
                let what = format!(
                    "rustup cannot install the standard library's sources (component rust-src), and {why}"
                );
                return Ok(Outcome::Missing(what));
            }
        },
    };
    found(&kind, "race", "ThreadSanitizer")?;
    let test = ["test", "--no-fail-fast", "-p"];
    let threads = ["--test", "integration", "--", "threads::", "ownership::"];
    let tensors = [&test[..], &["ultramarine-dlpack"], &threads].concat();
    let runtime = [&test[..], &["ultramarine-runtime", "--lib"]].concat();
    let units = [&test[..], &["ultramarine", "--lib"]].concat();
    let integration = ["ultramarine", "--test", "integration", "--", "--test-threads=2"];
    let core = [&test[..], &integration, CORE_THREADS].concat();
    total(&kind, &[&tensors, &runtime, &units, &core])
}

/// Returns true where the compiler's standard library can be built; asks rustup for its sources where they are missing.
fn has_sources() -> Result<bool> {
    let sysroot = sh::read(sh::cmd("rustc", &["--print", "sysroot"]))?;
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    if !sources.exists() && sh::read(sh::cmd("rustup", &["--version"])).is_ok() {
        // Success is seen by the sources.
        let _ = sh::run(sh::cmd("rustup", &["component", "add", "rust-src"]));
    }
    Ok(sources.exists())
}

enum Kind {
    Address,
    Thread,
    /// With Debian sid's compiler.
    ThreadOnSid,
}

impl Kind {
    /// `cargo` such that what it builds has the sanitizer in it. With a target that is named, build
    /// scripts and macros are built without.
    fn cargo(&self, args: &[&str]) -> Result<Command> {
        let (flag, folder) = match self {
            Kind::Address => ("-Zsanitizer=address", "target/sanitize/address"),
            Kind::Thread => ("-Zsanitizer=thread", "target/sanitize/thread"),
            Kind::ThreadOnSid => {
                let flags = "-Zsanitizer=thread -Zexternal-clangrt -Clinker=clang -Clink-arg=-fsanitize=thread";
                let environment = format!(
                    "RUSTC_BOOTSTRAP=1 RUSTFLAGS='{flags}' TSAN_OPTIONS='{THREAD_OPTIONS}'"
                );
                let (command, rest) = (args[0], args[1..].join(" "));
                let build = format!("--quiet -Zbuild-std --target {}", sh::host()?);
                return sid::cargo(&format!("{command} {build} {rest}"), &environment);
            }
        };
        // The command itself, then what the program is told after `--` at last.
        let mut cargo = sh::cargo(&args[..1]);
        cargo.args(["--quiet", "--target", &sh::host()?, "--target-dir", folder]);
        if let Kind::Thread = self {
            cargo.arg("-Zbuild-std");
        }
        cargo.args(&args[1..]);
        // The standard compiler takes unstable flags so; it is the same as nightly's.
        cargo.env("RUSTC_BOOTSTRAP", "1").env("CARGO_ENCODED_RUSTFLAGS", flag);
        // Freed memory is kept from use for a while: little of it, as a test looks at how much there is.
        cargo.env("ASAN_OPTIONS", "quarantine_size_mb=1").env("TSAN_OPTIONS", THREAD_OPTIONS);
        Ok(cargo)
    }
}

/// Runs the program that does wrong on purpose: an error unless the sanitizer finds it.
fn found(kind: &Kind, misuse: &str, finder: &str) -> Result<()> {
    let args = ["run", "-p", "ultramarine-dlpack", "--example", "wrong_on_purpose"];
    let mut cargo = kind.cargo(&args)?;
    let output = cargo.args(["--", misuse]).output().context("cannot run cargo")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !printed.contains(&format!("{finder}: ")) {
        bail!("{finder} does not find a {misuse} that was made on purpose:\n{printed}");
    }
    sh::print(&format!("{finder} finds a {misuse} that was made on purpose"));
    Ok(())
}

/// Runs tests, and counts them.
fn total(kind: &Kind, commands: &[&[&str]]) -> Result<Outcome> {
    let (mut right, mut passed, mut failed) = (true, 0, 0);
    for args in commands {
        right &= sh::follow(kind.cargo(args)?, |line| {
            if let Some(result) = line.strip_prefix("test result:") {
                passed += sh::count_before(result, "passed");
                failed += sh::count_before(result, "failed");
            }
        })?;
    }
    // A sanitizer's report ends the process, and its tests have no result.
    let totals = format!("{passed} passed, {failed} failed");
    Ok(if right && passed > 0 {
        Outcome::Right(format!("{totals}, nothing found"))
    } else {
        Outcome::Wrong(format!("{totals}, see the reports above"))
    })
}
