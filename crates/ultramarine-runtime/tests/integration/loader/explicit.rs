//! Loading one file.

use super::backends::{self, Rule};
use super::bench::{Bench, reported};
use ultramarine_runtime::{Device, DeviceType, Error};
use ultramarine_test_support::own_process;

/// The properties of a loaded backend.
#[test]
fn properties() {
    own_process!();
    let bench = Bench::new("explicit-properties");
    let path = bench.plugin("all", "proper-fast", &["-DSCORE=42", "-DDEVICES=2"]);
    let info = backends::load(&path).expect("it can run");
    assert_eq!((info.name.as_str(), info.variant.as_str()), ("proper", "fast"));
    assert_eq!((info.version.as_str(), info.score), ("1.2.3", 42));
    assert_eq!((info.device_type, info.dlpack_device_type), (DeviceType::Gpu, 2));
    assert_eq!(info.devices, [Device::gpu(0), Device::gpu(1)]);
    assert_eq!(info.descriptions, ["proper device", "proper device"]);
    assert_eq!(info.path.as_deref(), Some(path.as_path()));
    assert_eq!(backends::by_name("proper"), Some(info.clone()));
    assert_eq!(backends::get(Device::gpu(1)).expect("there"), info);
    assert_eq!(reported(&path).rule, Rule::Explicit);
    // Again: the same entry.
    assert_eq!(backends::load(&path).expect("it is loaded"), info);
    assert_eq!(backends::backends().len(), 2);
}

/// The note survives stripping and the removal of unused sections; without one, or without a
/// score, a plugin can still be used.
#[test]
fn notes_and_defaults() {
    own_process!();
    let bench = Bench::new("explicit-notes");
    let small = ["-s", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"];
    let stripped = bench.plugin("all", "stripped", &small);
    backends::load(&stripped).expect("it can run");
    assert!(reported(&stripped).properties.is_some_and(|f| f.from_note));
    let bare = bench.plugin("all", "bare", &["-DNO_NOTE", "-DNO_SCORE"]);
    assert_eq!(backends::load(&bare).expect("it can run").score, 1);
    assert!(reported(&bare).properties.is_some_and(|f| !f.from_note && f.version == "1.2.3"));
    #[cfg(target_os = "linux")]
    assert_eq!(backends::report_table().matches("but:    its file has no note").count(), 1);
}

/// Errors hold the report's reason and the remedy.
#[test]
fn failing() {
    own_process!();
    let bench = Bench::new("explicit-failing");
    let mute = bench.plugin("all", "mute", &["-DON_INIT=return UM_ERROR"]);
    let error = backends::load(&mute).expect_err("its init fails");
    let reason = reported(&mute).reason.expect("it says why");
    let text = error.to_string();
    assert!(matches!(error, Error::Runtime(_)));
    assert!(text.contains(&reason.text) && text.contains(&reason.remedy), "{text}");
    assert!(text.contains("libultramarine-mute.so"), "{text}");
    assert!(reason.text.contains("without a message"), "{}", reason.text);
    assert!(reason.remedy.contains("um_fail(host, error"), "{}", reason.remedy);
    let missing = backends::load(bench.dir("all").join("libultramarine-gone.so"));
    assert!(missing.expect_err("gone").to_string().contains("no such file"));
    let bare = backends::load("libc.so.6").expect_err("no bare names").to_string();
    assert!(bare.contains("is not that of a backend"), "{bare}");
}

/// Another backend of a name that is taken.
#[test]
fn taken() {
    own_process!();
    let bench = Bench::new("explicit-taken");
    let first = bench.plugin("all", "taken-a", &[]);
    let second = bench.plugin("all", "taken-b", &["-DSCORE=99"]);
    backends::load(&first).expect("it can run");
    let error = backends::load(&second).expect_err("the name is taken").to_string();
    assert!(error.contains("taken-a") && error.contains("in use"), "{error}");
}
