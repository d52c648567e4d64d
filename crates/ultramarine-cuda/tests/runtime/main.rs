//! Memory, streams and errors of the backend behind its table, on the emulated driver.
//!
//! Each test is a process: what is tested is what cannot be undone in one.

mod environments;
mod host;
mod recordings;
mod uploads;

use core::ffi::c_void;
use host::{Device, apart};
use ultramarine_abi::helper::{self, Result};
use ultramarine_abi::status;
use ultramarine_cuda::launch::{self, Grid};
use ultramarine_cuda::launch::{Job, Plan, Work};

use ultramarine_cuda::program::{Kernels, Source};

/// A plan whose kernel is that text.
fn plan(name: &str, text: &str) -> *mut c_void {
    struct One(Kernels, Source);
    impl Work for One {
        fn run(&self, job: &Job<'_>) -> Result<()> {
            let kernel = self.0.get(&job.device.programs, (), || self.1.clone())?;
            // SAFETY: a kernel without parameters.
            unsafe { launch::enqueue(job, &kernel, Grid::line(1, 32), &mut []) }
        }
    }
    const HEADERS: &[&str] = &[include_str!("../../kernels/number.cuh")];
    let source = Source::with_body(HEADERS, "one", name.replace(' ', "_"), "", text);
    let plan = Plan::new(name.to_owned(), Box::new(One(Kernels::default(), source)));
    let mut handle = std::ptr::null_mut();
    // SAFETY: a place for the handle.
    unsafe { helper::give(&mut handle, plan) }.expect("a place");
    handle
}

const GOOD: &str = "";
const BAD: &str = "((int *)16)[threadIdx.x] = 1;";

/// A kernel that faults is named by whoever waits; after it all calls say at once what happened,
/// and what is freed harms nobody.
#[test]
fn a_fault_names_its_operation() {
    apart(&[], || {
        let device = Device::open();
        let (stream, event) =
            (device.stream().expect("a stream"), device.event().expect("an event"));
        let buffer = device.alloc(1 << 20).expect("memory");
        let (good, bad) = (plan("exp of float32", GOOD), plan("softmax of float32", BAD));
        let last = plan("add of float32", GOOD);
        device.submit(stream, &[good]).expect("a command that works");
        device.record(stream, event, 1).expect("a record");
        device.wait_host(event, 1).expect("nothing has failed");
        let after = device
            .submit(stream, &[bad, last, last])
            .and_then(|()| device.record(stream, event, 2))
            .and_then(|()| device.wait_host(event, 2));
        let reported = after.expect_err("a fault without an error").text;
        for part in [
            "CUDA error 700 (CUDA_ERROR_ILLEGAL_ADDRESS)",
            ", in softmax of float32 or ",
            "after it (add of float32)",
            "restart the process",
            "ULTRAMARINE_CUDA_BLOCKING",
        ] {
            assert!(reported.contains(part), "{reported}");
        }
        assert!(reported.starts_with("the device's context"), "another is blamed: {reported}");
        assert!(!reported.contains("exp of"), "what was done before is named: {reported}");
        for (what, outcome) in [
            ("alloc", device.alloc(16).map(drop)),
            ("write", device.write(buffer, &[1; 64])),
            ("stream", device.stream().map(drop)),
            ("submit", device.submit(stream, &[good])),
            ("record", device.record(stream, event, 3)),
            ("wait", device.wait_host(event, 3)),
            ("synchronize", device.synchronize(stream)),
        ] {
            let text = outcome.expect_err(what).text;
            assert!(text.contains("lost since CUDA error 700"), "{what}: {text}");
        }
        device.free(buffer);
        device.destroy_event(event);
        device.destroy_stream(stream);
        device.close();
    });
}

#[test]
fn a_blocking_run_names_the_very_operation() {
    let variables = [("ULTRAMARINE_CUDA_BLOCKING", "1")];
    apart(&variables, || {
        let device = Device::open();
        let stream = device.stream().expect("a stream");
        let (good, bad) = (plan("exp of float32", GOOD), plan("softmax of float32", BAD));
        let reported = device.submit(stream, &[good, bad, good]).expect_err("a fault").text;
        assert!(
            reported.contains("attempt to access memory") || reported.contains("CUDA error 700"),
            "{reported}"
        );
        assert!(reported.contains(", in softmax of float32. Arrays"), "{reported}");
        assert!(!reported.contains("BLOCKING"), "{reported}");
    });
}

/// Kept memory is returned to the driver before an allocation fails, and the error says how much memory there is.
#[test]
fn a_lack_of_memory_is_reported_in_parts() {
    let variables = [("EMULATED_CUDA_MEMORY", "67108864")];
    apart(&variables, || {
        let device = Device::open();
        let first = device.alloc(36 << 20).expect("memory");
        device.free(first);
        let second = device.alloc(44 << 20).expect("what is kept is in the way");
        let reported = device.alloc(30 << 20).expect_err("more than there is");
        assert_eq!(reported.code, status::OUT_OF_MEMORY);
        for part in [
            "no memory for 30.0 MiB on Emulated CUDA device",
            "44.0 MiB are in use",
            "20.0 MiB of its 64.0 MiB are free",
            "Drop arrays",
        ] {
            assert!(reported.text.contains(part), "{reported:?}");
        }
        let reported = device.alloc(1 << 40).expect_err("more than the device").text;
        assert!(
            reported.contains("1024.00 GiB") && reported.contains("has 64.0 MiB in all"),
            "{reported}"
        );
        // A block for many is not to be had, one for this is.
        let third = device.alloc(3 << 20).expect("a smaller block");
        device.free(second);
        device.free(third);
        device.free(device.alloc(60 << 20).expect("all of it"));
        device.close();
    });
}

/// A kernel's code takes memory of the device, too: what is kept is given up for it, and one that
/// found none is loaded when there is some.
#[test]
fn a_kernel_is_loaded_when_there_is_memory_for_it() {
    let variables = [("EMULATED_CUDA_MEMORY", "67108864"), ("EMULATED_CUDA_MODULE", "16777216")];
    apart(&variables, || {
        let device = Device::open();
        let stream = device.stream().expect("a stream");
        let (first, second) = (plan("exp of float32", GOOD), plan("add of float32", GOOD));
        device.free(device.alloc(60 << 20).expect("memory"));
        device.submit(stream, &[first]).expect("what is kept is in the way");
        let all = device.alloc(60 << 20).expect("memory");
        let reported =
            device.submit(stream, &[second]).expect_err("there is no memory for a kernel");
        assert_eq!(reported.code, status::OUT_OF_MEMORY, "{reported:?}");
        device.free(all);
        device.submit(stream, &[second]).expect("an old failure");
    });
}
