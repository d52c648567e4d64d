//! Wrong calls through a watched table, and wrong answers behind it. The backend is a mock that runs
//! ahead in name only: it keeps what is asked of it and does nothing.

mod mock;

use core::ffi::c_void;
use mock::*;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use ultramarine_abi::{
    self as abi, BackendTable, Command, Status, Tensor, TensorDesc,
    dlpack::{DLDevice, DLTensor, device_type},
    layout,
    schema::{self, DTYPES, op},
    status,
};
use ultramarine_runtime::{
    error::Error,
    host_table,
    sync::lock,
    validation_layer::{validation_findings, with_validation_layer},
};

/// A watched mock with a device and a stream.
struct Watched {
    table: BackendTable,
    device: Handle,
    stream: Handle,
    _one_at_a_time: MutexGuard<'static, ()>,
}

// SAFETY: handles are numbers, the table is plain data.
unsafe impl Sync for Watched {}

macro_rules! call {
    ($t:expr, $name:ident, $($arg:expr),*) => {{
        let mut error = std::ptr::null_mut();
        // SAFETY: the table has the function; what the arguments point at is valid.
        let code = unsafe { ($t.table.$name.expect("the mock has it"))($($arg,)* &mut error) };
        host_table::check(stringify!($name), code, error)
    }};
}

macro_rules! make {
    ($t:expr, $name:ident $(, $arg:expr)*) => {{
        let mut handle: Handle = std::ptr::null_mut();
        call!($t, $name, $t.device, $($arg,)* &mut handle).map(|()| handle)
    }};
}

/// Calls a function without a status, and tells how many findings it gave.
macro_rules! end {
    ($t:expr, $name:ident, $handle:expr) => {{
        let before = validation_findings();
        // SAFETY: the mock does nothing with handles.
        unsafe { ($t.table.$name.expect("the mock has it"))($t.device, $handle) };
        validation_findings() - before
    }};
}

// Below the macros that it uses.
mod collectives;
mod foreign_memory;
mod recordings;
mod timing;
mod uploads;
mod user_kernels;

impl Watched {
    fn new() -> Watched {
        static LOCK: Mutex<()> = Mutex::new(());
        let guard = lock(&LOCK);
        WRONG.store(0, Ordering::SeqCst);
        // SAFETY: all-zero is a valid table.
        let mut table: BackendTable = unsafe { std::mem::zeroed() };
        table.name = c"mock".as_ptr();
        table.device_type = device_type::EXT_DEV;
        table.device_count = Some(count);
        table.device_info = Some(info);
        table.device_open = Some(open);
        table.device_close = Some(close);
        table.buffer_alloc = Some(alloc);
        table.buffer_free = Some(free);
        table.copy_to_device = Some(copy_in);
        table.copy_to_host = Some(copy_out);
        table.stream_create = Some(make);
        table.stream_destroy = Some(end);
        table.stream_synchronize = Some(synchronize);
        table.event_create = Some(make);
        table.event_record = Some(on_stream);
        table.event_wait_stream = Some(on_stream);
        table.event_wait_host = Some(wait_host);
        table.event_query = Some(query);
        table.event_destroy = Some(end);
        table.prepare = Some(prepare);
        table.plan_release = Some(end);
        table.submit = Some(submit);
        table.interface = Some(foreign_memory::interface);
        let null = std::ptr::null_mut();
        let table = with_validation_layer(table);
        let mut made = Watched { table, device: null, stream: null, _one_at_a_time: guard };
        let mut device = null;
        call!(made, device_open, null, 0, &mut device).expect("it opens");
        made.device = device;
        made.stream = make!(made, stream_create).expect("a stream");
        made
    }

    /// A plan of an op on contiguous float32 matrices.
    fn plan(&self, op: u32, inputs: usize) -> ultramarine_runtime::Result<Handle> {
        let desc = TensorDesc {
            size: size_of::<TensorDesc>() as u32,
            ndim: 2,
            dtype: DTYPES[10].1,
            layout: layout::CONTIGUOUS,
        };
        let descs = [desc; 3];
        let attrs = schema::NoAttrs::new();
        let attrs = (&raw const attrs).cast();
        let (inputs, mut plan) = (inputs as u32, std::ptr::null_mut());
        let (first, device) = (descs.as_ptr(), self.device);
        call!(self, prepare, device, op, 1, attrs, first, inputs, first, 1, &mut plan)?;
        Ok(plan)
    }

    fn submit(&self, plan: Handle, tensors: &[Tensor]) -> ultramarine_runtime::Result<()> {
        self.submit_list(plan, &[tensors])
    }

