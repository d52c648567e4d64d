//! Tells the crate for what and by what it is compiled, which Rust tells build scripts only.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=ULTRAMARINE_ABI_TARGET={target}");

    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.ok().and_then(|o| String::from_utf8(o.stdout).ok()).unwrap_or_default();
    // "rustc 1.90.0 (hash date)": what is in parentheses does not fit everywhere.
    let version = version.split(" (").next().unwrap_or_default().trim();
    let version = if version.is_empty() { "rustc" } else { version };
    println!("cargo::rustc-env=ULTRAMARINE_ABI_COMPILER={version}");

    // Set by compilers that have -Zsanitizer; the flags are the same for the whole graph.
    let cfg = env::var("CARGO_CFG_SANITIZE").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut bits = 0;
    for (name, bit) in [("address", 1), ("thread", 2), ("memory", 4), ("hwaddress", 8)] {
        let in_flags = flags.split('\x1f').any(|f| f.ends_with(&format!("sanitizer={name}")));
        if in_flags || cfg.split(',').any(|s| s == name) {
            bits |= bit;
        }
    }
    println!("cargo::rustc-env=ULTRAMARINE_ABI_SANITIZERS={bits}");
}
