//! Indices: by score within a load, appended after that, never changed; devices that several
//! backends show.

use super::bench::{Bench, load_all, reported, why};
use ultramarine::backends::{self, LoadOptions};
use ultramarine::{Array, Device, DeviceType, default_stream, with_stream};
use ultramarine_test_support::own_process;

fn gpus(name: &str) -> Vec<u16> {
    let info = backends::by_name(name).expect("it is loaded");
    assert!(info.devices.iter().all(|d| d.kind == DeviceType::Gpu));
    info.devices.iter().map(|d| d.index).collect()
}

const fn uuid(low: char) -> &'static str {
    match low {
        'a' => "-DON_SCORE=score->devices[0].known = 1; score->devices[0].uuid[0] = 10",
        _ => "-DON_SCORE=score->devices[0].known = 1; score->devices[0].uuid[0] = 11",
    }
}

const SHOWS_A: &str = "-DON_DEVICE=info->identity.known = 1; info->identity.uuid[0] = 10";
const SHOWS_A_AND_OTHERS: &str =
    "-DON_DEVICE=info->identity.known = 1; info->identity.uuid[0] = 10 + index";

/// Two devices of 100, one of 70, then those of later loads.
#[test]
fn by_score_then_stable() {
    own_process!();
    let bench = Bench::new("indices-stable");
    bench.plugin("all", "low", &["-DSCORE=20"]);
    bench.plugin("all", "high", &["-DSCORE=100", "-DDEVICES=2"]);
    bench.plugin("all", "middle", &["-DSCORE=70"]);
    bench.search(&["all"]);
    assert_eq!(load_all(LoadOptions::default()), ["high", "middle", "low"]);
    assert_eq!((gpus("high"), gpus("middle"), gpus("low")), (vec![0, 1], vec![2], vec![3]));
    let later = bench.plugin("more", "best", &["-DSCORE=9000", "-DDEVICES=2"]);
    assert_eq!(backends::load(&later).expect("it can run").devices[0], Device::gpu(4));
    bench.plugin("even_more", "last", &[]);
    bench.search(&["all", "even_more"]);
    assert_eq!(load_all(LoadOptions::default()), ["last"]);
    assert_eq!((gpus("high"), gpus("best"), gpus("last")), (vec![0, 1], vec![4, 5], vec![6]));
    assert_eq!(backends::device_count(DeviceType::Gpu), 7);
    assert_eq!(backends::get(Device::gpu(5)).expect("there").name, "best");
    let names: Vec<String> = backends::backends().into_iter().map(|b| b.name).collect();
    assert_eq!(names, ["cpu", "high", "middle", "low", "best", "last"]);
    assert_eq!(reported(&later).devices, [Device::gpu(4), Device::gpu(5)]);
}

/// Loaded devices compute.
#[test]
fn computing() {
    own_process!();
    let bench = Bench::new("indices-computing");
    bench.plugin("all", "adder", &["-DDEVICES=2"]);
    bench.search(&["all"]);
    let gpu = default_stream(Device::gpu(1)).expect("the first need loads it");
    let y = with_stream(gpu, || {
        let x = Array::full(&[5], 3.0f32)?;
        x.add(&x)
    });
    assert_eq!(y.and_then(|y| y.to_vec::<f32>()).expect("a sum"), [6.0; 5]);
}

/// The same device under two backends counts under the better one.
#[test]
fn duplicates() {
    own_process!();
    let bench = Bench::new("indices-duplicates");
    bench.plugin("all", "native", &["-DSCORE=100", uuid('a'), SHOWS_A]);
    let general =
        bench.plugin("all", "general", &["-DSCORE=50", "-DDEVICES=2", SHOWS_A_AND_OTHERS]);
    let again =
        bench.plugin("all", "again", &["-DSCORE=40", uuid('a'), "-DON_INIT=__builtin_trap()"]);
    let late = bench.plugin("all", "late", &["-DSCORE=30", SHOWS_A]);
    bench.search(&["all"]);
    assert_eq!(load_all(LoadOptions::default()), ["native", "general"]);
    assert_eq!((gpus("native"), gpus("general")), (vec![0], vec![1]));
    assert_eq!(reported(&general).devices, [Device::gpu(1)]);
    // Known from the score: not even started. Known from its devices only: started in vain.
    assert_eq!(why(&again).1, "duplicate");
    assert_eq!(why(&late).1, "duplicate");
    let native = backends::backends();
    assert!(native.iter().all(|b| b.name != "late" && b.name != "again"));
}

/// With duplicates wanted, it is listed under both.
#[test]
fn wanted_duplicates() {
    own_process!();
    let bench = Bench::new("indices-wanted");
    bench.plugin("all", "native", &["-DSCORE=100", uuid('a'), SHOWS_A]);
    bench.plugin("all", "general", &["-DSCORE=50", uuid('a'), SHOWS_A]);
    bench.plugin("all", "other", &["-DSCORE=40", uuid('b')]);
    bench.search(&["all"]);
    let options = LoadOptions { duplicates: true, ..Default::default() };
    assert_eq!(load_all(options), ["native", "general", "other"]);
    assert_eq!((gpus("native"), gpus("general")), (vec![0], vec![1]));
}

/// A plugin of the CPU's type has no devices of its own: it lies over cpu:0.
#[test]
fn overlay() {
    own_process!();
    let bench = Bench::new("indices-overlay");
    bench.plugin("all", "cpu-mine", &["-DDEVICE_TYPE=1"]);
    bench.search(&["all"]);
    assert_eq!(load_all(LoadOptions::default()), ["cpu-mine"]);
    let info = backends::by_name("cpu").expect("it is loaded");
    assert_eq!((info.variant.as_str(), info.devices.as_slice()), ("mine", &[Device::CPU][..]));
    assert_eq!(backends::device_count(DeviceType::Gpu), 0);
    assert_eq!(backends::get(Device::CPU).expect("there").path, None, "the built-in one stays");
    let x = Array::full(&[5], 3.0f32).expect("an array");
    let y = x.add(&x).and_then(|y| y.exp()).and_then(|y| y.to_vec::<f32>()).expect("a sum");
    assert!((y[4] - 6f32.exp()).abs() < 1e-2);
}
