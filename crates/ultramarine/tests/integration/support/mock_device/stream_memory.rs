//! Memory in the order of streams: what was given back on a stream is taken again by the next
//! request of that stream for as much, while its earlier work may still use it. Other requests
//! always get new memory.

use super::*;
use std::collections::HashMap;
use ultramarine_abi::helper::{give, with_device};
use ultramarine_abi::interface::stream_memory::StreamMemoryInterface;

/// True makes the mock offer the interface.
pub static OFFERED: AtomicBool = AtomicBool::new(false);
/// Requests that took what was given back.
pub static TAKEN_AGAIN: AtomicUsize = AtomicUsize::new(0);
/// Requests that got new memory.
pub static NEW: AtomicUsize = AtomicUsize::new(0);

/// Buffers by stream and size.
type Kept = HashMap<(usize, usize), Vec<usize>>;

/// Given back.
static BACK: Mutex<Option<Kept>> = Mutex::new(None);

pub static TABLE: StreamMemoryInterface = StreamMemoryInterface {
    size: size_of::<StreamMemoryInterface>() as u32,
    flags: 0,
    alloc: Some(take),
    free: Some(give_back),
};

unsafe extern "C" fn take(
    device: *mut c_void,
    stream: *mut c_void,
    bytes: u64,
    out: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    let key = (stream as usize, bytes.div_ceil(4) as usize);
    let found = BACK.lock().unwrap().get_or_insert_default().get_mut(&key).and_then(Vec::pop);
    let Some(block) = found else {
        NEW.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the host's arguments.
        return unsafe { with_device::<Mock>(device, error, |mock| give(out, mock.alloc(bytes)?)) };
    };
    TAKEN_AGAIN.fetch_add(1, Ordering::SeqCst);
    BUFFERS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the host's place for the answer.
    unsafe { *out = block as *mut c_void };
    status::OK
}

unsafe extern "C" fn give_back(_: *mut c_void, stream: *mut c_void, buffer: *mut c_void) {
    // SAFETY: a handle of `take`.
    let length = unsafe { (*buffer.cast::<Buffer>()).len };
    BUFFERS.fetch_sub(1, Ordering::SeqCst);
    let mut back = BACK.lock().unwrap();
    let lists = back.get_or_insert_default();
    lists.entry((stream as usize, length)).or_default().push(buffer as usize);
}
