//! Trying candidates in child processes.

use super::backends::{self, LoadOptions, Outcome};
use super::bench::{Bench, load_all, reported, why};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ultramarine_test_support::own_process;

const CACHES: &str = env!("CARGO_TARGET_TMPDIR");

/// The file in which verdicts are remembered, below a case's own cache directory.
fn memory(cache: &str) -> PathBuf {
    Path::new(cache).join("ultramarine/probes.json")
}

/// Nothing is remembered.
fn forget(cache: &str) {
    let _ = std::fs::remove_dir_all(cache);
}

fn probing() -> LoadOptions<'static> {
    LoadOptions { probe: Some(true), ..Default::default() }
}

/// A plugin that crashes or hangs is left out alone, and the report says at which stage it did.
#[test]
fn crashes_and_hangs() {
    own_process!("XDG_CACHE_HOME" = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache-crashes"));
    forget(&format!("{CACHES}/cache-crashes"));
    let bench = Bench::new("probe-crashes");
    bench.plugin("all", "good", &["-DON_INIT=puts(\"unasked words\")", "-include", "stdio.h"]);
    let trap = bench.plugin("all", "trap", &["-DON_LOAD=__builtin_trap()"]);
    let null = bench.plugin("all", "null", &["-DON_SCORE=*(volatile int *)0 = 1"]);
    let abort = bench.plugin("all", "abort", &["-DON_INIT=abort()"]);
    let exit = bench.plugin("all", "exit", &["-DON_INIT=exit(7)"]);
    let hang = bench.plugin("all", "hang", &["-DON_INIT=for (;;) sched_yield()"]);
    let zero = bench.plugin(
        "all",
        "zero",
        &["-DON_SCORE=score->score = 0; strcpy(score->reason, \"no such chip\")"],
    );
    bench.search(&["all"]);
    backends::set_probe_command(this_program());
    backends::set_probe_timeout(Duration::from_secs(3));
    assert_eq!(load_all(probing()), ["good"]);
    for (path, stage, how) in [
        (&trap, "stage open", "signal 4 (SIGILL)"),
        (&null, "stage score", "signal 11 (SIGSEGV)"),
        (&abort, "stage init", "signal 6 (SIGABRT)"),
        (&exit, "stage init", "exit status 7"),
    ] {
        let (at, code, text) = why(path);
        assert_eq!((at.as_str(), code.as_str()), ("probe", "probe_crashed"));
        assert!(text.contains(stage), "{text}");
        assert!(text.contains(how) || cfg!(not(target_arch = "x86_64")), "{text}");
    }
    assert_eq!(why(&hang).1, "probe_hung");
    assert!(why(&hang).2.contains("3 s") && why(&hang).2.contains("stage init"));
    // What is merely unusable is reported as ever.
    assert_eq!((why(&zero).0, why(&zero).1), ("score".into(), "score_zero".into()));
    assert!(why(&zero).2.contains("no such chip"));
}

/// Verdicts are remembered by what is in the file; a changed file is tried again.
#[test]
fn remembered() {
    own_process!(
        "XDG_CACHE_HOME" = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache-remembered"),
        "ULTRAMARINE_BACKEND_PROBE" = "1"
    );
    let cache = format!("{CACHES}/cache-remembered");
    forget(&cache);
    let bench = Bench::new("probe-remembered");
    backends::set_probe_command(this_program());
    let file = bench.plugin("all", "fickle", &["-DON_INIT=abort()"]);
    assert!(backends::load(&file).is_err());
    assert!(!why(&file).2.contains("remembered"));
    // The next time no child is needed: this command could not answer.
    backends::set_probe_command(Some(vec!["/bin/false".into()]));
    assert!(backends::load(&file).is_err());
    assert!(why(&file).2.contains("SIGABRT") && why(&file).2.contains("remembered"));
    assert!(reported(&file).reason.is_some_and(|r| r.remedy.contains("probes.json")));
    backends::set_probe_command(this_program());
    bench.plugin("all", "fickle", &[]);
    // Garbage in the memory is as good as nothing.
    for garbage in ["", "{", "[1]", "{\"version\": 1}", "{\"version\": 1, \"files\": 3}", "\u{0}"] {
        std::fs::write(memory(&cache), garbage).expect("our own file");
        assert!(backends::load(bench.plugin("all", "bad", &["-DON_INIT=abort()"])).is_err());
    }
    assert_eq!(backends::load(&file).expect("it is a new one").name, "fickle");
    let reported = std::fs::read_to_string(memory(&cache)).expect("it is written");
    assert!(reported.contains("\"good\"") && reported.contains("probe_crashed"), "{reported}");
}

/// Without a program that probes, nothing that should be probed is opened.
#[test]
fn without_a_program() {
    own_process!(
        "XDG_CACHE_HOME" = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache-none"),
        "ULTRAMARINE_PROBE" = "/nowhere/at/all"
    );
    forget(&format!("{CACHES}/cache-none"));
    let bench = Bench::new("probe-none");
    let file = bench.plugin("all", "unopened", &["-DON_LOAD=__builtin_trap()"]);
    bench.search(&["all"]);
    assert!(load_all(probing()).is_empty());
    assert_eq!(why(&file).1, "probe_failed");
    assert!(why(&file).2.contains("/nowhere/at/all"));
    backends::set_probe_command(Some(vec![
        "/bin/echo".into(),
        "ultramarine-probe: nonsense".into(),
    ]));
    assert!(load_all(probing()).is_empty());
    assert_eq!((why(&file).1, reported(&file).outcome), ("probe_failed".into(), Outcome::Rejected));
}

/// Not a test: the program that tries files is this one, with this test and the file's path as arguments.
#[test]
#[ignore = "run by other tests"]
fn child() {
    let path = std::env::args_os().next_back().expect("a path");
    backends::probe_here(path.as_ref());
}

fn this_program() -> Option<Vec<OsString>> {
    let program = std::env::current_exe().expect("this program");
    let arguments = ["loader::probe::child", "--ignored", "--exact", "--nocapture"];
    Some(std::iter::once(program.into()).chain(arguments.map(OsString::from)).collect())
}