    /// Submits a command for each list of tensors, together.
    fn submit_list(&self, plan: Handle, all: &[&[Tensor]]) -> ultramarine_runtime::Result<()> {
        let commands: Vec<Command> =
            all.iter().map(|tensors| Self::command(plan, tensors)).collect();
        let (first, n) = (commands.as_ptr(), commands.len() as u32);
        call!(self, submit, self.device, self.stream, first, n)
    }

    fn command(plan: Handle, tensors: &[Tensor]) -> Command {
        let n_inputs = tensors.len() - 1;
        Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan,
            inputs: tensors.as_ptr(),
            outputs: &raw const tensors[n_inputs],
            scalars: std::ptr::null(),
            n_inputs: n_inputs as u32,
            n_outputs: 1,
            n_scalars: 0,
            tensor_stride: size_of::<Tensor>() as u32,
            workspace: std::ptr::null_mut(),
        }
    }
}

/// A float32 matrix in a buffer.
fn tensor(buffer: Handle, bytes: u64, shape: &mut [i64; 2], strides: &mut [i64; 2]) -> Tensor {
    Tensor {
        size: size_of::<Tensor>() as u32,
        flags: 0,
        dl: DLTensor {
            data: std::ptr::null_mut(),
            device: DLDevice { device_type: device_type::EXT_DEV, device_id: 0 },
            ndim: 2,
            dtype: DTYPES[10].1,
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset: 0,
        },
        buffer,
        buffer_size: bytes,
        wait: std::ptr::null_mut(),
        wait_value: 0,
    }
}

/// Asserts that a call was found to be wrong, in these words.
fn assert_found<T: std::fmt::Debug>(result: ultramarine_runtime::Result<T>, words: &str) {
    match result {
        Err(Error::Runtime(text)) => {
            assert!(text.starts_with("validation: ") && text.contains(words), "{text}");
        }
        other => panic!("{other:?} instead of: {words}"),
    }
}

#[test]
fn lives_of_handles() {
    let t = Watched::new();
    let clean = validation_findings();
    let a = make!(t, buffer_alloc, 64).expect("a buffer");
    let mut bytes = [0u8; 128];
    let place = bytes.as_mut_ptr().cast();
    let null = std::ptr::null_mut();
    call!(t, copy_to_host, t.device, null, a, 0, place, 64).expect("inside");
    assert_eq!(validation_findings(), clean);
    assert_found(call!(t, copy_to_host, t.device, null, a, 32, place, 64), "64 bytes at 32");
    assert_found(make!(t, buffer_alloc, 0), "no bytes");
    let freed = FREED.load(Ordering::SeqCst);
    assert_eq!(end!(t, buffer_free, a), 0);
    assert_eq!(end!(t, buffer_free, a), 1);
    assert_eq!(FREED.load(Ordering::SeqCst) - freed, 1, "the second one is not passed on");
    assert_found(call!(t, copy_to_host, t.device, null, a, 0, place, 8), "is gone already");
    assert_found(call!(t, copy_to_host, t.device, null, 0x5 as Handle, 0, place, 8), "is unknown");
    assert_eq!(end!(t, event_destroy, 0x5 as Handle), 1);
    let plan = t.plan(op::COPY, 1).expect("a plan");
    assert_eq!(end!(t, plan_release, plan), 0);
    assert_eq!(end!(t, plan_release, plan), 1);
    // A device with children left.
    let close = || {
        let before = validation_findings();
        // SAFETY: the mock does nothing.
        unsafe { (t.table.device_close.expect("the mock has it"))(t.device) };
        validation_findings() - before
    };
    assert_eq!(close(), 1, "its stream is alive");
    assert_eq!(close(), 1, "it is closed already");
}

