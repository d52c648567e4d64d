//! Plugins that crash or hang as soon as their code runs: where the note rules them out it never
//! runs, and with child probing they cost themselves only.

use crate::support::bad_plugins::{DEADLY, KILL, make_all};
use crate::support::workshop::{Scratch, Workshop, file_name};
use std::error::Error;
use std::time::Duration;
use ultramarine::backends::{self, LoadOptions, Outcome, load_all, report};
use ultramarine::{Array, default_stream, with_stream};
use ultramarine_test_support::own_process;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Where verdicts of probes are remembered.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache-deadly");

/// Processor features, of which some machine lacks some.
const FEATURES: &[&str] = if cfg!(target_arch = "x86_64") {
    &["avx512f", "avx512vp2intersect", "amx-tile", "avx512fp16"]
} else {
    &["sve2", "i8mm", "bf16", "f32mm"]
};

#[test]
fn only_the_probing_process_dies() -> Result<()> {
    own_process!("XDG_CACHE_HOME" = CACHE);
    let (workshop, scratch) = (Workshop::of_tests()?, Scratch::new("deadly")?);
    let _ = std::fs::remove_dir_all(CACHE);
    let directory = scratch.path().join("all");
    std::fs::create_dir(&directory)?;
    make_all(DEADLY, &workshop, &directory)?;
    let good = workshop.good("good", &[], &directory)?;
    backends::set_search_paths(Some(vec![directory.clone()]));
    backends::set_probe_command(Some(vec![env!("CARGO_BIN_EXE_ultramarine-probe").into()]));
    backends::set_probe_timeout(Duration::from_secs(5));

    let loaded = load_all(&LoadOptions { probe: Some(true), ..Default::default() })?;
    assert_eq!(loaded.len(), 1, "{loaded:?}");
    assert_eq!(loaded[0].path.as_deref(), Some(good.as_path()));
    for kind in DEADLY {
        let path = directory.join(file_name(kind.name));
        let all = report().candidates;
        let found = all.iter().find(|c| c.path == path).ok_or(kind.name)?;
        let reason = found.reason.as_ref().ok_or(kind.name)?;
        assert_eq!((reason.code.name(), found.outcome), (kind.code, Outcome::Rejected));
        let lacks = kind.reason.iter().find(|part| !reason.text.contains(**part));
        assert_eq!(lacks, None, "{}: {}", kind.name, reason.text);
        assert!(found.milliseconds > 0.0);
    }
    let stream = default_stream(loaded[0].devices[0])?;
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    assert_eq!(with_stream(stream, || x.add(&x))?.to_vec::<f32>()?, [2.0, 4.0]);

    // Without a probe: each asks for one feature, and its constructor crashes. Those that are
    // there would do so; of the others not a line runs.
    let apart = scratch.path().join("features");
    std::fs::create_dir(&apart)?;
    let mut ruled_out = 0;
    for feature in FEATURES.iter().filter(|f| !has(f)) {
        let name = format!("needs_{}", feature.replace('-', "_"));
        let asks = format!("-DINFO=.cpu_features = \"{feature}\",");
        let path = workshop.good(&name, &[KILL, &asks], &apart)?;
        let error = backends::load(&path).err().ok_or("loaded")?.to_string();
        assert!(error.contains(feature), "{error}");
        let all = report().candidates;
        let found = all.iter().find(|c| c.path == path).ok_or("no line")?;
        assert_eq!(found.reason.as_ref().map(|r| r.code.name()), Some("cpu_feature"));
        assert_eq!(found.outcome, Outcome::Skipped, "nothing is wrong with it");
        ruled_out += 1;
    }
    assert!(ruled_out > 0, "this machine has all of {FEATURES:?}: add a newer one");
    Ok(())
}

/// Whether the kernel says that the processor has a feature; it spells some with `_`.
fn has(feature: &str) -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let spelt = [
        feature.to_owned(),
        feature.replace('-', "_"),
        format!("avx512_{}", &feature[feature.len().min(6)..]),
    ];
    info.split_whitespace().any(|word| spelt.iter().any(|s| s == word))
}
