//! Loading by itself: at the first need of a GPU, once, and never for programs that use the CPU.

use super::bench::{Bench, load_all};
use crate::support::fork::in_child;
use ultramarine::backends::{self, LoadOptions};
use ultramarine::{
    Array, Device, DeviceType, Dtype, default_stream, is_available, set_default_device,
};
use ultramarine_test_support::own_process;

/// Returns true if a directory was searched.
fn searched() -> bool {
    !backends::report().directories.is_empty()
}

/// Whatever a program does on the CPU, nothing is searched.
#[test]
fn not_on_the_cpu() {
    own_process!();
    let bench = Bench::new("auto-cpu");
    bench.plugin("all", "unasked", &["-DON_LOAD=__builtin_trap()"]);
    bench.search(&["all"]);
    let x = Array::ones(&[100], Dtype::Float32).expect("an array");
    assert_eq!(x.sum(None).and_then(|s| s.to_vec::<f32>()).expect("a sum"), [100.0]);
    set_default_device(Device::CPU).expect("it is there");
    default_stream(Device::CPU).expect("it is there");
    assert!(is_available(Device::CPU) && backends::is_available(DeviceType::Cpu));
    assert_eq!(backends::device_count(DeviceType::Cpu), 1);
    assert_eq!(backends::backends().len(), 1);
    assert!(backends::by_name("unasked").is_none());
    assert!(!searched());
}

/// Each of these is a need.
#[test]
fn needs_count() {
    own_process!();
    let bench = Bench::new("auto-count");
    bench.plugin("all", "auto", &["-DDEVICES=2"]);
    bench.search(&["all"]);
    assert_eq!(backends::device_count(DeviceType::Gpu), 2);
    assert!(searched());
    // Once: what comes later is found by loads that are asked for.
    bench.plugin("all", "late", &[]);
    assert!(!is_available(Device::gpu(2)));
    assert_eq!(load_all(LoadOptions::default()), ["late"]);
    assert!(is_available(Device::gpu(2)));
}

#[test]
fn needs_device() {
    own_process!();
    let bench = Bench::new("auto-device");
    bench.plugin("all", "auto", &[]);
    bench.search(&["all"]);
    set_default_device(Device::gpu(0)).expect("it was found");
    let error = set_default_device(Device::gpu(3)).expect_err("there is one only").to_string();
    assert!(error.contains("No backend is loaded for device gpu:3"), "{error}");
    assert!(error.contains("gpu:0 (auto)") && error.contains("cpu:0 (cpu)"), "{error}");
}

#[test]
fn needs_availability() {
    own_process!();
    let bench = Bench::new("auto-availability");
    bench.plugin("all", "auto", &[]);
    bench.search(&["all"]);
    assert!(backends::is_available(DeviceType::Gpu));
}

/// Many threads at once: each finds all of it.
#[test]
fn threads() {
    own_process!();
    let bench = Bench::new("auto-threads");
    bench.plugin("all", "slow", &["-DON_INIT=extern int usleep(unsigned); usleep(20000)"]);
    bench.search(&["all"]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(is_available(Device::gpu(0))));
        }
    });
    assert_eq!(backends::device_count(DeviceType::Gpu), 1);
}

/// An explicit load is added to.
#[test]
fn after_an_explicit_load() {
    own_process!();
    let bench = Bench::new("auto-explicit");
    let own = bench.plugin("own", "own", &["-DSCORE=1"]);
    bench.plugin("all", "found", &["-DSCORE=99"]);
    bench.search(&["all"]);
    assert_eq!(backends::load(own).expect("it can run").devices, [Device::gpu(0)]);
    assert!(!searched(), "gpu:0 is there");
    default_stream(Device::gpu(0)).expect("it is there");
    assert!(!searched(), "gpu:0 is there");
    default_stream(Device::gpu(1)).expect("it is found");
    assert_eq!(backends::get(Device::gpu(1)).expect("there").name, "found");
}

/// Not after the program has said what it wants.
#[test]
fn not_after_load_all() {
    own_process!();
    let bench = Bench::new("auto-all");
    bench.plugin("all", "blocked", &["-DON_LOAD=__builtin_trap()"]);
    bench.search(&["all"]);
    assert!(load_all(LoadOptions { blocked: &["*"], ..Default::default() }).is_empty());
    assert_eq!(backends::device_count(DeviceType::Gpu), 0);
    let error = default_stream(Device::gpu(0)).expect_err("none").to_string();
    assert!(error.contains("Left out: 1"), "{error}");
}

#[test]
fn switched_off() {
    own_process!("ULTRAMARINE_BACKEND_AUTOLOAD" = "0");
    let bench = Bench::new("auto-off");
    bench.plugin("all", "asked", &[]);
    bench.search(&["all"]);
    assert_eq!(backends::device_count(DeviceType::Gpu), 0);
    let error = default_stream(Device::gpu(0)).expect_err("none").to_string();
    assert!(error.contains("ULTRAMARINE_BACKEND_AUTOLOAD"), "{error}");
    assert!(!searched());
    assert_eq!(load_all(LoadOptions::default()), ["asked"]);
    assert!(is_available(Device::gpu(0)));
}

/// A child forked while another thread loads can load and look.
#[test]
fn forked() {
    own_process!();
    let bench = Bench::new("auto-forked");
    let slow = "-DON_INIT=extern int usleep(unsigned); usleep(1000000)";
    let slow = bench.plugin("slow", "slow", &[slow]);
    let quick = bench.plugin("quick", "quick", &[]);
    bench.search(&[]);
    // The handlers are in place once something was evaluated.
    Array::ones(&[1], Dtype::Float32)
        .and_then(|x| x.add(&x))
        .and_then(|x| x.eval())
        .expect("a sum");
    std::thread::scope(|scope| {
        scope.spawn(|| backends::load(&slow));
        while !std::fs::read_to_string("/proc/self/maps").is_ok_and(|m| m.contains("-slow")) {
            std::thread::yield_now();
        }
        // SAFETY: the library makes loading usable after a fork.
        let status = unsafe {
            in_child(|| {
                backends::load(&quick).is_ok()
                    && backends::report().candidates.len() == 1
                    && is_available(Device::gpu(0))
            })
        };
        assert_eq!(status, 0);
    });
}
