//! The default device, and the device and stream of a thread's scope.

use super::default_of;
use crate::device::{Device, Stream};
use crate::{devices, error::Result};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

static DEFAULT: AtomicU32 = AtomicU32::new(Device::CPU.pack());

/// Returns the device for operations without operands on an accelerator: the device of the thread's
/// scope, else that of [`set_default_device`], else the CPU.
#[inline]
pub fn default_device() -> Device {
    scoped_device().unwrap_or_else(default_of_all)
}

/// Returns the default device of threads without a scope.
#[inline]
pub fn default_of_all() -> Device {
    Device::unpack(DEFAULT.load(Ordering::Relaxed))
}

/// Makes `device` the default of every thread. Inside of a [`Scope`] it becomes the default of that
/// scope only.
///
/// # Errors
/// [`crate::Error::Value`] when no loaded backend has the device.
pub fn set_default_device(device: Device) -> Result<()> {
    devices::get(device)?;
    if scoped_device().is_some() {
        set_scoped_device(device);
    } else {
        DEFAULT.store(device.pack(), Ordering::Relaxed);
    }
    Ok(())
}

/// While it lives, operations of this thread use a stream and its device. Scopes nest; drop them in
/// the reverse order. [`with_stream`] does the same for a function.
#[derive(Debug)]
pub struct Scope {
    device: Option<Device>,
    stream: Option<Stream>,
    // Ties the scope to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Scope {
    /// Enters the scope of a stream.
    #[inline]
    pub fn new(stream: Stream) -> Scope {
        let (device, stream) = swap_scope(Some(stream.device), Some(stream));
        Scope { device, stream, _thread: std::marker::PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        swap_scope(self.device, self.stream);
    }
}

/// Calls `f`. On this thread, its operations use `stream` and the stream's device. [`with_device`]
/// takes a device.
pub fn with_stream<T>(stream: Stream, f: impl FnOnce() -> T) -> T {
    let _scope = Scope::new(stream);
    f()
}

/// Calls `f`. On this thread, its operations use `device` and its default stream.
///
/// # Errors
/// [`Error::Value`](crate::Error::Value) if the device does not exist; those of `f`.
pub fn with_device<T>(device: Device, f: impl FnOnce() -> Result<T>) -> Result<T> {
    with_stream(default_stream(device)?, f)
}

/// The stream and device on which this thread's operations run.
struct Scoped {
    device: Cell<Option<Device>>,
    stream: Cell<Option<Stream>>,
    /// The default stream of the last lookup. Keeping it avoids the registry's lock.
    recent: Cell<Option<Stream>>,
}

thread_local! {
    // All values are in one thread-local, because in a shared library each thread-local costs a
    // function call.
    static SCOPED: Scoped =
        const { Scoped { device: Cell::new(None), stream: Cell::new(None), recent: Cell::new(None) } };
}

#[inline]
pub fn swap_scope(
    device: Option<Device>,
    stream: Option<Stream>,
) -> (Option<Device>, Option<Stream>) {
    SCOPED.with(|s| (s.device.replace(device), s.stream.replace(stream)))
}

/// Returns the device of this thread's scope. `None` outside scopes.
#[inline]
pub fn scoped_device() -> Option<Device> {
    SCOPED.with(|s| s.device.get())
}

/// Changes the device of this thread's scope.
#[inline]
pub fn set_scoped_device(device: Device) {
    SCOPED.with(|s| s.device.set(Some(device)));
}

/// Returns the stream of this thread's scope. `None` outside scopes.
#[inline]
pub fn scoped() -> Option<Stream> {
    SCOPED.with(|s| s.stream.get())
}

/// Returns the stream that operations of this thread join, and true if a scope chose it.
#[inline]
pub fn current() -> (Stream, bool) {
    SCOPED.with(|s| {
        if let Some(stream) = s.stream.get() {
            return (stream, true);
        }
        let device = s.device.get().unwrap_or_else(default_of_all);
        match s.recent.get() {
            Some(stream) if stream.device == device => (stream, false),
            _ => {
                let stream = default_of(device);
                s.recent.set(Some(stream));
                (stream, false)
            }
        }
    })
}

/// Returns the default stream of a device. Inside of a [`Scope`] of that device, this is the
/// scope's stream.
///
/// # Errors
/// [`crate::Error::Value`] when no loaded backend has the device.
#[inline]
pub fn default_stream(device: Device) -> Result<Stream> {
    devices::get(device)?;
    Ok(scoped().filter(|s| s.device == device).unwrap_or_else(|| default_of(device)))
}

/// Makes `stream` the default stream of its device. Inside of a [`Scope`] of that device, it
/// becomes the stream of that scope only. Threads that already used the former default keep it
/// until they change device.
#[inline]
pub fn set_default_stream(stream: Stream) {
    if scoped().is_some_and(|s| s.device == stream.device) {
        SCOPED.with(|s| s.stream.set(Some(stream)));
    } else {
        super::set_default_of(stream);
        SCOPED.with(|s| s.recent.set(None));
    }
}
