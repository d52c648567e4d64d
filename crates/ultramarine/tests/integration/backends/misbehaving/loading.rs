//! Plugins that misbehave on purpose: the process survives each, the report says which it was and
//! why, and everything else works as if it had not been there.

use crate::support::bad_plugins::{Bad, FORTY, MORE, make_all};
use crate::support::workshop::{Scratch, Workshop, file_name};
use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use ultramarine::backends::{
    self, Candidate, LoadOptions, Outcome, load_all, report, set_search_paths,
};
use ultramarine::{Array, Device, default_stream, with_stream};
use ultramarine_test_support::own_process;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const GOOD: usize = 10;

/// What the report says of a file.
fn candidate(path: &Path) -> Result<Candidate> {
    let found = report().candidates.into_iter().find(|c| c.path == path);
    found.ok_or_else(|| format!("{} is not in the report", path.display()).into())
}

/// What is wrong with the report's line on a bad plugin, or nothing.
fn complaint(kind: &Bad, directory: &Path) -> Result<Option<String>> {
    let found = candidate(&directory.join(file_name(kind.name)))?;
    let Some(reason) = &found.reason else {
        return Ok(Some(format!("{}: no reason; {:?}", kind.name, found.outcome)));
    };
    let code = reason.code.name();
    let lacks = kind.reason.iter().find(|part| !reason.text.contains(**part));
    let mute = reason.text.trim().is_empty() || reason.remedy.trim().is_empty();
    if found.outcome == Outcome::Loaded || code != kind.code || lacks.is_some() || mute {
        let want = (kind.code, kind.reason);
        return Ok(Some(format!("{}: want {want:?}, got {code}: {}", kind.name, reason.text)));
    }
    Ok(None)
}

/// The sum and the product of arrays on a device, computed by its backend.
fn computes(device: Device) -> Result<()> {
    let stream = default_stream(device)?;
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    let y = with_stream(stream, || x.add(&x)?.multiply(&x))?;
    assert_eq!(y.to_vec::<f32>()?, [2.0, 8.0, 18.0], "{device}");
    Ok(())
}

#[test]
fn fifty_candidates_of_which_forty_are_bad() -> Result<()> {
    own_process!();
    let workshop = Workshop::of_tests()?;
    let scratch = Scratch::new("fifty")?;
    let directory = scratch.path();
    assert_eq!(FORTY.len(), 40);
    make_all(FORTY, &workshop, directory)?;
    for i in 0..GOOD {
        workshop.good(&format!("good{i}"), &[], directory)?;
    }

    set_search_paths(Some(vec![directory.to_owned()]));
    let loaded = load_all(&LoadOptions::default())?;
    assert_eq!(loaded.len(), GOOD, "{loaded:?}");
    assert_eq!(report().candidates.len(), FORTY.len() + GOOD);

    let wrong: Vec<String> = FORTY
        .iter()
        .filter_map(|kind| complaint(kind, directory).transpose())
        .collect::<Result<_>>()?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let reasons: HashSet<String> =
        report().candidates.iter().filter_map(|c| Some(c.reason.as_ref()?.text.clone())).collect();
    assert_eq!(reasons.len(), FORTY.len(), "reasons are distinct");

    // Afterwards everything works: the ten, and what is built in.
    for info in &loaded {
        assert_eq!(info.devices.len(), 1);
        computes(info.devices[0])?;
        assert_eq!(backends::get(info.devices[0])?.name, info.name);
    }
    computes(Device::CPU)?;
    assert_eq!(backends::device_count(ultramarine::DeviceType::Gpu), GOOD);

    // More of them, later: what is there stays what it was.
    let later = Scratch::new("later")?;
    make_all(MORE, &workshop, later.path())?;
    set_search_paths(Some(vec![later.path().to_owned()]));
    assert_eq!(load_all(&LoadOptions::default())?, []);
    let wrong: Vec<String> = MORE
        .iter()
        .filter_map(|kind| complaint(kind, later.path()).transpose())
        .collect::<Result<_>>()?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for info in &loaded {
        computes(info.devices[0])?;
    }

    // An explicit load of each raises, with the reason of the report.
    for (kinds, place) in [(FORTY, directory), (MORE, later.path())] {
        for kind in kinds {
            let path = place.join(file_name(kind.name));
            let message = match backends::load(&path) {
                Ok(info) => format!("loaded {info:?}"),
                Err(error) => error.to_string(),
            };
            let right = kind.reason.iter().all(|part| message.contains(part));
            assert!(right, "{}: {message}", kind.name);
        }
    }
    Ok(())
}
