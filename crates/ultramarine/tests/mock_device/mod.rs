//! A mock of a device with memory of its own, until real ones are loaded: buffers
//! are opaque handles that the host cannot read, streams run ahead on a thread,
//! and only float32 addition, filling and contiguous copies exist.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use ultramarine_abi::schema::{BinaryAttrs, binary, op};
use ultramarine_abi::*;

/// Buffers alive.
pub static BUFFERS: AtomicUsize = AtomicUsize::new(0);
/// Copies between the mock and the host.
pub static COPIES: AtomicUsize = AtomicUsize::new(0);

type Job = Box<dyn FnOnce() + Send>;

struct Stream(Sender<Job>);

struct Address(*mut f32);
// SAFETY: the mock's jobs run one after the other, on buffers the host holds.
unsafe impl Send for Address {}

unsafe extern "C" fn device_count(_: *mut c_void) -> u32 {
    2
}

unsafe extern "C" fn device_info(
    _: *mut c_void,
    index: u32,
    info: *mut DeviceInfo,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    let info = unsafe { &mut *info };
    info.name[0] = b'm' as c_char;
    info.name[1] = b'0' as c_char + index as c_char;
    info.dtypes_storage = 1 << 10;
    info.dtypes_arithmetic = 1 << 10;
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
    out: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    BUFFERS.fetch_add(1, Ordering::SeqCst);
    let block = vec![f32::NAN; bytes.div_ceil(4) as usize];
    // SAFETY: the host's place for the answer.
    unsafe { *out = Box::into_raw(Box::new(block)) as *mut c_void };
    status::OK
}

unsafe extern "C" fn free(_: *mut c_void, buffer: *mut c_void) {
    BUFFERS.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: a handle of `alloc`, given back once.
    drop(unsafe { Box::from_raw(buffer as *mut Vec<f32>) });
}

unsafe fn bytes(buffer: *mut c_void, offset: u64) -> *mut u8 {
    // SAFETY: a live handle, and an offset inside of the buffer.
    unsafe { ((*(buffer as *mut Vec<f32>)).as_mut_ptr() as *mut u8).add(offset as usize) }
}

unsafe extern "C" fn to_device(
    _: *mut c_void,
    _: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    source: *const c_void,
    n: u64,
    _: *mut *mut Error,
) -> Status {
    COPIES.fetch_add(1, Ordering::SeqCst);
    // SAFETY: both have n bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(source as *const u8, bytes(buffer, offset), n as usize)
    };
    status::OK
}

unsafe extern "C" fn to_host(
    _: *mut c_void,
    _: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    target: *mut c_void,
    n: u64,
    _: *mut *mut Error,
) -> Status {
    COPIES.fetch_add(1, Ordering::SeqCst);
    // SAFETY: both have n bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes(buffer, offset), target as *mut u8, n as usize) };
    status::OK
}

unsafe extern "C" fn stream_create(
    _: *mut c_void,
    out: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    let (sender, receiver) = channel::<Job>();
    std::thread::spawn(move || receiver.into_iter().for_each(|job| job()));
    // SAFETY: the host's place for the answer.
    unsafe { *out = Box::into_raw(Box::new(Stream(sender))) as *mut c_void };
    status::OK
}

unsafe extern "C" fn synchronize(
    _: *mut c_void,
    stream: *mut c_void,
    _: *mut *mut Error,
) -> Status {
    let (done, wait) = channel();
    // SAFETY: a live stream.
    let stream = unsafe { &*(stream as *mut Stream) };
    let sent = stream.0.send(Box::new(move || _ = done.send(())));
    if sent.is_ok() && wait.recv().is_ok() { status::OK } else { status::ERROR }
}

unsafe extern "C" fn prepare(
    _: *mut c_void,
    id: u32,
    _: u32,
    attributes: *const c_void,
    inputs: *const TensorDesc,
    n: u32,
    _: *const TensorDesc,
    _: u32,
    plan: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    let descs: &[TensorDesc] =
        // SAFETY: the host's descriptions.
        if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(inputs, n as usize) } };
    let known = match id {
        op::COPY | op::FILL => true,
        // SAFETY: BINARY comes with its attributes.
        op::BINARY => unsafe { (*(attributes as *const BinaryAttrs)).op == binary::ADD },
        _ => false,
    };
    if !known || descs.iter().any(|d| d.dtype != schema::DTYPES[10].1) {
        return status::UNSUPPORTED;
    }
    if id != op::COPY && descs.iter().any(|d| d.layout != layout::CONTIGUOUS) {
        return status::NEEDS_CONTIGUOUS;
    }
    // SAFETY: the host's place for the answer.
    unsafe { *plan = (id as usize + 1) as *mut c_void };
    status::OK
}

unsafe extern "C" fn submit(
    _: *mut c_void,
    stream: *mut c_void,
    command: *const Command,
    _: u32,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's command, one at a time, valid for this call; addresses of
    // buffers stay valid until the stream was synchronised.
    unsafe {
        let c = &*command;
        let id = c.plan as usize as u32 - 1;
        let address = |t: &Tensor| {
            assert!(t.dl.data.is_null(), "the host has no address of the mock's memory");
            Address(bytes(t.buffer, t.dl.byte_offset) as *mut f32)
        };
        let out = &*c.outputs;
        let to = address(out);
        let list = |p: *mut i64, n: i32| -> Vec<i64> {
            if n == 0 { vec![] } else { std::slice::from_raw_parts(p, n as usize).to_vec() }
        };
        let shape = list(out.dl.shape, out.dl.ndim);
        let n: i64 = shape.iter().product();
        let ins: Vec<(Address, Vec<i64>)> = (0..c.n_inputs as usize)
            .map(|i| {
                let t = &*c.inputs.add(i);
                (address(t), list(t.dl.strides, t.dl.ndim))
            })
            .collect();
        let value = if id == op::FILL { f32::from_bits((*c.scalars)[0] as u32) } else { 0.0 };
        let job = move || {
            let to = to;
            for i in 0..n {
                let read = |(from, strides): &(Address, Vec<i64>)| {
                    let (mut rest, mut at) = (i, 0);
                    for (n, s) in shape.iter().zip(strides).rev() {
                        at += rest % n * s;
                        rest /= n;
                    }
                    *from.0.offset(at as isize)
                };
                *to.0.offset(i as isize) = match id {
                    op::FILL => value,
                    op::COPY => read(&ins[0]),
                    _ => read(&ins[0]) + read(&ins[1]),
                };
            }
        };
        let sent = (*(stream as *mut Stream)).0.send(Box::new(job));
        if sent.is_ok() { status::OK } else { status::ERROR }
    }
}

/// The mock's entry point.
pub unsafe extern "C" fn init(
    _: *const HostTable,
    out: *mut BackendTable,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's table; it came zeroed.
    let t = unsafe { &mut *out };
    t.abi_major = ABI_MAJOR as u16;
    t.abi_minor = ABI_MINOR as u16;
    t.name = c"mock".as_ptr();
    t.device_type = dlpack::device_type::EXT_DEV;
    t.device_count = Some(device_count);
    t.device_info = Some(device_info);
    t.device_open = Some(open);
    t.buffer_alloc = Some(alloc);
    t.buffer_free = Some(free);
    t.copy_to_device = Some(to_device);
    t.copy_to_host = Some(to_host);
    t.stream_create = Some(stream_create);
    t.stream_synchronize = Some(synchronize);
    t.prepare = Some(prepare);
    t.submit = Some(submit);
    status::OK
}
