//! Backends that load, and misbehave when they are used: what fails is an error at whoever
//! needs it, with the backend's words, and everything else goes on.

use crate::support::workshop::{Scratch, Workshop, file_name, panicking, patch};
use std::error::Error;
use std::path::Path;
use ultramarine::backends::{device_count, load};
use ultramarine::{Array, Device, DeviceType, default_stream, with_stream};
use ultramarine_test_support::own_process;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The sum of two arrays on a device, read back.
fn sum(device: Device) -> ultramarine::Result<Vec<f32>> {
    let stream = default_stream(device)?;
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    with_stream(stream, || x.add(&x))?.to_vec()
}

const RIGHT: [f32; 3] = [2.0, 4.0, 6.0];

/// Name, definitions, and words of the error, if there is to be one.
type Case = (&'static str, &'static [&'static str], Option<&'static [&'static str]>);

/// C plugins that load: definitions, and what the sum comes to: words of the error, or (none) the
/// right result by another way.
const RUNNING: &[Case] = &[
    ("refuses", &["-DON_SUBMIT=return UM_UNSUPPORTED"], Some(&["refuses"])),
    (
        "complains",
        &["-DON_SUBMIT=return complain(error, UM_ERROR, \"the wire is cut\")"],
        Some(&["the wire is cut"]),
    ),
    ("mute", &["-DON_SUBMIT=return UM_ERROR"], Some(&["submit", "status 1"])),
    ("strange", &["-DON_SUBMIT=return 77"], Some(&["submit", "77"])),
    ("blank", &["-DON_SUBMIT=return complain(error, UM_ERROR, \"\")"], Some(&["submit"])),
    (
        "no_memory",
        &["-DON_ALLOC=return complain(error, UM_OUT_OF_MEMORY, \"all gone\")"],
        Some(&["all gone"]),
    ),
    ("prepare_fails", &["-DON_PREPARE=return UM_ERROR"], Some(&["prepare", "status 1"])),
    ("prepare_77", &["-DON_PREPARE=return 77"], Some(&["prepare", "77"])),
    // It can nothing, and says so: simpler ops, then the CPU.
    ("lazy", &["-DON_PREPARE=return UM_UNSUPPORTED"], None),
    // An error object with a status that says that all is well.
    ("both", &["-DON_SUBMIT=complain(error, UM_ERROR, \"never mind\")"], None),
    // Contiguous already.
    ("insists", &["-DON_PREPARE=return UM_NEEDS_CONTIGUOUS"], None),
];

#[test]
fn failures_are_errors_with_the_backends_message() -> Result<()> {
    own_process!();
    let workshop = Workshop::of_tests()?;
    let scratch = Scratch::new("running")?;
    let good = load(workshop.good("good", &[], scratch.path())?)?.devices[0];
    for (name, flags, expected) in RUNNING {
        let info = load(workshop.good(name, flags, scratch.path())?)?;
        match (sum(info.devices[0]), expected) {
            (Ok(values), None) => assert_eq!(values, RIGHT, "{name}"),
            (Err(error), Some(words)) => {
                let text = error.to_string();
                assert!(words.iter().all(|w| text.contains(w)), "{name}: {text}");
            }
            (got, want) => panic!("{name}: {got:?}, want {want:?}"),
        }
        assert_eq!(sum(good)?, RIGHT, "after {name}");
        assert_eq!(sum(Device::CPU)?, RIGHT, "after {name}");
    }
    Ok(())
}

/// Where the Rust plugin panics and the C++ one throws: what its load comes to, and what the sum does.
enum Then {
    /// It does not load, with these words in the error.
    Left(&'static str),
    /// The sum fails, with the text of what was thrown.
    Fails,
    /// The sum is right: the entry has no way to fail, and what it throws is only logged.
    Works,
}

const THROWS: &[(&str, Then)] = &[
    ("nowhere", Then::Works),
    ("score", Then::Left("score")),
    ("init", Then::Left("in init")),
    ("count", Then::Left("no device")),
    ("info", Then::Left("in info")),
    ("open", Then::Left("in open")),
    ("alloc", Then::Fails),
    ("upload", Then::Fails),
    ("download", Then::Fails),
    ("prepare", Then::Fails),
    ("run", Then::Fails),
    ("pointer", Then::Works),
    ("workspace", Then::Works),
    ("interface", Then::Works),
    ("free", Then::Works),
    ("release", Then::Works),
];

/// What becomes of a backend that panics or throws in a place.
fn check(place: &str, path: &Path, then: &Then) -> Result<()> {
    let before = device_count(DeviceType::Gpu);
    match (load(path), then) {
        (Err(error), Then::Left(words)) => {
            assert!(error.to_string().contains(words), "{place}: {error}");
            assert_eq!(device_count(DeviceType::Gpu), before, "{place}");
        }
        (Ok(info), Then::Fails) => {
            let error = sum(info.devices[0]).err().ok_or("it works")?.to_string();
            assert!(error.contains(&format!("on purpose, in {place}")), "{error}");
        }
        (Ok(info), Then::Works) => assert_eq!(sum(info.devices[0])?, RIGHT, "{place}"),
        (got, _) => panic!("{place}: {got:?}"),
    }
    assert_eq!(sum(Device::CPU)?, RIGHT, "after {place}");
    Ok(())
}

#[test]
fn panics_stay_within_the_plugin() -> Result<()> {
    own_process!();
    let library = panicking()?;
    let scratch = Scratch::new("panics")?;
    for (i, (place, then)) in THROWS.iter().enumerate() {
        let name = format!("panic_{i:03}");
        let mut bytes = library.clone();
        patch(&mut bytes, b"panicking\0", format!("{name}\0").as_bytes());
        let changed = format!("panics in: {place:21}");
        patch(&mut bytes, format!("panics in: {:21}", "nowhere").as_bytes(), changed.as_bytes());
        let path = scratch.path().join(file_name(&name));
        std::fs::write(&path, bytes)?;
        check(place, &path, then)?;
    }
    Ok(())
}

#[test]
fn exceptions_stay_within_the_plugin() -> Result<()> {
    own_process!();
    let (workshop, scratch) = (Workshop::of_tests()?, Scratch::new("throws")?);
    for (place, then) in THROWS {
        let name = format!("throw_{place}");
        let path = scratch.path().join(file_name(&name));
        let flags = [format!("-DNAME=\"{name}\""), format!("-DIN=\"{place}\"")];
        workshop.cpp(&flags.each_ref().map(String::as_str), &path)?;
        check(place, &path, then)?;
    }
    Ok(())
}