#[test]
fn tensors_of_commands() {
    let t = Watched::new();
    let a = make!(t, buffer_alloc, 64).expect("a buffer");
    let b = make!(t, buffer_alloc, 64).expect("a buffer");
    let plan = t.plan(op::UNARY, 1).expect("a plan");
    let matmul = t.plan(op::MATMUL, 2).expect("a plan");
    let (mut shape, mut strides) = ([4i64, 4], [4i64, 1]);
    let x = tensor(a, 64, &mut shape, &mut strides);
    let y = tensor(b, 64, &mut shape, &mut strides);
    let clean = validation_findings();
    t.submit(plan, &[x, y]).expect("as it should be");
    t.submit(plan, &[x, x]).expect("elementwise ops may write over an input");
    t.submit(matmul, &[x, x, y]).expect("inputs may be the same");
    assert_eq!(validation_findings(), clean);

    t.submit_list(plan, &[&[x, y], &[y, x], &[x, y]]).expect("each as it should be");
    assert_eq!(validation_findings(), clean);

    assert_found(t.submit(matmul, &[x, y, x]), "output 0 of matmul overlaps input 0");
    let long = Tensor { buffer_size: 65, ..x };
    assert_found(t.submit_list(plan, &[&[x, y], &[y, x], &[long, y]]), "has 64 bytes, not 65");
    assert_found(t.submit(matmul, &[x, y]), "1 inputs");
    let changed = |f: &dyn Fn(&mut Tensor)| {
        let mut x = x;
        f(&mut x);
        t.submit(plan, &[x, y])
    };
    assert_found(changed(&|x| x.dl.strides = std::ptr::null_mut()), "strides are NULL");
    assert_found(changed(&|x| x.dl.byte_offset = 4), "reaches from byte 4 to 68");
    assert_found(changed(&|x| x.dl.byte_offset = 2), "not aligned");
    assert_found(changed(&|x| x.dl.ndim = 1), "rank or dtype");
    assert_found(changed(&|x| x.dl.dtype = DTYPES[7].1), "rank or dtype");
    assert_found(changed(&|x| x.buffer_size = 65), "has 64 bytes, not 65");
    assert_found(changed(&|x| x.buffer = 0x5 as Handle), "is unknown");
    assert_found(changed(&|x| x.dl.device.device_type = 2), "device of type 2");
    assert_found(changed(&|x| x.wait = 0x5 as Handle), "does not wait in commands");
    let (mut zero, mut odd) = ([0i64, 4], [5i64, 1]);
    assert_found(t.submit(plan, &[tensor(a, 64, &mut zero, &mut strides), y]), "size 0");
    assert_found(t.submit(plan, &[tensor(a, 64, &mut shape, &mut odd), y]), "contiguous layout");
    // Half of the rows: they overlap, but lie elsewhere.
    let mut half = [2i64, 4];
    let (mut upper, mut lower) = (x, x);
    (upper.dl.shape, lower.dl.shape) = (half.as_mut_ptr(), half.as_mut_ptr());
    lower.dl.byte_offset = 32;
    t.submit(plan, &[upper, lower]).expect("disjoint parts of a buffer");
    lower.dl.byte_offset = 16;
    assert_found(t.submit(plan, &[upper, lower]), "overlaps");
}

#[test]
fn events_and_memory_in_flight() {
    let t = Watched::new();
    let event = make!(t, event_create).expect("an event");
    let record = |value| call!(t, event_record, t.device, t.stream, event, value);
    record(2).expect("it grows");
    assert_found(record(2), "it may only grow");
    call!(t, event_wait_host, t.device, event, 2).expect("it was recorded");
    assert_found(call!(t, event_wait_host, t.device, event, 3), "no more than 2");
    // SAFETY: the mock does nothing with handles.
    let ask = || unsafe { (t.table.event_query.expect("the mock has it"))(t.device, event) };
    let clean = validation_findings();
    ask();
    assert_eq!(validation_findings(), clean);
    WRONG.store(EVENT_RUNS_AHEAD, Ordering::SeqCst);
    ask();
    assert_eq!(validation_findings(), clean + 1);
    WRONG.store(0, Ordering::SeqCst);

    // A buffer is in use until the stream is seen to have passed the command.
    let plan = t.plan(op::UNARY, 1).expect("a plan");
    let (mut shape, mut strides) = ([4i64, 4], [4i64, 1]);
    let mut used = || {
        let buffer = make!(t, buffer_alloc, 64).expect("a buffer");
        let x = tensor(buffer, 64, &mut shape, &mut strides);
        t.submit(plan, &[x, x]).expect("as it should be");
        buffer
    };
    let (early, late) = (used(), used());
    assert_eq!(end!(t, buffer_free, early), 1);
    record(5).expect("it grows");
    let after = used();
    call!(t, event_wait_host, t.device, event, 5).expect("it was recorded");
    assert_eq!(end!(t, buffer_free, late), 0);
    assert_eq!(end!(t, buffer_free, after), 1);
    let last = used();
    call!(t, stream_synchronize, t.device, t.stream).expect("it drains");
    assert_eq!(end!(t, buffer_free, last), 0);

    // By way of another stream, which waits for this one.
    let other = make!(t, stream_create).expect("a stream");
    let buffer = used();
    record(6).expect("it grows");
    call!(t, event_wait_stream, t.device, other, event, 6).expect("a wait");
    call!(t, stream_synchronize, t.device, other).expect("it drains");
    assert_eq!(end!(t, buffer_free, buffer), 0);

    // A value between two that were recorded is reached with the later one.
    let (first, second) = (used(), used());
    record(10).expect("it grows");
    let behind = used();
    call!(t, event_wait_stream, t.device, other, event, 8).expect("a wait");
    call!(t, stream_synchronize, t.device, other).expect("it drains");
    assert_eq!(end!(t, buffer_free, first), 0);
    call!(t, event_wait_host, t.device, event, 7).expect("it was recorded");
    assert_eq!(end!(t, buffer_free, second), 0);
    record(12).expect("it grows");
    call!(t, event_wait_host, t.device, event, 9).expect("it was reached before");
    assert_eq!(end!(t, buffer_free, behind), 1);
}

