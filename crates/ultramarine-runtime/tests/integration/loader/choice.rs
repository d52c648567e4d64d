//! The choice of backends: globs, the filter, the best of each name, and the next best if its init fails.

use super::backends::{self, LoadOptions, Outcome};
use super::bench::{Bench, load_all, reported, why};
use std::cell::RefCell;
use ultramarine_runtime::{DeviceType, Error};
use ultramarine_test_support::own_process;

/// Globs look at `name` and at `name-variant`; who is ruled out is never opened.
#[test]
fn globs() {
    own_process!();
    let bench = Bench::new("choice-globs");
    let kill = &["-DON_LOAD=__builtin_trap()"];
    bench.plugin("all", "alpha", &[]);
    bench.plugin("all", "beta-x", &[]);
    let blocked = bench.plugin("all", "beta-y", kill);
    let other = bench.plugin("all", "gamma", kill);
    bench.search(&["all"]);
    let options = LoadOptions {
        allowed: Some(&["alp?a", "b*"]),
        blocked: &["*-y", "nothing"],
        ..Default::default()
    };
    let mut loaded = load_all(options);
    loaded.sort();
    assert_eq!(loaded, ["alpha", "beta-x"]);
    assert_eq!(why(&blocked).1, "blocked");
    assert!(why(&blocked).2.contains("*-y"));
    assert_eq!((why(&other).0, why(&other).1), ("filter".into(), "not_allowed".into()));
    assert_eq!(reported(&other).outcome, Outcome::Skipped);
    let nothing = LoadOptions { allowed: Some(&[]), ..Default::default() };
    assert!(load_all(nothing).is_empty());
    let bad = LoadOptions { blocked: &["a[b"], ..Default::default() };
    let error = backends::load_all(&bad).expect_err("no glob");
    assert!(matches!(&error, Error::Value(t) if t.contains("a[b")), "{error}");
}

/// The filter sees everything before init, and its word counts.
#[test]
fn filter() {
    own_process!();
    let bench = Bench::new("choice-filter");
    let named = "-DON_SCORE=strcpy(score->devices[0].name, \"Fan\"); score->devices[0].memory = 7";
    bench.plugin("all", "wanted", &["-DSCORE=7", named]);
    let unwanted = bench.plugin("all", "unwanted", &["-DON_INIT=__builtin_trap()"]);
    let fails = bench.plugin("all", "fails", &["-DON_INIT=__builtin_trap()"]);
    bench.search(&["all"]);
    let seen = RefCell::new(Vec::new());
    let filter = |offer: &backends::Offer| {
        assert!(backends::load_best("wanted").is_err(), "no loads within a load");
        seen.borrow_mut().push(offer.clone());
        match offer.properties.name.as_str() {
            "fails" => Err(Error::Value("out of ideas".into())),
            name => Ok(name == "wanted"),
        }
    };
    let options = LoadOptions { filter: Some(&filter), ..Default::default() };
    assert_eq!(load_all(options), ["wanted"]);
    assert_eq!(why(&unwanted).1, "filtered");
    assert!(why(&fails).2.contains("out of ideas"));
    let seen = seen.into_inner();
    assert_eq!(seen.len(), 3);
    let offer = seen.iter().find(|o| o.properties.name == "wanted").expect("it was offered");
    assert_eq!((offer.score, offer.device_type), (7, DeviceType::Gpu));
    assert_eq!((offer.devices[0].name.as_str(), offer.devices[0].memory), ("Fan", 7));
    assert_eq!(offer.properties.version, "1.2.3");
}

/// The best score of a name wins. The others are not used, but their code ran, so they stay mapped.
#[test]
fn best_variant() {
    own_process!();
    let bench = Bench::new("choice-best");
    let trap = "-DON_INIT=__builtin_trap()";
    let plain = bench.plugin("all", "many", &["-DSCORE=5", trap]);
    let best = bench.plugin("all", "many-best", &["-DSCORE=90"]);
    let middle = bench.plugin("all", "many-middle", &["-DSCORE=50", trap]);
    let cannot = bench.plugin("all", "many-cannot", &["-DSCORE=0", trap]);
    bench.search(&["all"]);
    assert_eq!(load_all(LoadOptions::default()), ["many-best"]);
    let winner = reported(&best);
    assert!(winner.winner && winner.score == Some(90) && winner.reason.is_none());
    for (loser, score) in [(plain, 5), (middle, 50)] {
        assert_eq!(why(&loser).1, "outscored");
        assert!(why(&loser).2.contains("90") && reported(&loser).score == Some(score));
        assert!(!reported(&loser).winner);
    }
    assert_eq!((why(&cannot).1, reported(&cannot).score), ("score_zero".into(), Some(0)));
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    assert!(maps.contains("many-best"), "in use");
    assert!(maps.contains("many-middle") && maps.contains("many-cannot"), "asked for a score");
}

