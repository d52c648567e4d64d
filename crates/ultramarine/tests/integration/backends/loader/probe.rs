//! The program `ultramarine-probe`, which tries candidates.

use super::bench::{Bench, load_all};
use ultramarine::backends::{self, LoadOptions};
use ultramarine_test_support::own_process;

/// It is found beside this program, and by the caller's command.
#[test]
fn is_found() {
    const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache-own");
    own_process!("XDG_CACHE_HOME" = CACHE);
    let _ = std::fs::remove_dir_all(CACHE);
    let bench = Bench::new("probe-own");
    let probing = || LoadOptions { probe: Some(true), ..Default::default() };
    bench.plugin("all", "good", &[]);
    bench.search(&["all"]);
    assert_eq!(load_all(probing()), ["good"]);
    bench.plugin("all", "better", &[]);
    let program = env!("CARGO_BIN_EXE_ultramarine-probe");
    backends::set_probe_command(Some(vec!["/usr/bin/env".into(), program.into()]));
    assert_eq!(load_all(probing()), ["better"]);
    let out = std::process::Command::new(program).output().expect("it runs");
    assert_eq!(out.status.code(), Some(2), "it wants a file");
}