#[test]
fn one_call_at_a_time_on_a_stream() {
    let t = Watched::new();
    let (event, plan) = (make!(t, event_create).expect("an event"), t.plan(op::UNARY, 1));
    let buffer = make!(t, buffer_alloc, 64).expect("a buffer");
    let (event, plan, buffer) = (event as usize, plan.expect("a plan") as usize, buffer as usize);
    WRONG.store(MEETS, Ordering::SeqCst);
    let t = &t;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut shape, mut strides) = ([4i64, 4], [4i64, 1]);
            let x = tensor(buffer as Handle, 64, &mut shape, &mut strides);
            t.submit(plan as Handle, &[x, x]).expect("as it should be");
        });
        MEETING.wait();
        let second = call!(t, event_record, t.device, t.stream, event as Handle, 1);
        assert_found(second, "two calls at once");
        MEETING.wait();
    });
    call!(t, event_record, t.device, t.stream, event as Handle, 1).expect("the stream is free");
}

/// An upload on a stream uses the buffer until the stream has passed it.
#[test]
fn uploads_on_streams() {
    let t = Watched::new();
    let null = std::ptr::null_mut();
    let source = [0u8; 64];
    let upload = |stream: Handle| {
        let buffer = make!(t, buffer_alloc, 64).expect("a buffer");
        let from = source.as_ptr().cast();
        call!(t, copy_to_device, t.device, stream, buffer, 0, from, 64).expect("an upload");
        buffer
    };
    assert_eq!(end!(t, buffer_free, upload(null)), 0);
    assert_eq!(end!(t, buffer_free, upload(t.stream)), 1, "the device may still write it");
    let passed = upload(t.stream);
    call!(t, stream_synchronize, t.device, t.stream).expect("the end");
    assert_eq!(end!(t, buffer_free, passed), 0);
}

#[test]
fn wrong_answers() {
    let t = Watched::new();
    for (what, words) in [
        (OK_WITH_ERROR, "returned OK and an error object"),
        (FAILS_SILENTLY, "made no error object"),
        (NO_STATUS, "which is no status"),
    ] {
        WRONG.store(what, Ordering::SeqCst);
        assert_found(make!(t, buffer_alloc, 64), words);
    }
    WRONG.store(SAME_BUFFER, Ordering::SeqCst);
    make!(t, buffer_alloc, 64).expect("the first one");
    assert_found(make!(t, buffer_alloc, 64), "twice");
    WRONG.store(REFUSES_CONTIGUOUS, Ordering::SeqCst);
    let before = validation_findings();
    t.plan(op::UNARY, 1).expect_err("refused");
    assert_eq!(validation_findings() - before, 1);
    WRONG.store(0, Ordering::SeqCst);
    let plan = t.plan(op::UNARY, 1).expect("a plan");
    let buffer = make!(t, buffer_alloc, 64).expect("a buffer");
    let (mut shape, mut strides) = ([4i64, 4], [4i64, 1]);
    let x = tensor(buffer, 64, &mut shape, &mut strides);
    WRONG.store(REFUSES_ITS_PLAN, Ordering::SeqCst);
    let before = validation_findings();
    t.submit(plan, &[x, x]).expect_err("refused");
    assert_eq!(validation_findings() - before, 1);
    WRONG.store(FAILS_AT_TWO, Ordering::SeqCst);
    let before = validation_findings();
    t.submit_list(plan, &[&[x, x], &[x, x], &[x, x]]).expect_err("it fails");
    assert_eq!(validation_findings(), before);
    t.submit_list(plan, &[&[x, x], &[x, x]]).expect_err("it fails");
    assert_eq!(validation_findings() - before, 1, "there is no command 2 of 2");
}
