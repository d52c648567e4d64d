//! A mock of a device with memory of its own, until real ones are loaded: buffers
//! are opaque handles that the host cannot read, streams run ahead on a thread (with
//! timeline events or without), and of float32 there are three binary operations, filling
//! and copies. Freed memory that a command touches is counted.
#![allow(dead_code, reason = "each test uses a part")]

pub mod stream_memory;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use ultramarine_abi::interface::{
    peer::PeerInterface,
    statistics::{MemoryStatistics, StatisticsInterface},
};
use ultramarine_abi::schema::{BinaryAttrs, binary, op};
use ultramarine_abi::*;

/// Buffers alive.
pub static BUFFERS: AtomicUsize = AtomicUsize::new(0);
/// Copies between the mock and the host.
pub static COPIES: AtomicUsize = AtomicUsize::new(0);

/// True enqueues uploads on streams; set before the devices are registered.
pub static UPLOADS_IN_ORDER: AtomicBool = AtomicBool::new(false);
/// Such uploads that were enqueued and have not begun; and most of them at one time.
pub static UPLOADS: AtomicUsize = AtomicUsize::new(0);
pub static MOST_UPLOADS: AtomicUsize = AtomicUsize::new(0);

/// Commands that touched memory after it was freed. Must stay zero.
pub static VIOLATIONS: AtomicUsize = AtomicUsize::new(0);
/// Most commands that were submitted but not begun at one time.
pub static MOST_AHEAD: AtomicUsize = AtomicUsize::new(0);
/// Buffers above which `buffer_alloc` finds no memory.
pub static MOST_BUFFERS: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Microseconds that each command takes.
pub static DELAY: AtomicU64 = AtomicU64::new(0);
/// Microseconds that the host takes to record an event.
pub static RECORD_DELAY: AtomicU64 = AtomicU64::new(0);
/// The value of each event that was recorded last.
pub static RECORDED: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());
/// Adding this value to itself fails, after it was submitted.
pub const CURSED: f32 = 12345.0;

static WAITING: AtomicUsize = AtomicUsize::new(0);
pub static LIVE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

type Job = Box<dyn FnOnce() -> bool + Send>;

enum Item {
    Run(Job),
    Record(Arc<Event>, u64),
    Wait(Arc<Event>, u64),
    Signal(Sender<()>),
}

/// A timeline event; after a failure, whoever waits for a value not yet reached is told.
#[derive(Default)]
struct Event {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Event {
    fn set(&self, value: u64, failed: bool) {
        let mut state = self.state.lock().unwrap();
        state.0 = state.0.max(value);
        state.1 = failed;
        self.changed.notify_all();
    }

    /// Returns true once the value was reached without a failure.
    fn wait(&self, value: u64) -> bool {
        let mut state = self.state.lock().unwrap();
        while state.0 < value {
            state = self.changed.wait(state).unwrap();
        }
        !state.1
    }
}

fn work(items: Receiver<Item>) {
    let mut failed = false;
    for item in items {
        match item {
            Item::Run(job) => {
                WAITING.fetch_sub(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(DELAY.load(Ordering::SeqCst)));
                failed |= !job();
            }
            // A failure stands until it was recorded.
            Item::Record(event, value) => event.set(value, std::mem::take(&mut failed)),
            Item::Wait(event, value) => _ = event.wait(value),
            Item::Signal(done) => _ = done.send(()),
        }
    }
}

struct Stream(Sender<Item>);

struct Address(*mut f32, usize);
// SAFETY: the mock's jobs run one after the other, on buffers the host holds.
unsafe impl Send for Address {}

impl Address {
    fn is_live(&self) -> bool {
        let live = LIVE.lock().unwrap().contains(&self.1);
        if !live {
            VIOLATIONS.fetch_add(1, Ordering::SeqCst);
        }
        live
    }
}

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
    if UPLOADS_IN_ORDER.load(Ordering::SeqCst) {
        info.flags |= device_flag::UPLOADS_IN_ORDER;
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
    out: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    if BUFFERS.fetch_add(1, Ordering::SeqCst) >= MOST_BUFFERS.load(Ordering::SeqCst) {
        BUFFERS.fetch_sub(1, Ordering::SeqCst);
        return status::OUT_OF_MEMORY;
    }
    let block = Box::into_raw(Box::new(vec![f32::NAN; bytes.div_ceil(4) as usize]));
    LIVE.lock().unwrap().insert(block as usize);
    // SAFETY: the host's place for the answer.
    unsafe { *out = block as *mut c_void };
    status::OK
}

pub unsafe extern "C" fn free(_: *mut c_void, buffer: *mut c_void) {
    BUFFERS.fetch_sub(1, Ordering::SeqCst);
    LIVE.lock().unwrap().remove(&(buffer as usize));
    // SAFETY: a handle of `alloc`, given back once.
    drop(unsafe { Box::from_raw(buffer as *mut Vec<f32>) });
}

unsafe fn bytes(buffer: *mut c_void, offset: u64) -> *mut u8 {
    // SAFETY: a live handle, and an offset inside of the buffer.
    unsafe { ((*(buffer as *mut Vec<f32>)).as_mut_ptr() as *mut u8).add(offset as usize) }
}

unsafe extern "C" fn to_device(
    _: *mut c_void,
    stream: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    source: *const c_void,
    n: u64,
    _: *mut *mut Error,
) -> Status {
    COPIES.fetch_add(1, Ordering::SeqCst);
    if UPLOADS_IN_ORDER.load(Ordering::SeqCst) && !stream.is_null() {
        let under_way = UPLOADS.fetch_add(1, Ordering::SeqCst) + 1;
        MOST_UPLOADS.fetch_max(under_way, Ordering::SeqCst);
        // SAFETY: the source has n bytes, a multiple of four; the handle is live.
        let (to, bytes) = unsafe {
            let at = bytes(buffer, offset) as *mut f32;
            let source = std::slice::from_raw_parts(source as *const u8, n as usize);
            (Address(at, buffer as usize), source.to_vec())
        };
        let job = move || {
            let to = to;
            UPLOADS.fetch_sub(1, Ordering::SeqCst);
            if to.is_live() {
                // SAFETY: the buffer is there and holds that many bytes.
                unsafe {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.0 as *mut u8, n as usize)
                };
            }
            true
        };
        WAITING.fetch_add(1, Ordering::SeqCst);
        return send(stream, Item::Run(Box::new(job)));
    }
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
    let (sender, receiver) = channel();
    std::thread::spawn(move || work(receiver));
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
    let sent = stream.0.send(Item::Signal(done));
    if sent.is_ok() && wait.recv().is_ok() { status::OK } else { status::ERROR }
}