/// Equal scores: the earlier directory, then the earlier name.
#[test]
fn ties() {
    own_process!();
    let bench = Bench::new("choice-ties");
    let a = bench.plugin("first", "tie-z", &[]);
    let b = bench.plugin("second", "tie-a", &[]);
    bench.search(&["first", "second"]);
    assert_eq!(load_all(LoadOptions::default()), ["tie-z"]);
    assert!(why(&b).2.contains("the same score, 10") && why(&b).2.contains(&*a.to_string_lossy()));
}

/// When init fails the next best stands in, and so on; all of them say what happened.
#[test]
fn fallback() {
    own_process!();
    let bench = Bench::new("choice-fallback");
    let complains = "-DON_INIT=return complain(error, UM_ERROR, \"the fan is off\")";
    let first = bench.plugin("all", "spare-a", &["-DSCORE=90", complains]);
    let second = bench.plugin("all", "spare-b", &["-DSCORE=80", "-DON_COUNT=return 0"]);
    let third = bench.plugin("all", "spare-c", &["-DSCORE=70", "-DON_TABLE=mine.name = \"x\""]);
    bench.plugin("all", "spare-d", &["-DSCORE=60"]);
    let last = bench.plugin("all", "spare-e", &["-DSCORE=50", "-DON_INIT=__builtin_trap()"]);
    bench.search(&["all"]);
    assert_eq!(load_all(LoadOptions::default()), ["spare-d"]);
    assert_eq!((why(&first).0, why(&first).1), ("init".into(), "init_failed".into()));
    assert!(why(&first).2.contains("the fan is off"));
    assert_eq!(why(&second).1, "no_devices");
    assert_eq!(why(&third).1, "table_differs");
    assert_eq!(why(&last).1, "outscored");
    assert_eq!(backends::by_name("spare").expect("loaded").variant, "d");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    assert!(maps.contains("spare-a") && maps.contains("spare-c"), "their code has run");
}

/// One name, wanted alone.
#[test]
fn best_of_one_name() {
    own_process!();
    let bench = Bench::new("choice-one");
    bench.plugin("all", "one-a", &["-DSCORE=5"]);
    bench.plugin("all", "one-b", &["-DSCORE=6"]);
    bench.plugin("all", "two", &["-DON_LOAD=__builtin_trap()"]);
    bench.plugin("all", "three-x", &["-DSCORE=0"]);
    bench.plugin("all", "three-y", &["-DON_INIT=return UM_ERROR"]);
    bench.search(&["all"]);
    assert_eq!(backends::load_best("one").expect("it can run").variant, "b");
    assert_eq!(backends::load_best("one").expect("it is loaded").variant, "b");
    let error = backends::load_best("three").expect_err("none can").to_string();
    assert!(error.contains("three-x") && error.contains("status 1"), "{error}");
    let error = backends::load_best("four").expect_err("there is none").to_string();
    assert!(error.contains("four") && error.contains("all"), "{error}");
}

/// Processor features rule a file out before any of its code runs.
#[test]
fn processor() {
    own_process!();
    let bench = Bench::new("choice-processor");
    let kill = "-DON_LOAD=__builtin_trap()";
    let missing = if cfg!(target_arch = "x86_64") { "tbm" } else { "sve2 f64mm" };
    let flag = format!("-DINFO=.cpu_features = \"{missing}\",");
    let other = bench.plugin("all", "other", &[kill, &flag]);
    let unknown = bench.plugin("all", "unknown", &[kill, "-DINFO=.cpu_features = \"telepathy\","]);
    let san = bench.plugin("all", "san", &[kill, "-DINFO=.sanitizers = UM_SANITIZER_THREAD,"]);
    bench.search(&["all"]);
    assert!(load_all(LoadOptions::default()).is_empty());
    assert_eq!((why(&other).0, why(&other).1), ("note".into(), "cpu_feature".into()));
    assert_eq!(reported(&other).outcome, Outcome::Skipped);
    assert_eq!(why(&unknown).1, "unknown_cpu_feature");
    assert!(why(&unknown).2.contains("telepathy"));
    assert!(why(&san).2.contains("ThreadSanitizer"));
}
