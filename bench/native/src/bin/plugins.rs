//! The cost of plugins made by the C compiler: calls through a table, tiny operations on a device, and the load of
//! many candidates, most of them bad. The bench `boundary` times the host's part.
//!
//! ```sh
//! cargo run --release -p ultramarine-bench --bin plugins [-- --json]
//! ```

#[path = "../../../../crates/ultramarine/tests/integration/support/bad_plugins.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod bad_plugins;
#[path = "../../../../crates/ultramarine-runtime/tests/integration/support/workshop.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod workshop;

use std::error::Error;
use std::ffi::c_void;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use ultramarine::backends::{self, LoadOptions};
use ultramarine::{Array, Dtype, default_stream, with_stream};
use ultramarine_abi::{self as abi, status, symbol};
use ultramarine_bench::{Figure, Report};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Nanoseconds of one call: the best of many short rounds, which other programs disturb the least.
fn nanoseconds(mut call: impl FnMut()) -> Timing {
    let mut round = |calls: u32| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed()
    };
    let mut calls = 1;
    while calls < 10_000 && round(calls) < Duration::from_micros(100) {
        calls *= 2;
    }
    let started = Instant::now();
    let mut timing = Timing { best: f64::INFINITY, rounds: 0 };
    while started.elapsed() < Duration::from_millis(300) {
        let each = round(calls).as_nanos() as f64 / f64::from(calls);
        timing = Timing { best: timing.best.min(each), rounds: timing.rounds + 1 };
    }
    timing
}

/// The best time of a call in nanoseconds, and the number of rounds that it is the best of.
#[derive(Clone, Copy)]
struct Timing {
    best: f64,
    rounds: u64,
}

fn show(report: &Report, name: &str, timing: Timing, target: Option<f64>) {
    report.print(&Figure { target, ..Figure::new(name, timing.best, "ns", timing.rounds) });
}

fn minimal(directory: &Path) -> Outcome<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = directory.join(workshop::file_name("minimal"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-I"]);
    cc.arg(root.join("crates/ultramarine-abi/include"));
    cc.arg(root.join("examples/backends/minimal/minimal.c")).arg("-lm").arg("-o").arg(&out);
    if cc.status()?.success() { Ok(out) } else { Err("the C compiler failed".into()) }
}

/// The plugin's table, beside the one that the library uses.
fn table(path: &Path) -> Outcome<abi::BackendTable> {
    // SAFETY: all-zero is a valid table of either kind. The library is one of ours; its entry point has
    // this type by the header, and both tables live as long as the process.
    unsafe {
        let library = Box::leak(Box::new(libloading::Library::new(path)?));
        let init: libloading::Symbol<'_, abi::BackendInit> =
            library.get(symbol::INIT.to_bytes_with_nul())?;
        let host: &'static mut abi::HostTable = Box::leak(Box::new(std::mem::zeroed()));
        host.size = size_of::<abi::HostTable>() as u32;
        let mut table: abi::BackendTable = std::mem::zeroed();
        table.size = size_of::<abi::BackendTable>() as u32;
        match init(host, &mut table, std::ptr::null_mut()) {
            status::OK => Ok(table),
            code => Err(format!("init returned {code}").into()),
        }
    }
}

fn calls(report: &Report, table: &abi::BackendTable) -> Outcome<()> {
    let missing = || "a function is missing";
    let (open, alloc) =
        (table.device_open.ok_or_else(missing)?, table.buffer_alloc.ok_or_else(missing)?);
    let (submit, pointer) =
        (table.submit.ok_or_else(missing)?, table.buffer_host_pointer.ok_or_else(missing)?);
    let (mut device, mut buffer) = (std::ptr::null_mut(), std::ptr::null_mut());
    let none = std::ptr::null_mut();
    let null: *mut c_void = std::ptr::null_mut();
    // SAFETY: places of ours; the device exists.
    unsafe {
        open(table.backend, 0, &mut device, none);
        alloc(device, 64, &mut buffer, none);
    }
    // SAFETY: no commands are read; the device is open.
    let empty = nanoseconds(|| unsafe {
        black_box(submit)(device, null, std::ptr::null(), 0, none);
    });
    show(report, "empty submit through the table", empty, Some(25.0));
    // SAFETY: the buffer is alive.
    let address = nanoseconds(|| unsafe {
        black_box(black_box(pointer)(device, buffer));
    });
    show(report, "host pointer through the table", address, Some(10.0));
    Ok(())
}

fn tiny(report: &Report, device: ultramarine::Device, target: Option<f64>) -> Outcome<()> {
    let stream = default_stream(device)?;
    let x = with_stream(stream, || Array::ones(&[1], Dtype::Float32))?;
    x.eval()?;
    let one = nanoseconds(|| {
        with_stream(stream, || {
            let y = x.add(&x).and_then(|y| y.eval());
            black_box(y.is_ok());
        });
    });
    show(report, &format!("one addition, evaluated alone, on {device}"), one, None);
    let chain = nanoseconds(|| {
        with_stream(stream, || {
            let mut y = x.clone();
            for _ in 0..100 {
                match y.add(&x) {
                    Ok(next) => y = next,
                    Err(_) => return,
                }
            }
            black_box(y.eval().is_ok());
        });
    });
    let each = Timing { best: chain.best / 100.0, ..chain };
    show(report, &format!("an addition in a chain of 100, on {device}"), each, target);
    let value = x.value()?;
    let address = nanoseconds(|| {
        black_box(black_box(value).buffer.as_ptr());
    });
    show(report, &format!("a value's address for the host, on {device}"), address, Some(10.0));
    Ok(())
}

fn many(report: &Report) -> Outcome<()> {
    let place = workshop::Scratch::new("plugins")?;
    let shop = workshop::Workshop::new(place.path().join("kept"))?;
    let directory = place.path().join("candidates");
    std::fs::create_dir(&directory)?;
    bad_plugins::make_all(bad_plugins::FORTY, &shop, &directory)?;
    for i in 0..10 {
        let uuid = format!("-DSCORE={}", 10 + i);
        shop.good(&format!("good{i}"), &[&uuid], &directory)?;
    }
    backends::set_search_paths(Some(vec![directory]));
    let start = Instant::now();
    let loaded = backends::load_all(&LoadOptions { duplicates: true, ..LoadOptions::default() })?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    // The plugin that was loaded before is in the report, too.
    let candidates = backends::report().candidates.len() - 1;
    let name = format!("{candidates} candidates, {} of them loaded", loaded.len());
    report.print(&Figure { target: Some(200.0), ..Figure::new(&name, took, "ms", 1) });
    Ok(())
}

fn main() -> Outcome<()> {
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("ULTRAMARINE_LOG", "off") };
    let report = Report::from_args("plugins");
    let place = workshop::Scratch::new("plugins-minimal")?;
    let path = minimal(place.path())?;
    calls(&report, &table(&path)?)?;
    tiny(&report, ultramarine::Device::CPU, Some(800.0))?;
    let minimal = backends::load(&path)?;
    tiny(&report, minimal.devices[0], None)?;
    many(&report)
}
