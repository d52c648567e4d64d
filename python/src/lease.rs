//! Streams that Python made, given back when nothing in Python refers to them any more.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use ultramarine::Stream;

/// Gives a stream back when nothing in Python has it any more.
struct Lease(Stream);

/// Leases by the index of their stream.
static LEASES: LazyLock<Mutex<HashMap<u32, Weak<Lease>>>> = LazyLock::new(Mutex::default);

impl Drop for Lease {
    fn drop(&mut self) {
        // Before the stream is another one's.
        LEASES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0.index);
        ultramarine::release_stream(self.0);
    }
}

/// A stream, which is nobody else's while this exists.
#[derive(Clone)]
pub struct Leased {
    stream: Stream,
    /// None of a stream that stays.
    lease: Option<Arc<Lease>>,
}

impl Leased {
    /// A stream that stays: a default one, or a thread's.
    pub fn for_good(stream: Stream) -> Leased {
        Leased { stream, lease: None }
    }

    /// A stream that was made for the caller.
    pub fn new(stream: Stream) -> Leased {
        let lease = Arc::new(Lease(stream));
        let mut leases = LEASES.lock().unwrap_or_else(PoisonError::into_inner);
        leases.insert(stream.index, Arc::downgrade(&lease));
        Leased { stream, lease: Some(lease) }
    }

    /// A stream that the core named.
    pub fn of(stream: Stream) -> Leased {
        let leases = LEASES.lock().unwrap_or_else(PoisonError::into_inner);
        let lease = leases.get(&stream.index).and_then(Weak::upgrade);
        Leased { stream, lease }
    }

    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Has the stream stay to the end of the process.
    pub fn keep(&self) {
        std::mem::forget(self.lease.clone());
    }
}

impl From<Leased> for Stream {
    fn from(leased: Leased) -> Stream {
        leased.stream
    }
}
