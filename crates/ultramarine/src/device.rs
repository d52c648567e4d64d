//! Devices and the default device.

use crate::{
    backend,
    error::Result,
    stream::{self, Stream},
};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DeviceType {
    /// The host's processor: one device, always there.
    Cpu = 0,
    /// Any accelerator, whichever backend serves it.
    Gpu = 1,
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceType::Cpu => "cpu",
            DeviceType::Gpu => "gpu",
        })
    }
}

/// A device: its type and its global index among devices of that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// CPU or GPU.
    pub kind: DeviceType,
    /// Index from zero.
    pub index: u16,
}

impl Device {
    /// The host's processor.
    pub const CPU: Device = Device { kind: DeviceType::Cpu, index: 0 };

    /// The accelerator of that index.
    pub const fn gpu(index: u16) -> Device {
        Device { kind: DeviceType::Gpu, index }
    }

    const fn pack(self) -> u32 {
        (self.kind as u32) << 16 | self.index as u32
    }

    const fn unpack(bits: u32) -> Device {
        let kind = if bits >> 16 == 0 { DeviceType::Cpu } else { DeviceType::Gpu };
        Device { kind, index: bits as u16 }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.index)
    }
}

static DEFAULT: AtomicU32 = AtomicU32::new(Device::CPU.pack());

/// The device that operations run on unless told otherwise.
pub fn default_device() -> Device {
    stream::scoped_device().unwrap_or_else(default_of_all)
}

/// The default device of threads without a scope.
#[inline]
pub(crate) fn default_of_all() -> Device {
    Device::unpack(DEFAULT.load(Ordering::Relaxed))
}

/// Makes `device` the default of every thread (inside a [`Scope`], of that scope).
///
/// # Errors
/// [`crate::Error::Value`] when no loaded backend has the device.
pub fn set_default_device(device: Device) -> Result<()> {
    backend::get(device)?;
    if stream::scoped_device().is_some() {
        stream::set_scoped_device(device);
    } else {
        DEFAULT.store(device.pack(), Ordering::Relaxed);
    }
    Ok(())
}

/// Whether a device can be used.
pub fn is_available(device: Device) -> bool {
    backend::get(device).is_ok()
}

/// Number of devices of a type.
pub fn device_count(kind: DeviceType) -> usize {
    backend::device_count(kind)
}

/// While it lives, operations of this thread use a stream and its device.
/// Scopes nest; drop them in the reverse order.
#[derive(Debug)]
pub struct Scope {
    device: Option<Device>,
    stream: Option<Stream>,
    // Belongs to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Scope {
    /// Enters the scope of a stream.
    pub fn new(stream: Stream) -> Scope {
        let (device, stream) = stream::swap_scope(Some(stream.device), Some(stream));
        Scope { device, stream, _thread: std::marker::PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        stream::swap_scope(self.device, self.stream);
    }
}

/// Calls `f` with a stream (and its device) as this thread's default.
pub fn with_stream<T>(stream: Stream, f: impl FnOnce() -> T) -> T {
    let _scope = Scope::new(stream);
    f()
}
