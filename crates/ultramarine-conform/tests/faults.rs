//! The kit finds faults: plugins that are wrong in one way each, built with the C compiler,
//! and the report that each must get.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of the test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conform").join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Compiles the plugin with a fault; an empty name: without any. `WITH_INTERFACES+` may stand
/// before the name.
fn plugin(fault: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let to =
        directory(if fault.is_empty() { "none" } else { fault }).join("libultramarine-minimal.so");
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-std=gnu11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-I"]);
    cc.arg(here.join("../ultramarine-abi/include"));
    for name in fault.split('+').filter(|name| !name.is_empty()) {
        let prefix = if name == "WITH_INTERFACES" { "" } else { "FAULT_" };
        cc.arg(format!("-D{prefix}{name}"));
    }
    cc.arg(here.join("tests/plugins/faulty.c")).args(["-lm", "-o"]).arg(&to);
    let done = cc.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    to
}

fn kit(args: &[&str], plugin: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ultramarine-conform")).args(args).arg(plugin).output().unwrap()
}

/// Runs groups of the kit: its exit status, and what it found.
fn run_kit(plugin: &Path, args: &[&str]) -> (Option<i32>, Value) {
    let json = plugin.with_extension("json");
    let output = kit(&[&["--json", json.to_str().unwrap()], args].concat(), plugin);
    let found = std::fs::read_to_string(&json)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), serde_json::from_str(&found).unwrap())
}

fn checks<'a>(found: &'a Value, result: &str) -> Vec<(&'a str, &'a str)> {
    found["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["result"] == result)
        .map(|c| (c["check"].as_str().unwrap(), c["text"].as_str().unwrap()))
        .collect()
}

/// The fault makes this check fail, with these words, in the group that is run.
fn seen(fault: &str, group: &str, check: &str, words: &str) -> Value {
    seen_in(&["--group", group], fault, check, words)
}

/// As [`seen`] with interfaces, running this check alone: the whole group of interfaces takes long.
fn seen_alone(fault: &str, group: &str, check: &str, words: &str) {
    let args = ["--group", group, "--check", check];
    seen_in(&args, &format!("WITH_INTERFACES+{fault}"), check, words);
}

/// As [`seen`], in what the arguments select.
fn seen_in(args: &[&str], fault: &str, check: &str, words: &str) -> Value {
    let (status, found) = run_kit(&plugin(fault), &[args, &["--time-limit", "60"]].concat());
    let failed = checks(&found, "fail");
    assert_eq!(status, Some(1), "{fault}: {failed:?}");
    assert!(
        failed.iter().any(|(name, text)| *name == check && text.contains(words)),
        "{fault}: {failed:?}"
    );
    found
}

#[test]
fn without_a_fault_there_is_none() {
    let plugin = plugin("");
    let (status, found) = run_kit(&plugin, &[]);
    assert_eq!(checks(&found, "fail"), []);
    assert_eq!((status, found["grade"].as_str()), (Some(0), Some("basic")));
    // Everything was run that could be.
    let passed = checks(&found, "pass");
    for name in [
        "file/note agrees with abi_info",
        "abi/init twice",
        "errors/unknown dtypes",
        "memory/balance of buffers",
        "streams/a wait before the record",
        "streams/lists run in order",
        "streams/lists end at the command that fails",
        "threads/one plan on many streams",
        "unary/exp/float32",
        "reduce/sum/float32",
        "matmul/float32",
    ] {
        assert!(passed.iter().any(|p| p.0 == name), "{name}: {passed:?}");
    }
    // It computes with float32 in some families only.
    let output = kit(&["--grade", "complete"], &plugin);
    assert_eq!(output.status.code(), Some(4));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("grade: basic, and complete was demanded"), "{text}");
    assert!(text.contains("\n  arg_reduce of float32: argmin argmax\n"), "{text}");
}

#[test]
fn faults_of_the_file() {
    seen("NO_NOTE", "file", "file/note", "no note");
    seen("EXTRA_SYMBOL", "file", "file/exported symbols", "fast_path");
    let (_, found) = run_kit(&plugin("NOTE_DISAGREES"), &["--group", "file", "--group", "abi"]);
    let failed = checks(&found, "fail");
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].0, "file/note agrees with abi_info");

    let misnamed = directory("misnamed").join("libultramarine-other.so");
    std::fs::copy(plugin(""), &misnamed).unwrap();
    let (status, found) = run_kit(&misnamed, &["--group", "file"]);
    assert_eq!(status, Some(1));
    let failed = checks(&found, "fail");
    assert_eq!(failed[0].0, "file/file name", "{failed:?}");
    assert!(failed[0].1.contains("libultramarine-minimal.so"), "{failed:?}");

    let text = directory("text").join("libultramarine-minimal.so");
    std::fs::write(&text, "no library").unwrap();
    let (status, found) = run_kit(&text, &[]);
    assert_eq!(status, Some(1));
    assert_eq!(checks(&found, "fail")[0].0, "file/readable");
}

