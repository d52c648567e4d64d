//! Buffers on other devices than their own: mirrors and copies.

use super::{DeviceState, Exec, call, registry, shutdown};
use crate::backend::buffer::{Buffer, BufferRef};
use crate::{
    backend::value::Value, device::Device, error::Result, host_table, shape::Strides, sync::lock,
};
use core::ffi::c_void;
use std::iter;
use ultramarine_abi::interface::peer::PeerInterface;

impl Exec {
    /// An operand in host memory, to be looked at.
    pub fn on_host(&self, value: &Value) -> Result<Value> {
        on_device(value, super::host(), None)
    }

    /// An input as this device can read it. Whether accelerators may be mixed was seen to
    /// when the op was called.
    pub fn local(&self, value: &Value) -> Result<Value> {
        value.buffer.check()?;
        on_device(value, self.device, Some(self))
    }
}

/// The value on `device`: itself, or a mirror of its buffer there.
pub fn on_device(
    value: &Value,
    device: &'static DeviceState,
    exec: Option<&Exec>,
) -> Result<Value> {
    if value.buffer.device() == device.device {
        return Ok(value.clone());
    }
    let buffer = value.buffer.mirror(device.device, || copy_buffer(&value.buffer, device, exec))?;
    Ok(Value { buffer, offset: value.offset, strides: Strides::from_slice(&value.strides) })
}

/// A whole buffer's bytes on another device: by the backend itself where it serves both
/// devices and can, else by way of the host.
pub fn copy_buffer(
    from: &Buffer,
    device: &'static DeviceState,
    exec: Option<&Exec>,
) -> Result<BufferRef> {
    if device.is_host() {
        call::count_mirror();
        return to_host(from);
    }
    if from.device() == Device::CPU {
        call::count_mirror();
        return to_device(from, device);
    }
    call::count_transfer();
    let source = registry::registered(from.device())?;
    if let (Some(exec), Some(copy)) = (exec, peer(source, device)) {
        return by_peer(from, source, exec, copy);
    }
    let staged = match from.mirrored(Device::CPU) {
        Some(found) => found,
        None => to_host(from)?,
    };
    to_device(&staged, device)
}

fn to_host(from: &Buffer) -> Result<BufferRef> {
    let to = Buffer::new(from.bytes(), super::host())?;
    if from.bytes() == 0 {
        return Ok(to);
    }
    let source = registry::registered(from.device())?;
    shutdown::check_wait(source)?;
    from.ready()?;
    let Some(copy) = source.table.copy_to_host else { return Err(source.lacks("copy_to_host")) };
    let (target, bytes) = (to.as_ptr() as *mut c_void, from.bytes() as u64);
    let mut error = std::ptr::null_mut();
    // One call at a time for the stream NULL.
    let guard = lock(&source.copies);
    // SAFETY: both blocks have `bytes` bytes; the handle is the source device's, and what
    // writes the buffer is done.
    let code = unsafe {
        copy(source.handle, std::ptr::null_mut(), from.handle(), 0, target, bytes, &mut error)
    };
    drop(guard);
    host_table::check("copy_to_host", code, error)?;
    Ok(to)
}

/// `from` is host memory.
fn to_device(from: &Buffer, device: &'static DeviceState) -> Result<BufferRef> {
    if from.bytes() == 0 {
        return bytes_to_device(&[], device);
    }
    // SAFETY: host memory of that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from.as_ptr(), from.bytes()) };
    bytes_to_device(bytes, device)
}

/// New memory of a device with these bytes in it.
pub(super) fn bytes_to_device(bytes: &[u8], device: &'static DeviceState) -> Result<BufferRef> {
    let to = Buffer::new(bytes.len(), device)?;
    if bytes.is_empty() {
        return Ok(to);
    }
    shutdown::check(device)?;
    let Some(copy) = device.table.copy_to_device else {
        return Err(device.lacks("copy_to_device"));
    };
    let (source, bytes) = (bytes.as_ptr() as *const c_void, bytes.len() as u64);
    let call = |stream: *mut c_void| {
        let mut error = std::ptr::null_mut();
        // SAFETY: both blocks have `bytes` bytes; the handle is the device's, the stream too, if
        // there is one, and the buffer is new, so that nothing else uses it.
        let code =
            unsafe { copy(device.handle, stream, to.handle(), 0, source, bytes, &mut error) };
        host_table::check("copy_to_device", code, error)
    };
    match device.uploads()? {
        // Whoever uses the buffer waits for the copy, in the device.
        Some(stream) => stream.submit("copy", iter::empty(), iter::once(&*to), call)?,
        None => {
            let _guard = lock(&device.copies);
            call(std::ptr::null_mut())?;
        }
    }
    Ok(to)
}

type PeerCopy = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    u64,
    *mut c_void,
    *mut c_void,
    u64,
    u64,
    *mut *mut ultramarine_abi::Error,
) -> ultramarine_abi::Status;

/// The backend's own copy between two devices, if it serves both and has one.
fn peer(a: &DeviceState, b: &DeviceState) -> Option<PeerCopy> {
    let same = a.backend == b.backend && a.table.backend == b.table.backend;
    let table: PeerInterface =
        same.then(|| b.interface(ultramarine_abi::interface::peer::INTERFACE))??;
    table.copy
}

fn by_peer(
    from: &Buffer,
    source: &'static DeviceState,
    exec: &Exec,
    copy: PeerCopy,
) -> Result<BufferRef> {
    let to = exec.buffer(from.bytes())?;
    if from.bytes() == 0 {
        return Ok(to);
    }
    let reads = iter::once(from);
    exec.enqueue(reads, iter::once(&*to), |stream| {
        let mut error = std::ptr::null_mut();
        // SAFETY: the handles belong to the two devices of this backend, both buffers
        // have that many bytes, and the stream waits for what wrote the source.
        let code = unsafe {
            copy(
                exec.device.handle,
                stream,
                to.handle(),
                0,
                source.handle,
                from.handle(),
                0,
                from.bytes() as u64,
                &mut error,
            )
        };
        host_table::check("copy", code, error)
    })?;
    Ok(to)
}
