//! Streams of each thread's own.

use crate::{
    backend,
    device::Device,
    error::Result,
    stream::{self, Stream},
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// A stream of each thread's own on a device: threads that use it do not wait for each other.
///
/// A thread gets its stream at the first use. When it ends, another thread may have it.
///
/// ```
/// use ultramarine::{Array, Device, ThreadLocalStream, with_stream};
/// let local = ThreadLocalStream::new(Device::CPU)?;
/// let here = local.stream();
/// assert_eq!(local.stream(), here);
/// let there = std::thread::spawn(move || local.stream()).join();
/// assert!(there.is_ok_and(|stream| stream != here));
/// let x = Array::scalar(2.0f32);
/// let y = with_stream(here, || x.square())?;
/// assert_eq!((y.stream(), y.item::<f32>()?), (here, 4.0));
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadLocalStream {
    /// Index, unique among these in the process.
    pub index: u32,
    /// Its device.
    pub device: Device,
}

#[derive(Default)]
struct Own {
    /// By the index of the [`ThreadLocalStream`].
    local: HashMap<u32, Stream>,
    /// Streams that this thread made by [`crate::new_stream`].
    made: Vec<Stream>,
}

impl Drop for Own {
    fn drop(&mut self) {
        stream::give_back(self.local.drain().map(|(_, stream)| stream));
    }
}

thread_local! {
    static OWN: RefCell<Own> = RefCell::default();
}

impl ThreadLocalStream {
    /// A new one on a device.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when no loaded backend has the device.
    pub fn new(device: Device) -> Result<ThreadLocalStream> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        backend::get(device)?;
        Ok(ThreadLocalStream { index: NEXT.fetch_add(1, Ordering::Relaxed), device })
    }

    /// The calling thread's stream. (A thread that is ending gets the device's default stream.)
    pub fn stream(&self) -> Stream {
        let find = |own: &RefCell<Own>| {
            let mut own = own.borrow_mut();
            *own.local.entry(self.index).or_insert_with(|| stream::take(self.device))
        };
        OWN.try_with(find).unwrap_or_else(|_| stream::default_of(self.device))
    }
}

/// Notes that this thread made a stream.
pub(crate) fn made(stream: Stream) {
    let _ = OWN.try_with(|own| own.borrow_mut().made.push(stream));
}

/// Waits for the streams that the calling thread made, and forgets them: its [`ThreadLocalStream`]s begin
/// anew. Arrays and other threads that use one of them may go on.
///
/// # Errors
/// As [`crate::synchronize`]; all are forgotten nevertheless.
pub fn clear_streams() -> Result<()> {
    let own = OWN.try_with(|own| std::mem::take(&mut *own.borrow_mut())).unwrap_or_default();
    // All are waited for, also behind one that failed.
    let all = own.made.iter().chain(own.local.values());
    let outcomes: Vec<Result<()>> = all.map(|stream| stream::synchronize(*stream)).collect();
    outcomes.into_iter().collect()
}
