//! `cargo xtask sanitize`: runs tests of the interchange and of threads under the compiler's
//! sanitizers.
//!
//! - **Address and leak sanitizer**: the tests of `ultramarine-dlpack`, the round trips through C
//!   and C++, and the core's interchange tests. The runtime comes with the compiler. The standard
//!   library need not be rebuilt, because its calls of `malloc` are intercepted like all others.
//! - **Thread sanitizer**: the tests with threads of `ultramarine-dlpack`, the runtime and the
//!   core, with its pool, streams, mock devices, exports and files. The standard library has to be
//!   built with the sanitizer. Otherwise the sanitizer does not see the library's fences, and every
//!   drop of the last reference to an `Arc` would be a false alarm. So these tests need the
//!   library's sources. They use rustup's, or else Debian sid's compiler, which is installed into
//!   `target/sid` if possible (`sid.rs`). Otherwise it reports that it did not run.
//!
//! `cargo xtask test` runs the address and leak sanitizer without the core, which would have to be
//! built again.
//!
//! Each run begins with a program that has a fault which the sanitizer must find. This detects a
//! sanitizer that does not work.

use super::sid;
use crate::sh;
use crate::test::Outcome;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The tests of the core's interchange, as a filter.
const CORE: &str = "interchange::";

/// Tests of the core with threads of streams, of the pool and of mock devices. Tests of plugins are
/// left out, because drivers are built without the sanitizer.
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

/// Options of the thread sanitizer: it stops at the first report, and forked children may start
/// threads.
const THREAD_OPTIONS: &str = "halt_on_error=1 die_after_fork=0";

/// The name of the address sanitizer's run.
pub const ADDRESS: &str = "sanitizers: address, leak";
/// The name of the thread sanitizer's run.
pub const THREAD: &str = "sanitizers: thread";

/// True if the compiler has runtimes of sanitizers for this machine.
pub const HERE: bool = cfg!(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(all(target_os = "linux", target_env = "gnu"), target_os = "macos")
));

/// `cargo xtask sanitize [address|thread]`: runs the sanitizers that this machine supports. Returns
/// an error if a fault was found.
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

/// Runs the address and leak sanitizer. The core is built again for it, which takes minutes.
pub fn address(with_core: bool) -> Result<Outcome> {
    sh::say(ADDRESS);
    if !HERE {
        return Ok(Outcome::Missing("no address sanitizer for this machine".to_owned()));
    }
    // Leaks are only detected on Linux.
    let misuses = [("use-after-free", "AddressSanitizer"), ("leak", "LeakSanitizer")];
    for (misuse, finder) in &misuses[..1 + usize::from(cfg!(target_os = "linux"))] {
        found(&Kind::Address, misuse, finder)?;
    }
    let test = ["test", "--no-fail-fast", "-p"];
    let c = [&test[..], &["ultramarine-abi", "--test", "integration", "--", "dlpack::"]].concat();
    // Run one test at a time, because one of them reads the memory of the process.
    let core =
        ["test", "-p", "ultramarine", "--test", "integration", "--", CORE, "--test-threads=1"];
    let tensors = [&test[..], &["ultramarine-dlpack", "--tests"]].concat();
    let mut commands = vec![&tensors[..], &c];
    if with_core {
        commands.push(&core);
    }
    total(&Kind::Address, &commands)
}

/// Runs the thread sanitizer.
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

/// Returns true if the compiler's standard library can be built. If its sources are missing, asks
/// rustup for them.
fn has_sources() -> Result<bool> {
    let sysroot = sh::read(sh::cmd("rustc", &["--print", "sysroot"]))?;
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    if !sources.exists() && sh::read(sh::cmd("rustup", &["--version"])).is_ok() {
        // Ignore the error: the check below shows if the sources are there.
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
    /// Returns `cargo` with a build that uses the sanitizer. A target is named explicitly, so that
    /// build scripts and macros are built without the sanitizer.
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
        // The command comes first. The program's own arguments, after `--`, come last.
        let mut cargo = sh::cargo(&args[..1]);
        cargo.args(["--quiet", "--target", &sh::host()?, "--target-dir", folder]);
        if let Kind::Thread = self {
            cargo.arg("-Zbuild-std");
        }
        cargo.args(&args[1..]);
        // This makes the stable compiler, which is the same as nightly's, accept unstable flags.
        cargo.env("RUSTC_BOOTSTRAP", "1").env("CARGO_ENCODED_RUSTFLAGS", flag);
        // Keep little freed memory in quarantine, because a test checks the memory of the process.
        cargo.env("ASAN_OPTIONS", "quarantine_size_mb=1").env("TSAN_OPTIONS", THREAD_OPTIONS);
        Ok(cargo)
    }
}

/// Runs the program with a deliberate fault. Returns an error unless the sanitizer finds it.
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
    // A sanitizer's report ends the process, so the tests of this process have no result.
    let totals = format!("{passed} passed, {failed} failed");
    Ok(if right && passed > 0 {
        Outcome::Right(format!("{totals}, nothing found"))
    } else {
        Outcome::Wrong(format!("{totals}, see the reports above"))
    })
}