#[test]
fn faults_of_layout() {
    let name = "abi/device info with other sizes";
    seen("WRITES_WHOLE_STRUCT", "abi", name, "wrote behind");
    seen("LONG_TABLE", "abi", "abi/init with a short table", "wrote behind");
    seen("LACKS_EVENTS", "abi", "abi/functions", "event_query");
    seen("SCORE_STARTS_THREAD", "abi", "abi/score starts no threads", "started 1 threads");
}

#[test]
fn faults_of_errors() {
    let name = "errors/device_info of a wrong index";
    seen("SILENT_ERROR", "errors", name, "without");
    seen("FOREIGN_ERROR", "errors", name, "not made by error_new");
    seen("IGNORES_TAIL", "errors", "errors/attributes with an unknown tail", "OK");
    seen("ERROR_FOR_UNSUPPORTED", "errors", "errors/unknown op", "expected UNSUPPORTED");
    let check = "errors/impossible ranks";
    let words =
        "prepare of unary (revision 1) with 1 input of rank 33, float32 to float32 returned OK";
    seen("ANY_RANK", "errors", check, words);
    seen("ANY_RANK", "errors", check, "um_check_arity");
    let words = "compare `revision` with 1";
    seen("ANY_REVISION", "errors", "errors/unknown revision", words);
}

#[test]
fn faults_of_memory() {
    seen("LEAK", "memory", "memory/balance of buffers", "MiB");
    seen("LEAKED_PLANS", "memory", "memory/balance of plans", "host's memory");
    seen("EXHAUSTION", "memory", "memory/exhaustion", "expected OUT_OF_MEMORY");
    seen("DOUBLE_FREE", "memory", "memory/sizes", "signal 6");
}

#[test]
fn faults_of_streams() {
    let name = "streams/a wait before the record";
    seen("IGNORES_WAITS", "streams", name, "ran before the event");
    let name = "streams/lists run in order";
    seen("FIRST_OF_LIST", "streams", name, "after 64 commands in one list");
    seen("NULL_STREAM", "streams", name, "stream_create returned OK and a handle that is NULL");
    seen("LIST_BACKWARDS", "streams", name, "after 64 commands in one list");
    let name = "streams/lists end at the command that fails";
    seen("MUTE_LIST", "streams", name, "the error does not say so");
    seen("WRONG_COMMAND", "streams", name, "the error says 7");
    seen("GOES_ON", "streams", name, "after command 0 of 3 failed");
    let args = ["--group", "streams", "--time-limit", "3"];
    let (status, found) = run_kit(&plugin("HANG"), &args);
    let failed = checks(&found, "fail");
    assert_eq!(status, Some(1));
    assert!(failed.iter().any(|f| f.1.contains("no end within 3 s")), "{failed:?}");
}

/// A claim of the device that no operation bears out, and the list of what is missing beside the failure.
#[test]
fn faults_of_claims() {
    let plugin = plugin("CLAIMS_FLOAT64");
    let (status, found) = run_kit(&plugin, &[]);
    let failed = checks(&found, "fail");
    assert_eq!((status, failed.len()), (Some(1), 1), "{failed:?}");
    assert_eq!(failed[0].0, "abi/arithmetic of float64");
    let missing = found["missing"].as_array().unwrap();
    assert!(missing.iter().any(|m| m == "copy to float64 float32"), "{missing:?}");
    // It says of float32 that sums are made in something wider.
    seen(
        "PLAIN_SUM",
        "abi",
        "abi/accumulation of float32",
        "add up in a wider type, or take the bit out",
    );
}

#[test]
fn a_selection_of_nothing_is_an_error() {
    let plugin = plugin("");
    for args in [&["--group", "errors"][..], &["--bench"]] {
        let output = kit(&[args, &["--check", "unknwon"]].concat(), &plugin);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("--check \"unknwon\" is in the name of none of"), "{text}");
    }
    let output = kit(&["--group", "errors", "--check", "errors/unknown ops"], &plugin);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("near it: errors/unknown op;"), "{text}");
}

