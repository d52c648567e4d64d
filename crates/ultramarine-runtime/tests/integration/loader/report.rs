//! The report in its three forms, and the log.

use super::backends::{self, LoadOptions};
use super::bench::{Bench, load_all};
use serde_json::Value;
use ultramarine_test_support::own_process;

/// All of it, for machines and for people.
#[test]
fn forms() {
    own_process!();
    let bench = Bench::new("report-forms");
    let good = bench.plugin("all", "good-v1", &["-DSCORE=77", "-DDEVICES=2"]);
    let bad = bench.plugin(
        "all",
        "bad",
        &["-DON_SCORE=score->score = 0; strcpy(score->reason, \"no such chip\")"],
    );
    bench.search(&["all"]);
    let empty: Value = serde_json::from_str(&backends::report_json()).expect("JSON");
    assert_eq!(empty["candidates"].as_array().map(Vec::len), Some(0));
    load_all(LoadOptions::default());

    let json: Value = serde_json::from_str(&backends::report_json()).expect("JSON");
    assert_eq!(json["directories"][0]["found"], 2);
    assert_eq!(json["directories"][0]["rule"], "set_search_paths");
    let all = json["candidates"].as_array().expect("a list");
    let find = |path: &std::path::Path| {
        all.iter().find(|c| c["path"] == *path.to_string_lossy()).expect("it is listed")
    };
    let (good, bad) = (find(&good), find(&bad));
    assert_eq!(good["outcome"], "loaded");
    assert_eq!(good["stage"], "registered");
    assert_eq!(good["winner"], true);
    assert_eq!(good["score"], 77);
    assert_eq!(good["devices"], serde_json::json!(["gpu:0", "gpu:1"]));
    assert_eq!(good["variant"], "v1");
    assert_eq!(good["properties"]["version"], "1.2.3");
    assert_eq!(good["properties"]["from_note"], true);
    assert!(good["reason"].is_null());
    assert!(good["milliseconds"].as_f64().is_some_and(|ms| ms > 0.0));
    assert_eq!(bad["outcome"], "skipped");
    assert_eq!(bad["reason"]["code"], "score_zero");
    assert!(bad["reason"]["text"].as_str().is_some_and(|t| t.contains("no such chip")));
    assert!(bad["reason"]["remedy"].as_str().is_some_and(|t| !t.is_empty()));

    let table = backends::report_table();
    eprintln!("{table}");
    for words in [
        "good-v1",
        "loaded",
        "gpu:0 gpu:1",
        "77",
        "bad",
        "skipped at score",
        "no such chip",
        "remedy:",
    ] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
}

/// Warnings are seen, remarks only if asked for.
#[test]
fn logged_by_default() {
    own_process!();
    let words = log_of(None);
    assert!(words.contains("warning: backend") && words.contains("the fan is off"), "{words}");
    assert!(!words.contains("no such chip") && !words.contains(" loaded"), "{words}");
    let words = log_of(Some("info"));
    assert!(words.contains("no such chip") && words.contains(" loaded"), "{words}");
    assert_eq!(log_of(Some("error")), "");
    assert_eq!(log_of(Some("off")), "");
}

/// Lines of the library on standard error, of a process that loads three plugins.
fn log_of(level: Option<&str>) -> String {
    let bench = Bench::new("report-log");
    bench.plugin("all", "good", &[]);
    bench.plugin(
        "all",
        "zero",
        &["-DON_SCORE=score->score = 0; strcpy(score->reason, \"no such chip\")"],
    );
    bench.plugin(
        "all",
        "fails",
        &["-DON_INIT=return complain(error, UM_ERROR, \"the fan is off\")"],
    );
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command.args(["loader::load_found_backends", "--ignored", "--exact", "--nocapture"]);
    command.env("ULTRAMARINE_BACKEND_PATH", bench.dir("all")).env_remove("ULTRAMARINE_LOG");
    if let Some(level) = level {
        command.env("ULTRAMARINE_LOG", level);
    }
    let out = command.output().expect("it runs");
    let err = String::from_utf8_lossy(&out.stderr);
    err.lines().filter(|l| l.starts_with("ultramarine:")).map(|l| format!("{l}\n")).collect()
}
