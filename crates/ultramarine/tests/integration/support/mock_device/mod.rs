//! A mock of a device with memory of its own, until real ones are loaded: buffers
//! are opaque handles that the host cannot read, streams run ahead on a thread (with
//! timeline events or without), and of float32 there are three binary operations, filling
//! and copies. Freed memory that a command touches is counted.
#![allow(dead_code, reason = "each test uses a part")]

mod interfaces;
pub mod stream_memory;
pub mod timing;
pub mod upload;

pub use interfaces::*;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use ultramarine_abi::helper::{
    Backend, Commands, Device, Failure, Host, InterfaceRef, Request, Result, TensorRef, handle,
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
/// All values that were recorded, each with its event, in their order.
pub static RECORDS: Mutex<Vec<(usize, u64)>> = Mutex::new(Vec::new());
/// Lists of commands that were submitted.
pub static SUBMITS: AtomicUsize = AtomicUsize::new(0);
/// The thread that submitted the last command.
pub static SUBMITTER: Mutex<Option<ThreadId>> = Mutex::new(None);
/// Adding this value to itself fails, after it was submitted.
pub const CURSED: f32 = 12345.0;

static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Identities of the buffers that are not yet freed.
static LIVE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

type Job = Box<dyn FnOnce() -> bool + Send>;

enum Item {
    Run(Job),
    Record(Event, u64),
    Wait(Event, u64),
    Signal(Sender<()>),
}

pub type Event = Arc<Timeline>;

/// A timeline: its value, and whether work before that failed. Waits for a later value report the failure.
#[derive(Default)]
pub struct Timeline {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Timeline {
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

pub struct Stream(Sender<Item>);

impl Stream {
    fn send(&self, item: Item) -> Result<()> {
        self.0.send(item).map_err(|_| Failure::new("the stream's thread has ended"))
    }

    fn run(&self, job: impl FnOnce() -> bool + Send + 'static) -> Result<()> {
        WAITING.fetch_add(1, Ordering::SeqCst);
        self.send(Item::Run(Box::new(job)))
    }
}

/// Enqueues a function on a stream, given by its handle.
pub fn enqueue(stream: *mut c_void, f: impl FnOnce() + Send + 'static) -> Status {
    let job = move || {
        f();
        true
    };
    // SAFETY: a live stream.
    let sent = unsafe { handle::<Stream>(stream, "the stream") }.and_then(|s| s.run(job));
    sent.map_or_else(|failure| failure.code, |()| status::OK)
}

/// A buffer: memory of the owner that is dropped with it.
pub struct Buffer {
    id: usize,
    pub data: *mut f32,
    pub len: usize,
    _owner: Box<dyn Any + Send>,
}

// SAFETY: the mock's jobs run one after the other, and the owner is only dropped.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `len` elements, which live as long as `owner`.
    pub fn new(data: *mut f32, len: usize, owner: impl Send + 'static) -> Self {
        static IDS: AtomicUsize = AtomicUsize::new(0);
        let id = IDS.fetch_add(1, Ordering::SeqCst);
        LIVE.lock().unwrap().insert(id);
        Self { id, data, len, _owner: Box::new(owner) }
    }

    fn at(&self, offset: u64) -> Address {
        Address(self.data.wrapping_byte_add(offset as usize), self.id)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        LIVE.lock().unwrap().remove(&self.id);
    }
}

/// Memory of the mock's own, counted in [`BUFFERS`].
struct Memory(Vec<f32>);

impl Drop for Memory {
    fn drop(&mut self) {
        BUFFERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An address, and the identity of the buffer that it lies in.
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

    /// Copies `len` bytes to `self`, unless either buffer was freed.
    fn copy_from(&self, source: &Address, len: usize) -> bool {
        if self.is_live() && source.is_live() {
            // SAFETY: both buffers are there, with that many bytes behind the addresses.
            unsafe { std::ptr::copy_nonoverlapping(source.0 as *const u8, self.0 as *mut u8, len) };
        }
        true
    }
}

struct Mock;

impl Backend for Mock {
    type Device = Mock;

    fn new(_: Host) -> Result<Self> {
        Ok(Mock)
    }

    fn device_count(&self) -> u32 {
        2
    }

    fn device_info(&self, index: u32, info: &mut DeviceInfo) -> Result<()> {
        info.name = inline_text(&format!("m{index}"));
        info.dtypes_storage = 1 << 10;
        info.dtypes_arithmetic = 1 << 10;
        if UPLOADS_IN_ORDER.load(Ordering::SeqCst) {
            info.flags |= device_flag::UPLOADS_IN_ORDER;
        }
        Ok(())
    }

    fn open(&self, _: u32) -> Result<Mock> {
        Ok(Mock)
    }

    fn interface(&self, id: &CStr) -> Option<InterfaceRef> {
        if id == interface::peer::INTERFACE && PEER.load(Ordering::SeqCst) {
            return Some(InterfaceRef::peer(&interfaces::PEERS));
        }
        if id == interface::stream_memory::INTERFACE
            && stream_memory::OFFERED.load(Ordering::SeqCst)
        {
            return Some(InterfaceRef::stream_memory(&stream_memory::TABLE));
        }
        if id == interface::timing::INTERFACE && timing::OFFERED.load(Ordering::SeqCst) {
            return Some(InterfaceRef::timing(&timing::TABLE));
        }
        if id == interface::upload::INTERFACE && upload::OFFERED.load(Ordering::SeqCst) {
            return Some(InterfaceRef::upload(&upload::TABLE));
        }
        let counts = id == interface::statistics::INTERFACE && STATISTICS.load(Ordering::SeqCst);
        counts.then(|| InterfaceRef::statistics(&interfaces::COUNTS))
    }
}

/// A prepared operation: its id, and the code of a binary function.
struct Plan(u32, u32);

impl Device for Mock {
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Plan = Plan;

    fn alloc(&self, bytes: u64) -> Result<Buffer> {
        if BUFFERS.fetch_add(1, Ordering::SeqCst) >= MOST_BUFFERS.load(Ordering::SeqCst) {
            BUFFERS.fetch_sub(1, Ordering::SeqCst);
            return Err(Failure::out_of_memory(bytes));
        }
        let mut memory = Memory(vec![f32::NAN; bytes.div_ceil(4) as usize]);
        Ok(Buffer::new(memory.0.as_mut_ptr(), memory.0.len(), memory))
    }

    fn upload(
        &self,
        stream: Option<&Stream>,
        buffer: &Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        COPIES.fetch_add(1, Ordering::SeqCst);
        let to = buffer.at(offset);
        if let Some(stream) = stream
            && UPLOADS_IN_ORDER.load(Ordering::SeqCst)
        {
            let under_way = UPLOADS.fetch_add(1, Ordering::SeqCst) + 1;
            MOST_UPLOADS.fetch_max(under_way, Ordering::SeqCst);
            let bytes = source.to_vec();
            return stream.run(move || {
                let to = to;
                UPLOADS.fetch_sub(1, Ordering::SeqCst);
                if to.is_live() {
                    // SAFETY: the buffer is there and holds that many bytes.
                    unsafe { to.0.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
                }
                true
            });
        }
        // SAFETY: both have that many bytes.
        unsafe { to.0.cast::<u8>().copy_from(source.as_ptr(), source.len()) };
        Ok(())
    }

    fn download(
        &self,
        _: Option<&Stream>,
        buffer: &Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        COPIES.fetch_add(1, Ordering::SeqCst);
        // SAFETY: both have that many bytes.
        unsafe { target.as_mut_ptr().copy_from(buffer.at(offset).0.cast(), target.len()) };
        Ok(())
    }

    fn stream(&self) -> Result<Stream> {
        let (sender, receiver) = channel();
        std::thread::spawn(move || work(receiver));
        Ok(Stream(sender))
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        let (done, wait) = channel();
        stream.send(Item::Signal(done))?;
        wait.recv().map_err(|_| Failure::new("the stream's thread has ended"))
    }

    fn event(&self) -> Result<Event> {
        Ok(Event::default())
    }

    fn record(&self, stream: &Stream, event: &Event, value: u64) -> Result<()> {
        std::thread::sleep(Duration::from_micros(RECORD_DELAY.load(Ordering::SeqCst)));
        let address = std::ptr::from_ref(event) as usize;
        RECORDED.lock().unwrap().insert(address, value);
        RECORDS.lock().unwrap().push((address, value));
        stream.send(Item::Record(event.clone(), value))
    }

    fn wait_stream(&self, stream: &Stream, event: &Event, value: u64) -> Result<()> {
        stream.send(Item::Wait(event.clone(), value))
    }

    fn wait_host(&self, event: &Event, value: u64) -> Result<()> {
        event.wait(value).then_some(()).ok_or_else(|| Failure::new("work failed"))
    }

    fn query(&self, event: &Event) -> u64 {
        event.state.lock().unwrap().0
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Plan> {
        let code = match request.op {
            op::COPY | op::FILL => 0,
            op::BINARY => request.attributes::<BinaryAttrs>()?.op,
            _ => u32::MAX,
        };
        let known = match request.op {
            op::BINARY => [binary::ADD, binary::SUBTRACT, binary::MAXIMUM].contains(&code),
            _ => code == 0,
        };
        if !known || request.inputs.iter().any(|d| d.dtype != schema::DTYPES[10].1) {
            return Err(Failure::unsupported("no kernel of the mock's"));
        }
        if request.op != op::COPY && !request.contiguous() {
            return Err(Failure::needs_contiguous());
        }
        timing::prepared();
        Ok(Plan(request.op, code))
    }

    fn submit(&self, stream: Option<&Stream>, commands: Commands<'_, Self>) -> Result<()> {
        let stream = stream.ok_or("no stream")?;
        SUBMITS.fetch_add(1, Ordering::SeqCst);
        for command in commands {
            let Plan(id, code) = *command.plan()?;
            let address = |t: &TensorRef<'_, Self>| {
                let data = t.raw().dl.data;
                assert!(data.is_null(), "the host has no address of the mock's memory");
                t.buffer().expect("a buffer of the mock's").at(t.byte_offset())
            };
            let out = command.output(0)?;
            let (to, shape, n) = (address(&out), out.shape().to_vec(), out.len() as i64);
            let input = |i| command.input(i).map(|t| (address(&t), t.strides().to_vec()));
            let ins: Vec<_> = (0..command.n_inputs()).map(input).collect::<Result<_>>()?;
            let value = match id {
                op::FILL => f32::from_bits(command.scalar(0)?[0] as u32),
                _ => 0.0,
            };
            let job = move || {
                let to = to;
                timing::ran();
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
                        // SAFETY: the host's tensor, inside of its buffer.
                        unsafe { *from.0.offset(at as isize) }
                    };
                    let result = match id {
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
                    // SAFETY: outputs are contiguous, of `n` elements.
                    unsafe { *to.0.offset(i as isize) = result };
                }
                good
            };
            *SUBMITTER.lock().unwrap() = Some(std::thread::current().id());
            MOST_AHEAD.fetch_max(WAITING.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
            stream.run(job)?;
        }
        Ok(())
    }
}

/// The mock's entry point, with events.
pub unsafe extern "C" fn init(
    host: *const HostTable,
    out: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's tables.
    unsafe { helper::init::<Mock>(c"mock", dlpack::device_type::EXT_DEV, host, out, error) }
}

/// The mock's entry point, without events and other functions that a table may lack.
pub unsafe extern "C" fn init_plain(
    host: *const HostTable,
    out: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's tables.
    let code = unsafe { init(host, out, error) };
    // SAFETY: the host's table.
    let t = unsafe { &mut *out };
    t.name = c"plain".as_ptr();
    t.event_create = None;
    t.event_record = None;
    t.event_wait_stream = None;
    t.event_wait_host = None;
    t.event_query = None;
    t.event_destroy = None;
    t.stream_destroy = None;
    t.device_close = None;
    t.buffer_host_pointer = None;
    t.plan_release = None;
    t.plan_workspace = None;
    t.interface = None;
    code
}