/// The line `again:` is a command of the user's, which repeats the failure.
#[test]
fn a_failure_can_be_repeated() {
    let plugin = plugin("ANY_RANK");
    let output = kit(&["--group", "errors"], &plugin);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let again = text.lines().find_map(|line| line.strip_prefix("  again: ")).unwrap();
    let repeated = Command::new("sh").arg("-c").arg(again).output().unwrap();
    let text = String::from_utf8_lossy(&repeated.stdout).into_owned();
    assert_eq!(repeated.status.code(), Some(1), "{again}: {text}");
    assert_eq!(text.matches("FAILED errors/impossible ranks").count(), 1, "{text}");
}

/// A child that works is given its limit in processor time; the verdict then is none.
#[test]
fn what_takes_long_does_not_break_the_contract() {
    let (status, found) = run_kit(&plugin("SPINS"), &["--group", "streams", "--time-limit", "2"]);
    let (failed, slow) = (checks(&found, "fail"), checks(&found, "slow"));
    assert_eq!((status, failed.as_slice()), (Some(5), &[][..]), "{slow:?}");
    assert!(slow[0].1.contains("--time-limit SECONDS gives each group more"), "{slow:?}");
    assert_eq!(found["contract"], "unfinished");
}

#[test]
fn faults_of_ops() {
    let found = seen("WRONG_RESULT", "ops.binary", "binary/subtract/float32", "expected");
    // Of the dtypes that it computes with, and no other op.
    assert!(checks(&found, "fail").iter().all(|f| f.0.starts_with("binary/subtract/")));
    let call = "signal 11: SIGSEGV, a wild address; last call: prepare, unary of (float32 [";
    let found = seen("CRASH", "ops.unary", "unary/sin/float32", call);
    assert_eq!(checks(&found, "fail").iter().filter(|f| !f.0.starts_with("unary/sin/")).count(), 0);
    assert!(checks(&found, "pass").iter().any(|p| p.0 == "unary/tan/float32"), "goes on after it");
    seen("REFUSES_SIZE", "ops.fill", "fill/float32", "a plan was made");
    seen("COY", "ops.fill", "fill/float32", "NEEDS_CONTIGUOUS");
    seen("SPILLS", "ops.matmul", "matmul/float32", "outside the output");
    seen("NOT_DETERMINISTIC", "ops.reduce", "reduce/sum/float32", "not bitwise identical");
    seen("WRITES_INPUT", "ops.matmul", "matmul/float32", "was written to");
    seen(
        "PLAIN_SUM",
        "ops.reduce",
        "reduce/sum/float32",
        "only long rows are wrong: add up in double",
    );
}

#[test]
fn faults_of_interfaces() {
    let (status, found) = run_kit(&plugin("WITH_INTERFACES"), &["--group", "interfaces"]);
    assert_eq!((status, checks(&found, "fail")), (Some(0), vec![]));
    let passed = checks(&found, "pass");
    for name in [
        "statistics",
        "memory export and import",
        "peer copy between devices",
        "replay",
        "replay, other memory",
        "replay, updates",
        "replay, two recordings",
        "replay, two streams",
        "replay, beside other threads",
        "replay, refusals",
        "replay, another arena",
        "replay, nothing",
        "replay, operations",
        "replay, balance",
        "timing",
        "timing, one clock",
        "timing, asked again",
        "timing, released early",
        "timing, ranges",
        "upload, copies",
        "upload, in flight",
        "upload, given back",
    ] {
        let name = format!("interfaces/{name}");
        assert!(passed.iter().any(|p| p.0 == name), "{name}: {found:#}");
    }
    seen_alone("STATISTICS", "interfaces", "interfaces/statistics", "before");
    seen_alone("STATISTICS", "memory", "memory/balance of buffers", "active bytes grew");
    seen_alone("PEER_OFFSET", "interfaces", "interfaces/peer copy", "not where they should be");
    seen_alone("ANY_INTERFACE", "errors", "errors/unknown interface", "nonsense");
}

#[test]
fn faults_of_timestamps() {
    for (fault, check, words) in [
        ("CLOCK_GOES_BACK", "timing", "which decrease"),
        ("CLOCK_IN_TICKS", "timing", "between which the host counted"),
        ("CLOCK_PER_STREAM", "timing, one clock", "came after another"),
        ("CLOCK_CHANGES", "timing, asked again", "a mark's time was"),
        ("NEVER_READY", "timing", "is not ready although"),
        ("PUSH_ALONE", "timing, ranges", "range_pop is missing"),
    ] {
        seen_alone(fault, "interfaces", &format!("interfaces/{check}"), words);
    }
}

