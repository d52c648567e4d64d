//! What the boundary between host and backends costs, in nanoseconds, as JSON:
//! `cargo run --release -p ultramarine --example boundary`. The null backend makes plans and
//! does nothing with commands; `tiny_op` is an addition of two numbers on the CPU, from the call to the value;
//! `resort` is one that another device has decomposed or sent to the CPU.
#![allow(clippy::print_stdout)] // its purpose

use std::ffi::{c_char, c_void};
use std::time::{Duration, Instant};
use ultramarine::{
    Array, Device, Result, default_stream, measure, op_counts, register, set_fusion, with_stream,
};
use ultramarine_abi::{schema::op, *};

unsafe extern "C" fn count(_: *mut c_void) -> u32 {
    1
}

unsafe extern "C" fn info(
    _: *mut c_void,
    _: u32,
    info: *mut DeviceInfo,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    unsafe {
        (*info).synchronous = 1;
        (*info).host_memory = 1;
        (*info).name[0] = b'n' as c_char;
    }
    status::OK
}

unsafe extern "C" fn open(
    _: *mut c_void,
    _: u32,
    device: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    unsafe { *device = std::ptr::null_mut() };
    status::OK
}

unsafe extern "C" fn alloc(
    _: *mut c_void,
    bytes: u64,
    buffer: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    // One size is enough here, and tells `free` what it frees.
    if bytes > 4096 {
        return status::OUT_OF_MEMORY;
    }
    // SAFETY: the host's place for the answer.
    unsafe { *buffer = Box::into_raw(Box::new([0u8; 4096])) as *mut c_void };
    status::OK
}

unsafe extern "C" fn free(_: *mut c_void, buffer: *mut c_void) {
    // SAFETY: a box of `alloc`, given back once.
    drop(unsafe { Box::from_raw(buffer as *mut [u8; 4096]) });
}

unsafe extern "C" fn pointer(_: *mut c_void, buffer: *mut c_void) -> *mut c_void {
    buffer
}

unsafe extern "C" fn copy_in(
    _: *mut c_void,
    _: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    source: *const c_void,
    n: u64,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: both have that many bytes.
    unsafe {
        let to = (buffer as *mut u8).add(offset as usize);
        std::ptr::copy_nonoverlapping(source as *const u8, to, n as usize);
    }
    status::OK
}

unsafe extern "C" fn copy_out(
    _: *mut c_void,
    _: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    target: *mut c_void,
    n: u64,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: both have that many bytes.
    unsafe {
        let from = (buffer as *const u8).add(offset as usize);
        std::ptr::copy_nonoverlapping(from, target as *mut u8, n as usize);
    }
    status::OK
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
unsafe extern "C" fn prepare(
    _: *mut c_void,
    id: u32,
    _: u32,
    _: *const c_void,
    _: *const TensorDesc,
    _: u32,
    _: *const TensorDesc,
    _: u32,
    plan: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    // Sorts go to the CPU; a negation is a product.
    if !matches!(id, op::BINARY | op::COPY | op::FILL) {
        return status::UNSUPPORTED;
    }
    // SAFETY: the host's place for the answer.
    unsafe { *plan = std::ptr::dangling_mut::<u8>() as *mut c_void };
    status::OK
}

unsafe extern "C" fn submit(
    _: *mut c_void,
    _: *mut c_void,
    _: *const Command,
    _: u32,
    _: *mut *mut Error,
) -> Status {
    status::OK
}

unsafe extern "C" fn init(
    _: *const HostTable,
    out: *mut BackendTable,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's table; it came zeroed.
    let t = unsafe { &mut *out };
    t.size = size_of::<BackendTable>() as u32;
    t.abi_major = ABI_MAJOR as u16;
    t.abi_minor = ABI_MINOR as u16;
    t.name = c"null".as_ptr();
    t.device_type = dlpack::device_type::EXT_DEV;
    t.device_count = Some(count);
    t.device_info = Some(info);
    t.device_open = Some(open);
    t.buffer_alloc = Some(alloc);
    t.buffer_free = Some(free);
    t.buffer_host_pointer = Some(pointer);
    t.copy_to_device = Some(copy_in);
    t.copy_to_host = Some(copy_out);
    t.prepare = Some(prepare);
    t.submit = Some(submit);
    status::OK
}

unsafe extern "C" fn overlay(
    host: *const HostTable,
    out: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's arguments, passed on, and its table.
    unsafe {
        let code = init(host, out, error);
        (*out).device_type = dlpack::device_type::CPU;
        code
    }
}

/// The best of several runs, in nanoseconds per round.
fn best(rounds: u32, mut run: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..400 {
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
    // SAFETY: the table above keeps to the contract.
    let null = unsafe { register(init) }?[0];
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
    println!(
        "{{\"call\": {bare:.1}, \"empty_submit\": {submit:.1}, \"plan_and_submit\": {run:.1}, \"tiny_op\": {tiny:.0}, \
         \"native\": {native:.0}, \"decomposed\": {decomposed:.0}, \"cpu\": {cpu:.0}}}"
    );
    for c in op_counts().iter().filter(|c| c.device == null) {
        println!("{}: {} native, {} decomposed, {} cpu", c.op, c.native, c.decomposed, c.cpu);
    }
    Ok(())
}
