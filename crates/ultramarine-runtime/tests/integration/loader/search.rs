//! Where is looked, either/or; how files are named.

use super::backends::{self, LoadOptions, Rule};
use super::bench::{Bench, load_all, reported, why};
use std::path::PathBuf;
use ultramarine_test_support::own_process;

/// Runs `body` in another process whose ULTRAMARINE_BACKEND_PATH is made of directories of the case's: the variable
/// is read when it is needed, and no other thread runs in these processes.
fn set_path(value: &str) {
    // SAFETY: a process with one test, whose other thread waits for it.
    unsafe { std::env::set_var("ULTRAMARINE_BACKEND_PATH", value) };
}

/// The rules, in order, and `set_search_paths` above all.
#[test]
fn without_the_variable() {
    own_process!();
    let bench = Bench::new("search-rules");
    let exe = std::env::current_exe().expect("this program");
    let beside = exe.parent().expect("its directory").join("backends");
    let paths = backends::search_paths();
    let tail = paths.last().expect("one at least");
    assert_eq!((&tail.path, &tail.rule), (&beside, &Rule::Beside));

    backends::add_search_directory(bench.dir("added"), "package of a friend");
    backends::add_search_directory(bench.dir("added"), "twice");
    backends::add_search_directory("relative/directory", "never");
    let paths = backends::search_paths();
    assert_eq!(paths.iter().filter(|p| p.path == bench.dir("added")).count(), 1);
    let tail = paths.last().expect("the added one");
    assert_eq!(tail.rule, Rule::Added("package of a friend".into()));
    assert!(paths.iter().all(|p| p.path.is_absolute()), "{paths:?}");

    backends::set_search_paths(Some(vec![bench.dir("set")]));
    assert_eq!(backends::search_paths().len(), 1);
    assert_eq!(backends::search_paths()[0].rule, Rule::Set);
    backends::set_search_paths(None);
    assert_eq!(backends::search_paths(), paths);

    let found = bench.plugin("added", "found", &[]);
    assert_eq!(load_all(LoadOptions::default()), ["found"]);
    assert_eq!(reported(found).rule, Rule::Added("package of a friend".into()));
}

/// The variable replaces all rules; relative and empty entries do not count.
#[test]
fn with_the_variable() {
    own_process!();
    let bench = Bench::new("search-variable");
    let (first, second) = (bench.dir("first"), bench.dir("second"));
    backends::add_search_directory(bench.dir("added"), "not with the variable");
    bench.plugin("added", "unseen", &[]);
    set_path(&format!("{}::relative:.:{}:/nowhere/at/all", first.display(), second.display()));
    let paths: Vec<PathBuf> = backends::search_paths().into_iter().map(|p| p.path).collect();
    assert_eq!(paths, [first, second, PathBuf::from("/nowhere/at/all")]);
    let here = bench.plugin("second", "here", &[]);
    assert_eq!(load_all(LoadOptions::default()), ["here"]);
    assert_eq!(reported(here).rule, Rule::Environment);
    let report = backends::report();
    assert_eq!(report.candidates.len(), 1, "{}", backends::report_json());
    let gone = &report.directories[2];
    assert!(gone.found.as_ref().is_err_and(|e| e.contains("No such file")), "{gone:?}");
    assert_eq!(report.directories[1].found, Ok(1));
    set_path("");
    assert_eq!(backends::search_paths(), []);
}

/// The name ends at the first dash. Other files are none of ours.
#[test]
fn names() {
    own_process!();
    let bench = Bench::new("search-names");
    let dir = bench.dir("all");
    let good = bench.plugin("all", "name_1-a-b.c_D", &[]);
    for other in ["readme.txt", "libultramarine.so", "libother-x.so", "libultramarine-x.so.1"] {
        std::fs::write(dir.join(other), "").expect("a file");
    }
    let bad = [
        "libultramarine-.so",
        "libultramarine-UP.so",
        "libultramarine-a-.so",
        "libultramarine-a-x y.so",
    ];
    for bad in bad {
        std::fs::write(dir.join(bad), "").expect("a file");
    }
    bench.search(&["all", "all"]);
    assert_eq!(load_all(LoadOptions::default()), ["name_1-a-b.c_D"]);
    assert_eq!(backends::report().candidates.len(), 1 + bad.len());
    for bad in bad {
        let (stage, code, text) = why(dir.join(bad));
        assert_eq!((stage.as_str(), code.as_str()), ("file", "file_name"));
        assert!(text.contains(bad), "{text}");
    }
    let reported = reported(good);
    assert_eq!((reported.name.as_str(), reported.variant.as_str()), ("name_1", "a-b.c_D"));
}

/// A name in the file that is not the file's name.
#[test]
fn another_name() {
    own_process!();
    let bench = Bench::new("search-another");
    let kill = "-DON_LOAD=__builtin_trap()";
    let path = bench.plugin("all", "real", &["-UNAME", "-DNAME=\"declared\"", kill]);
    let variant = bench.plugin("all", "other-x", &["-UVARIANT", "-DVARIANT=\"y\"", kill]);
    bench.search(&["all"]);
    assert!(load_all(LoadOptions::default()).is_empty());
    assert_eq!(why(&path).1, "name_differs");
    assert!(why(&path).2.contains("\"declared\"") && why(&path).2.contains("\"real\""));
    assert!(why(&variant).2.contains("\"other-y\"") && why(&variant).2.contains("\"other-x\""));
}
