//! The cost of the boundary between host and backends, in nanoseconds:
//! `cargo run --release -p ultramarine-bench --bin boundary [--json]`. The null backend makes plans and ignores
//! commands. `tiny op` is an addition of two numbers on the CPU, from the call to the value. `native`, `decomposed`
//! and `cpu` are one-element operations on the null backend: an addition that it takes, a negation that becomes a
//! product, a sort that goes to the CPU.

use std::ffi::c_void;
use std::time::{Duration, Instant};
use ultramarine::{
    Array, Device, Result, default_stream, measure, op_counts, register, set_fusion, with_stream,
};
use ultramarine_abi::helper::{
    self, Backend, CommandRef, Failure, Host, Request, Result as Answer, SyncDevice,
};
use ultramarine_abi::{
    BackendTable, Command, DeviceInfo, Error, HostTable, Status, dlpack::device_type, inline_text,
    schema::op, status,
};
use ultramarine_bench::{Figure, Report};

struct Null(Host);

impl Backend for Null {
    type Device = Null;

    fn new(host: Host) -> Answer<Self> {
        Ok(Null(host))
    }

    fn device_info(&self, _index: u32, info: &mut DeviceInfo) -> Answer<()> {
        (info.synchronous, info.host_memory) = (1, 1);
        info.name = inline_text("null");
        Ok(())
    }

    fn open(&self, _index: u32) -> Answer<Null> {
        Ok(Null(self.0))
    }
}

impl SyncDevice for Null {
    ultramarine_abi::host_memory_buffers!(0);

    type Plan = ();

    fn prepare(&self, request: &Request<'_>) -> Answer<()> {
        match request.op {
            op::BINARY | op::COPY | op::FILL => Ok(()),
            _ => Err(Failure::unsupported("sums, copies and fills are all there is")),
        }
    }

    fn run(&self, _plan: &(), _command: &CommandRef<'_, Self>) -> Answer<()> {
        Ok(())
    }
}

/// A submit that does nothing.
unsafe extern "C" fn submit(
    _: *mut c_void,
    _: *mut c_void,
    _: *const Command,
    _: u32,
    _: *mut *mut Error,
) -> Status {
    status::OK
}

/// The null backend as a device of a type, without what the helper does in a submit.
unsafe fn fill(
    device_type: i32,
    host: *const HostTable,
    table: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the arguments are those of the contract's entry point.
    unsafe {
        let code = helper::init::<Null>(c"null", device_type, host, table, error);
        if code == status::OK {
            (*table).submit = Some(submit);
        }
        code
    }
}

unsafe extern "C" fn gpu(
    host: *const HostTable,
    table: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's arguments, passed on.
    unsafe { fill(device_type::EXT_DEV, host, table, error) }
}

unsafe extern "C" fn overlay(
    host: *const HostTable,
    table: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's arguments, passed on.
    unsafe { fill(device_type::CPU, host, table, error) }
}

/// Timed runs of each figure.
const RUNS: u64 = 400;

/// The best of several runs, in nanoseconds per round.
fn best(rounds: u32, mut run: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        least = least.min(run()?.as_nanos() as f64 / rounds as f64);
    }
    Ok(least)
}

fn timed(rounds: u32, work: impl Fn() -> Result<()>) -> Result<f64> {
    best(rounds, || {
        let start = Instant::now();
        (0..rounds).try_for_each(|_| work())?;
        Ok(start.elapsed())
    })
}

fn main() -> Result<()> {
    const ROUNDS: u32 = 1000;
    let x = Array::from_slice(&[1.0f32], &[1])?;
    let tiny = timed(ROUNDS, || x.add(&x)?.eval())?;
    // SAFETY: the helper keeps to the contract, and so does a submit that does nothing.
    let null = unsafe { register(gpu) }?[0];
    set_fusion(false);
    let stream = default_stream(null)?;
    let on_null = |f: fn(&Array) -> Result<Array>| {
        timed(ROUNDS / 10, || with_stream(stream, || f(&x))?.eval())
    };
    let native = on_null(|x| x.add(x))?;
    let decomposed = on_null(Array::negative)?;
    let cpu = on_null(|x| x.sort(Some(0)))?;
    // Over the CPU's kernels, of whose commands none waits for another stream.
    // SAFETY: as above.
    unsafe { register(overlay) }?;
    let times = |i: usize| best(ROUNDS, || Ok(measure::submits(Device::CPU, ROUNDS)?[i]));
    let (bare, submit, run) = (times(0)?, times(1)?, times(2)?);
    let report = Report::from_args("boundary");
    for (name, value) in [
        ("call", bare),
        ("empty submit", submit),
        ("plan and submit", run),
        ("tiny op", tiny),
        ("native", native),
        ("decomposed", decomposed),
        ("cpu", cpu),
    ] {
        report.print(&Figure::new(name, value, "ns", RUNS));
    }
    for c in op_counts().iter().filter(|c| c.device == null) {
        let (native, decomposed, cpu) = (c.native, c.decomposed, c.cpu);
        report.note(&format!("{}: {native} native, {decomposed} decomposed, {cpu} cpu", c.op));
    }
    Ok(())
}