unsafe extern "C" fn event_create(
    _: *mut c_void,
    out: *mut *mut c_void,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    unsafe { *out = Arc::into_raw(Arc::new(Event::default())) as *mut c_void };
    status::OK
}

fn event(handle: *mut c_void) -> Arc<Event> {
    // SAFETY: a handle of `event_create`, which is never destroyed here.
    unsafe {
        Arc::increment_strong_count(handle as *const Event);
        Arc::from_raw(handle as *const Event)
    }
}

fn send(stream: *mut c_void, item: Item) -> Status {
    // SAFETY: a live stream.
    let sent = unsafe { &*(stream as *mut Stream) }.0.send(item);
    if sent.is_ok() { status::OK } else { status::ERROR }
}

/// Has a stream do something when it comes to that.
pub fn enqueue(stream: *mut c_void, f: impl FnOnce() + Send + 'static) -> Status {
    WAITING.fetch_add(1, Ordering::SeqCst);
    let job = move || {
        f();
        true
    };
    send(stream, Item::Run(Box::new(job)))
}

unsafe extern "C" fn record(
    _: *mut c_void,
    stream: *mut c_void,
    handle: *mut c_void,
    value: u64,
    _: *mut *mut Error,
) -> Status {
    std::thread::sleep(Duration::from_micros(RECORD_DELAY.load(Ordering::SeqCst)));
    RECORDED.lock().unwrap().insert(handle as usize, value);
    send(stream, Item::Record(event(handle), value))
}

unsafe extern "C" fn wait_stream(
    _: *mut c_void,
    stream: *mut c_void,
    handle: *mut c_void,
    value: u64,
    _: *mut *mut Error,
) -> Status {
    send(stream, Item::Wait(event(handle), value))
}

unsafe extern "C" fn wait_host(
    _: *mut c_void,
    handle: *mut c_void,
    value: u64,
    _: *mut *mut Error,
) -> Status {
    if event(handle).wait(value) { status::OK } else { status::ERROR }
}

unsafe extern "C" fn query(_: *mut c_void, handle: *mut c_void) -> u64 {
    event(handle).state.lock().unwrap().0
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
    let mut code = 0;
    let known = match id {
        op::COPY | op::FILL => true,
        // SAFETY: BINARY comes with its attributes.
        op::BINARY => unsafe {
            code = (*(attributes as *const BinaryAttrs)).op;
            [binary::ADD, binary::SUBTRACT, binary::MAXIMUM].contains(&code)
        },
        _ => false,
    };
    if !known || descs.iter().any(|d| d.dtype != schema::DTYPES[10].1) {
        return status::UNSUPPORTED;
    }
    if id != op::COPY && descs.iter().any(|d| d.layout != layout::CONTIGUOUS) {
        return status::NEEDS_CONTIGUOUS;
    }
    // SAFETY: the host's place for the answer.
    unsafe { *plan = ((id as usize + 1) << 8 | code as usize) as *mut c_void };
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
        let (id, code) = ((c.plan as usize >> 8) as u32 - 1, (c.plan as usize & 255) as u32);
        let address = |t: &Tensor| {
            assert!(t.dl.data.is_null(), "the host has no address of the mock's memory");
            Address(bytes(t.buffer, t.dl.byte_offset) as *mut f32, t.buffer as usize)
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
            if !(to.is_live() && ins.iter().all(|(a, _)| a.is_live())) {
                return true;
            }
            let mut good = true;
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
                    _ => {
                        let (a, b) = (read(&ins[0]), read(&ins[1]));
                        good &= a != CURSED || b != CURSED;
                        match code {
                            binary::ADD => a + b,
                            binary::SUBTRACT => a - b,
                            _ => a.max(b),
                        }
                    }
                };
            }
            good
        };
        let waiting = WAITING.fetch_add(1, Ordering::SeqCst) + 1;
        MOST_AHEAD.fetch_max(waiting, Ordering::SeqCst);
        send(stream, Item::Run(Box::new(job)))
    }
}