#[test]
fn faults_of_lent_memory() {
    for (fault, check, words) in [
        ("LENDS_LESS", "upload, copies", "lend gave 0 bytes instead of 1"),
        ("COPIES_TO_THE_START", "upload, copies", "are not those of the lent memory"),
        ("COPIES_MORE", "upload, copies", "bytes beside the 1 were written to"),
        ("LENDS_TWICE", "upload, in flight", "the same piece is lent twice"),
        ("LENDS_EARLY", "upload, in flight", "lent again while a copy read it"),
        ("LOSES_PIECES", "upload, given back", "nothing is lent after 4 pieces went back"),
    ] {
        seen_alone(fault, "interfaces", &format!("interfaces/{check}"), words);
    }
}

#[test]
fn faults_of_recordings() {
    for (fault, check, words) in [
        ("RECORDS_AND_RUNS", "replay", "recording ran something"),
        ("BINDS_ONCE", "replay, other memory", "expected"),
        ("IGNORES_SLOT_OFFSETS", "replay, other memory", "expected"),
        ("BINDS_SCALARS_ONCE", "replay", "expected"),
        ("IGNORES_UPDATES", "replay, updates", "expected"),
        ("TAKES_FEW_SLOTS", "replay, refusals", "a slot too few was taken"),
        ("LEAKS_RECORDINGS", "replay, balance", "MiB"),
    ] {
        seen_alone(fault, "interfaces", &format!("interfaces/{check}"), words);
    }
}

#[test]
fn faults_of_foreign_memory() {
    for (fault, check, words) in [
        ("NEVER_RELEASES", "import", "release was called 0 times"),
        ("RELEASES_TWICE", "import", "release was called 2 times"),
        ("RELEASES_EARLY", "import", "release was called while the buffer lived"),
        ("RELEASES_ON_FAILURE", "import refused", "release was called although"),
        ("IMPORTS_NOTHING", "import refused", "was imported"),
        ("IMPORT_COPIES", "import", "after its owner wrote"),
        ("IMPORT_COPIES", "import in commands", "is not written to"),
        ("IMPORT_COPIES", "export and import", "not seen in the buffer"),
        ("IGNORES_OFFSET", "import of a part", "shows other bytes"),
        ("WRITES_READ_ONLY", "import, read only", "was written to"),
        ("EXPORTS_ANY", "export refused", "which it does not declare"),
        ("EXPORTS_LESS", "export", "it reports 256 bytes of 512"),
        ("EXPORTS_ELSEWHERE", "export and import", "not seen in the buffer"),
    ] {
        seen_alone(fault, "interfaces", &format!("interfaces/memory {check}"), words);
    }
}

#[test]
fn a_missing_op_costs_the_grade() {
    let (status, found) = run_kit(&plugin("NO_MATMUL"), &["--grade", "basic"]);
    assert_eq!(checks(&found, "fail"), []);
    assert_eq!((status, found["grade"].as_str()), (Some(4), Some("none")));
    assert_eq!(found["contract"], "kept");
    assert_eq!(found["missing"], serde_json::json!(["matmul float32"]));
}

#[test]
fn one_check_can_be_run_again() {
    let args = ["--group", "ops", "--check", "unary/exp/float32"];
    // A plugin of its own: another test may be building that of the fault alone.
    let (status, found) = run_kit(&plugin("WITH_INTERFACES+IGNORES_TAIL"), &args);
    assert_eq!(status, Some(0));
    let all: Vec<&str> = checks(&found, "pass").iter().map(|c| c.0).collect();
    assert_eq!(all, ["unary/exp/float32"]);
}

#[test]
fn wrong_usage() {
    let path = Path::new("libultramarine-none.so");
    for args in [&["--grade", "best"][..], &["--group", "nonsense"], &["--unknown"]] {
        assert_eq!(kit(args, path).status.code(), Some(2), "{args:?}");
    }
    let none = Command::new(env!("CARGO_BIN_EXE_ultramarine-conform")).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn the_linked_in_backend_is_complete() {
    let json = directory("builtin").join("found.json");
    let mut kit = Command::new(env!("CARGO_BIN_EXE_ultramarine-conform"));
    let output = kit.args(["--builtin", "--grade", "complete", "--json"]).arg(&json).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let found: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(found["grade"], "complete");
    assert!(found["ops"].as_array().unwrap().len() > 500);
    let passed = checks(&found, "pass");
    for name in ["import", "import of a part", "imports at once", "import refused", "export"] {
        let name = format!("interfaces/memory {name}");
        assert!(passed.iter().any(|p| p.0 == name), "{name}: {passed:?}");
    }
}
