//! Streams that each thread has for itself.

use super::{default_of, give_back, synchronize, take};
use crate::device::{Device, Stream};
use crate::{devices, error::Result};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

/// A stream for each thread on a device. Threads that use it do not wait for each other.
///
/// A thread gets its stream when it first uses this. When the thread ends, another thread may get
/// the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadLocalStream {
    /// Index, unique among the thread-local streams of the process.
    pub index: u32,
    /// Its device.
    pub device: Device,
}

#[derive(Default)]
struct Own {
    /// The thread's streams, by the index of the [`ThreadLocalStream`].
    local: HashMap<u32, Stream>,
    /// Streams that this thread made by [`crate::new_stream`].
    made: HashSet<Stream>,
}

impl Drop for Own {
    fn drop(&mut self) {
        give_back(self.local.drain().map(|(_, stream)| stream));
    }
}

thread_local! {
    static OWN: RefCell<Own> = RefCell::default();
}

impl ThreadLocalStream {
    /// Makes a new thread-local stream on a device.
    ///
    /// # Errors
    /// [`crate::Error::Value`] if no loaded backend has the device.
    pub fn new(device: Device) -> Result<ThreadLocalStream> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        devices::get(device)?;
        Ok(ThreadLocalStream { index: NEXT.fetch_add(1, Ordering::Relaxed), device })
    }

    /// Returns the calling thread's stream. A thread that is exiting gets the device's default
    /// stream.
    pub fn stream(&self) -> Stream {
        let find = |own: &RefCell<Own>| {
            let mut own = own.borrow_mut();
            *own.local.entry(self.index).or_insert_with(|| take(self.device))
        };
        OWN.try_with(find).unwrap_or_else(|_| default_of(self.device))
    }
}

/// Records that this thread made a stream.
pub fn made(stream: Stream) {
    let _ = OWN.try_with(|own| own.borrow_mut().made.insert(stream));
}

/// Waits for the streams that the calling thread made, and forgets them. Its [`ThreadLocalStream`]s
/// then get new streams. Arrays and other threads may continue to use the forgotten streams.
///
/// # Errors
/// Those of [`synchronize`]. All streams are forgotten even if there is an error.
pub fn clear_streams() -> Result<()> {
    let own = OWN.try_with(|own| std::mem::take(&mut *own.borrow_mut())).unwrap_or_default();
    // Wait for all streams, even after one has failed.
    let all = own.made.iter().chain(own.local.values());
    let outcomes: Vec<Result<()>> = all.map(|stream| synchronize(*stream)).collect();
    outcomes.into_iter().collect()
}
