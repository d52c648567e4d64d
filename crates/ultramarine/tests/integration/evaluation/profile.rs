//! Profiles: what is recorded, how it nests, and that nothing is different without one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::Ordering;

use crate::support::fork::in_child;
use crate::support::mock_device;
use serde_json::Value;
use ultramarine::profile::{Clock, Dispatch, profile};
use ultramarine::*;
use ultramarine_test_support::own_process;

/// Counts the allocations of the calling thread, while it asks for that.
struct Counting;

thread_local! {
    static COUNT: Cell<Option<u64>> = const { Cell::new(None) };
}

// SAFETY: passed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get().map(|n| n + 1)));
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get().map(|n| n + 1)));
        // SAFETY: the caller's layout.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: a block of the system's allocator, with its layout.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: a block of `alloc`, with its layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    COUNT.set(Some(0));
    work();
    COUNT.take().unwrap()
}

fn ramp(n: usize) -> Array {
    let values: Vec<f32> = (0..n).map(|i| i as f32 / n as f32).collect();
    Array::from_slice(&values, &[n]).unwrap()
}

#[test]
fn an_evaluation_costs_the_same_before_and_after_a_profile() {
    own_process!();
    let x = ramp(64);
    let run = || {
        let y = (&x.exp().unwrap() + &x).unwrap();
        y.matmul(&x).unwrap().eval().unwrap();
    };
    let cost = || {
        reset_stats();
        let allocations = allocations(run);
        (allocations, stats())
    };
    // Plans and threads are made at the first, and the allocator's lists filled.
    (0..3).for_each(|_| run());
    let before = cost();
    let running = profile().unwrap();
    run();
    let report = running.finish().unwrap();
    let recorded: u64 = report.events().iter().map(|e| e.commands).sum();
    run();
    assert_eq!((cost(), recorded), (before, 2));
}