/// True makes the backend copy between its devices by itself.
pub static PEER: AtomicBool = AtomicBool::new(false);
/// Such copies.
pub static PEER_COPIES: AtomicUsize = AtomicUsize::new(0);
/// True makes the backend keep counts and limits of memory of its own.
pub static STATISTICS: AtomicBool = AtomicBool::new(false);
/// Those limits.
pub static LIMITS: [AtomicU64; 3] = [const { AtomicU64::new(7) }; 3];

unsafe extern "C" fn peer_copy(
    _: *mut c_void,
    stream: *mut c_void,
    target: *mut c_void,
    target_offset: u64,
    _: *mut c_void,
    source: *mut c_void,
    source_offset: u64,
    n: u64,
    _: *mut *mut Error,
) -> Status {
    PEER_COPIES.fetch_add(1, Ordering::SeqCst);
    WAITING.fetch_add(1, Ordering::SeqCst);
    // SAFETY: both buffers have n bytes behind the offsets; the host keeps them until the
    // stream has passed this.
    let (to, from) = unsafe {
        (
            Address(bytes(target, target_offset) as *mut f32, target as usize),
            Address(bytes(source, source_offset) as *mut f32, source as usize),
        )
    };
    let job = move || {
        let (to, from) = (to, from);
        if to.is_live() && from.is_live() {
            // SAFETY: as above.
            unsafe {
                std::ptr::copy_nonoverlapping(from.0 as *const u8, to.0 as *mut u8, n as usize)
            };
        }
        true
    };
    send(stream, Item::Run(Box::new(job)))
}

unsafe extern "C" fn read_statistics(
    _: *mut c_void,
    out: *mut MemoryStatistics,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    let out = unsafe { &mut *out };
    (out.active, out.peak, out.cache) = (111, 222, 333);
    status::OK
}

unsafe extern "C" fn set_limit(
    _: *mut c_void,
    which: u32,
    n: u64,
    former: *mut u64,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's place for the answer.
    unsafe { *former = LIMITS[which as usize].swap(n, Ordering::SeqCst) };
    status::OK
}

unsafe extern "C" fn get_limit(_: *mut c_void, which: u32) -> u64 {
    LIMITS[which as usize].load(Ordering::SeqCst)
}

unsafe extern "C" fn interface(_: *mut c_void, id: *const c_char) -> *const c_void {
    static PEERS: PeerInterface =
        PeerInterface { size: size_of::<PeerInterface>() as u32, flags: 0, copy: Some(peer_copy) };
    static COUNTS: StatisticsInterface = StatisticsInterface {
        size: size_of::<StatisticsInterface>() as u32,
        flags: 0,
        read: Some(read_statistics),
        set_limit: Some(set_limit),
        get_limit: Some(get_limit),
        reset_peak: None,
        clear_cache: None,
    };
    // SAFETY: an id of the host.
    let id = unsafe { CStr::from_ptr(id) };
    if id == interface::peer::INTERFACE && PEER.load(Ordering::SeqCst) {
        return &raw const PEERS as *const c_void;
    }
    if id == interface::stream_memory::INTERFACE && stream_memory::OFFERED.load(Ordering::SeqCst) {
        return &raw const stream_memory::TABLE as *const c_void;
    }
    if id == interface::statistics::INTERFACE && STATISTICS.load(Ordering::SeqCst) {
        return &raw const COUNTS as *const c_void;
    }
    std::ptr::null()
}

/// The mock's entry point, with events.
pub unsafe extern "C" fn init(
    host: *const HostTable,
    out: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's tables.
    let code = unsafe { init_plain(host, out, error) };
    // SAFETY: the host's table.
    let t = unsafe { &mut *out };
    t.event_create = Some(event_create);
    t.event_record = Some(record);
    t.event_wait_stream = Some(wait_stream);
    t.event_wait_host = Some(wait_host);
    t.event_query = Some(query);
    t.name = c"mock".as_ptr();
    t.interface = Some(interface);
    code
}

/// The mock's entry point, without events.
pub unsafe extern "C" fn init_plain(
    _: *const HostTable,
    out: *mut BackendTable,
    _: *mut *mut Error,
) -> Status {
    // SAFETY: the host's table; it came zeroed.
    let t = unsafe { &mut *out };
    t.abi_major = ABI_MAJOR as u16;
    t.abi_minor = ABI_MINOR as u16;
    t.name = c"plain".as_ptr();
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