#[test]
fn operations_with_their_tensors_and_means() {
    own_process!();
    let x = ramp(12).reshape(&[3, 4]).unwrap();
    x.eval().unwrap();
    let running = profile().unwrap();
    let y = (&x.exp().unwrap() * &x).unwrap().sum(KeepDims(1)).unwrap();
    y.eval().unwrap();
    x.negative().unwrap().transpose().unwrap().eval().unwrap();
    let report = running.finish().unwrap();
    let [sum, _, transposed] = report.events() else { panic!("{report}") };
    assert_eq!((sum.operation().as_str(), sum.op), ("exp+multiply+sum", "sum"));
    assert_eq!(sum.tensors(), "float32[3,4] -> float32[3,1]");
    assert_eq!((sum.dispatch, sum.clock, sum.depth), (Dispatch::Native, Clock::Device, 0));
    assert_eq!((sum.commands, sum.bytes_read, sum.bytes_written), (1, 48, 12));
    assert_eq!((sum.device, sum.backend), (Device::CPU, "cpu"));
    assert_eq!((transposed.dispatch, transposed.bytes()), (Dispatch::View, 0));
    assert!(sum.start + sum.duration <= transposed.start + transposed.duration);
    let [first, second] = report.plannings() else { panic!("{report}") };
    assert_eq!((first.operations, first.tasks, second.tasks), (3, 1, 2));
    let rows = report.rows();
    assert_eq!(rows.iter().map(|r| r.calls).sum::<u64>(), 3);
    let trace: Value = serde_json::from_str(&report.trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(|e| e["name"] == name).count();
    assert_eq!((named("exp+multiply+sum"), named("transpose"), named("plan")), (1, 1, 2));
    assert_eq!(named("process_name"), 2);
}

/// Has gpu:0 and gpu:1, mocks that run ahead and have a clock of their own.
fn with_mocks() -> Stream {
    mock_device::timing::OFFERED.store(true, Ordering::SeqCst);
    // SAFETY: the mock keeps to the contract.
    let devices = unsafe { register(mock_device::init) }.unwrap();
    assert_eq!(devices.len(), 2);
    new_stream(Device::gpu(0)).unwrap()
}

#[test]
fn times_of_a_device_have_no_preparation_by_the_host_in_them() {
    own_process!();
    let gpu = with_mocks();
    let x = Array::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    let running = profile().unwrap();
    let evaluate = |y: Result<Array>| y.and_then(|y| y.eval()).unwrap();
    evaluate(with_stream(gpu, || x.add(&x)));
    evaluate(with_stream(gpu, || x.subtract(&x)));
    evaluate(with_stream(gpu, || x.reshape(&[1, 2])?.transpose()));
    let report = running.finish().unwrap();
    let times = |event: &profile::Event| (event.op, event.commands, event.duration, event.clock);
    let events: Vec<_> = report.events().iter().filter(|e| e.commands > 0).map(times).collect();
    let alone = |op| (op, 1, mock_device::timing::COMMAND, Clock::Device);
    assert_eq!(events, [alone("add"), alone("subtract")], "{report}");
    // No command, no work of the device.
    let view = report.events().iter().find(|e| e.op == "transpose").unwrap();
    assert_eq!((view.dispatch, view.clock), (Dispatch::View, Clock::Host));
}

/// A chain of `n` additions and subtractions, each in its own task.
fn chain(x: &Array, n: usize) -> Result<Array> {
    let step = |y: Array, i| if i % 3 == 0 { y.subtract(x) } else { y.add(x) };
    (0..n).try_fold(x.clone(), step)
}

#[test]
fn replayed_commands_have_the_events_of_their_recording() {
    own_process!();
    let f = transforms::compile(|x: &[Array]| {
        let y = (&x[0].matmul(&x[1])?.exp()? + &x[0])?;
        let z = y.matmul(&x[1])?.transpose()?.sum(0)?;
        Ok(vec![(&z.sin()? * &z)?, y.max(KeepDims(1))?])
    });
    let x = ramp(16).reshape(&[4, 4]).unwrap();
    let call = || {
        let made = f.call(&[x.clone(), x.clone()]).unwrap();
        eval(&made).unwrap();
    };
    let running = profile().unwrap();
    call();
    let first = running.finish().unwrap();
    let counts = || {
        reset_stats();
        call();
        stats()
    };
    let without = counts();
    let running = profile().unwrap();
    assert_eq!(counts(), without);
    let second = running.finish().unwrap();
    assert_eq!(counts(), without);
    let is_call = |e: &&profile::Event| e.dispatch == Dispatch::Compiled;
    let [recorded, replayed] = [&first, &second].map(|report| {
        let call = report.events().iter().find(is_call).unwrap();
        assert_eq!((call.op, call.depth, call.commands), ("compiled", 0, without.commands));
        assert_eq!(
            (call.bytes_read, call.bytes_written),
            (without.bytes_read, without.bytes_written)
        );
        let inside = report.events().iter().filter(|e| e.depth > 0 && e.commands > 0);
        let told = |e: &profile::Event| {
            let ran = (e.dispatch, e.commands, e.bytes_read, e.bytes_written, e.clock);
            (e.operation(), e.tensors(), ran, e.depth, e.part)
        };
        inside.map(told).collect::<Vec<_>>()
    });
    assert_eq!(recorded, replayed);
    assert!(
        recorded.iter().any(|e| e.0 == "exp+add" && e.1.ends_with("-> float32[4,4]")),
        "{first}"
    );
    assert!(
        first.events().iter().all(|e| !e.replayed) && second.events().iter().all(|e| e.replayed)
    );
    // The table has the operations, each once.
    let calls = second
        .rows()
        .iter()
        .map(|r| (r.calls, r.replayed))
        .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert_eq!(calls, (replayed.len() as u64, replayed.len() as u64));
    assert!(second.rows().iter().all(|r| r.operation != "compiled"));
}

#[test]
fn each_replayed_command_has_its_time() {
    own_process!();
    let gpu = with_mocks();
    let f = transforms::compile(|x: &[Array]| Ok(vec![chain(&x[0], 80)?]));
    let x = Array::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    let call = || eval(&with_stream(gpu, || f.call(std::slice::from_ref(&x))).unwrap()).unwrap();
    (0..2).for_each(|_| call());
    let running = profile().unwrap();
    call();
    let report = running.finish().unwrap();
    let [operations @ .., whole] = report.events() else { panic!("{report}") };
    assert_eq!((operations.len() as u64, whole.op), (whole.commands, "compiled"));
    assert!(whole.replayed && operations.len() >= 64);
    for event in operations {
        let ran = (event.duration, event.clock, event.commands, event.depth, event.replayed);
        assert_eq!(ran, (mock_device::timing::COMMAND, Clock::Device, 1, 1, true));
        assert_eq!(event.tensors(), "float32[2], float32[2] -> float32[2]");
    }
    assert_eq!(whole.duration, whole.commands * mock_device::timing::COMMAND);
}

#[test]
fn one_runs_at_a_time() {
    own_process!();
    let running = profile().unwrap();
    let refused = profile().unwrap_err();
    assert!(matches!(&refused, Error::Runtime(text) if text.contains("is running already")));
    drop(running);
    // Dropped, it is over, and what comes is the next one's alone.
    ramp(3).exp().unwrap().eval().unwrap();
    let running = profile().unwrap();
    ramp(3).sin().unwrap().eval().unwrap();
    let report = running.finish().unwrap();
    assert_eq!(report.events().iter().map(|e| e.op).collect::<Vec<_>>(), ["sin"]);
    assert_eq!(report.dropped(), 0);
}

#[test]
fn failed_operations_leave_no_event() {
    own_process!();
    let running = profile().unwrap();
    let huge = Array::zeros(&[1 << 40, 1 << 10], Dtype::Float32).and_then(|a| a.exp());
    assert!(huge.and_then(|a| a.eval()).is_err());
    ramp(3).sin().unwrap().eval().unwrap();
    let report = running.finish().unwrap();
    assert_eq!(report.events().iter().map(|e| e.op).collect::<Vec<_>>(), ["sin"]);
}

#[cfg(unix)]
#[test]
fn a_forked_child_has_no_profile() {
    own_process!();
    let x = ramp(8);
    let running = profile().unwrap();
    x.exp().unwrap().eval().unwrap();
    let mut running = Some(running);
    let child = || {
        let evaluated = x.sin().and_then(|y| y.eval()).is_ok();
        let next = profile().and_then(|p| {
            x.cos()?.eval()?;
            p.finish()
        });
        let parents = running.take().is_none_or(|p| p.finish().is_err());
        evaluated && parents && next.is_ok_and(|r| r.events().len() == 1)
    };
    // SAFETY: the core can be used after a fork.
    let status = unsafe { in_child(child) };
    assert_eq!(status, 0);
    assert_eq!(running.map(|p| p.finish().unwrap().events().len()), Some(1));
}
