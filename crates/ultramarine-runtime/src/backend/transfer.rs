//! Copies of values to other devices: mirrors of whole buffers, and copies of the parts that are
//! read.
//!
//! - Reading a large part of a buffer mirrors the whole buffer. The buffer keeps the mirror for
//!   later readers.
//! - Reading a small part of a large buffer transfers only its range, into memory that lives as
//!   long as its reader.
//! - A view whose elements lie far apart is first packed on its own device.

use super::{DeviceState, Exec, Operand, registry, shutdown, stats};
use crate::backend::buffer::{Buffer, BufferRef};
use crate::shape::{self, Shape};
use crate::{backend::value::Value, device::Device, error::Result, host_table, sync::lock};
use core::ffi::c_void;
use std::iter;
use std::ops::Range;
use ultramarine_abi::interface::peer::PeerInterface;

/// A read is small if it needs less than this fraction (one in `SMALL`) of a buffer.
const SMALL: usize = 4;

/// A buffer of up to this size is transferred as a whole, even if little of it is read.
/// Transferring all of it takes hardly longer, and the next read finds the mirror.
const WHOLE: usize = 64 << 10;

/// If a view has more bytes than this between its elements, packing it costs less than transferring
/// these bytes.
const GAPS: usize = 64 << 10;

impl Exec {
    /// Returns an operand in host memory, so that the host can read its values.
    pub fn on_host(&self, operand: &Operand<'_>) -> Result<Value> {
        // The caller may act on the values, so a recording would not be valid for other values.
        super::executable::give_up();
        on_device(operand, super::host(), None)
    }

    /// Returns an input in a form that this device can read. The op's call has already checked if
    /// accelerators may be mixed.
    pub fn local(&self, operand: &Operand<'_>) -> Result<Value> {
        operand.value.buffer.check()?;
        on_device(operand, self.device, Some(self))
    }

    /// Makes a row-major copy of an operand on the operand's own device. If that device has no
    /// kernel for the copy, makes it on this device.
    pub fn packed(&self, operand: &Operand<'_>) -> Result<Value> {
        if operand.value.buffer.device() == self.device.device {
            return self.packed_here(operand);
        }
        operand.value.buffer.check()?;
        match pack(operand)? {
            Some(packed) => Ok(packed),
            None => self.packed_here(&Operand { value: &self.local(operand)?, ..*operand }),
        }
    }

    fn packed_here(&self, operand: &Operand<'_>) -> Result<Value> {
        let copy = self.alloc(operand.shape, operand.dtype)?;
        self.copy(*operand, Operand { value: &copy, ..*operand })?;
        Ok(copy)
    }
}

/// The way in which an operand's elements get to another device.
enum Route {
    /// The whole buffer is mirrored.
    Mirror,
    /// The range of bytes from the first element to the last is copied.
    Range(Range<usize>),
    /// The elements are packed on their own device first. If that device cannot pack them, the
    /// range is copied if it is small.
    Packed(Option<Range<usize>>),
}

impl Route {
    fn of(operand: &Operand<'_>) -> Route {
        let buffer = &operand.value.buffer;
        let Some(range) = range(operand) else { return Route::Mirror };
        let large = buffer.bytes() > WHOLE;
        let small = |bytes: usize| large && bytes.saturating_mul(SMALL) < buffer.bytes();
        // Broadcast elements count once. Elements of overlapping windows count at most as often as
        // they are in the buffer.
        let elements = operand.dtype.bytes_of(shape::size(&distinct(operand)));
        let elements = if operand.dtype.is_packed() { range.len() } else { elements };
        let read = elements.min(range.len());
        // For foreign memory, a mirror cannot be kept.
        if !small(read) && !buffer.is_escaped() {
            return Route::Mirror;
        }
        let sparse = !small(range.len()) || read.saturating_mul(SMALL) < range.len();
        let few = small(range.len()) || buffer.is_escaped();
        if sparse && small(read) && range.len() - read > GAPS {
            return Route::Packed(few.then_some(range));
        }
        if few { Route::Range(range) } else { Route::Mirror }
    }
}

/// Returns the range of the buffer's bytes from an operand's first element to its last.
fn range(operand: &Operand<'_>) -> Option<Range<usize>> {
    let Operand { value, shape, dtype } = *operand;
    if shape.contains(&0) {
        return Some(value.offset..value.offset);
    }
    let (first, end) = shape::byte_range(shape::axes(shape, &value.strides), dtype.bits())?;
    let at = |bytes: i64| value.offset.checked_add_signed(isize::try_from(bytes).ok()?);
    Some(at(first)?..at(end)?.min(value.buffer.bytes()))
}

/// Returns an operand's shape without broadcast repetitions.
fn distinct(operand: &Operand<'_>) -> Shape {
    let each = operand.shape.iter().zip(&operand.value.strides);
    each.map(|(n, stride)| if *stride == 0 { (*n).min(1) } else { *n }).collect()
}

/// Returns the operand on `device`: the operand itself, a view of its buffer's mirror there, or a
/// copy of the part that is read.
pub fn on_device(
    operand: &Operand<'_>,
    device: &'static DeviceState,
    exec: Option<&Exec>,
) -> Result<Value> {
    let (value, from) = (operand.value, &operand.value.buffer);
    if from.device() == device.device {
        return Ok(value.clone());
    }
    if exec.is_some() {
        super::executable::with(|recording| recording.read_elsewhere(from, !from.is_escaped()));
    }
    let mirror = |buffer| Value { buffer, offset: value.offset, strides: value.strides.clone() };
    let escaped = from.is_escaped();
    if !escaped && let Some(found) = from.mirrored(device.device) {
        return Ok(mirror(found));
    }
    let route = Route::of(operand);
    let parts = exec.filter(|_| !escaped).map(|exec| exec.parts());
    let by_range = |range: Range<usize>| -> Result<Value> {
        if let Some(known) = parts.and_then(|p| p.find_range(value, &range)) {
            return Ok(known);
        }
        let buffer = copy_range(from, range.clone(), device, exec)?;
        let offset = value.offset - range.start;
        if let Some(parts) = parts {
            parts.keep_range(value, range, &buffer);
        }
        Ok(Value { buffer, offset, strides: value.strides.clone() })
    };
    let range = match route {
        Route::Range(range) => Some(range),
        Route::Packed(range) => {
            let known = parts.and_then(|p| p.find_packed(value, operand.shape, operand.dtype));
            if let Some(known) = known {
                return Ok(known);
            }
            if let Some(packed) = pack_distinct(operand)? {
                let whole = 0..packed.buffer.bytes();
                let buffer = copy_range(&packed.buffer, whole, device, exec)?;
                let copy = Value { buffer, ..packed };
                if let Some(parts) = parts {
                    parts.keep_packed(value, operand.shape, operand.dtype, &copy);
                }
                return Ok(copy);
            }
            range
        }
        Route::Mirror => None,
    };
    match range {
        Some(range) => by_range(range),
        None => from.mirror(device.device, || copy_buffer(from, device, exec)).map(mirror),
    }
}

/// Packs an operand's distinct elements without gaps, on their own device. Returns `None` if the
/// device has no kernel for that.
fn pack_distinct(operand: &Operand<'_>) -> Result<Option<Value>> {
    let shape = distinct(operand);
    let packed = pack(&Operand { shape: &shape, ..*operand })?;
    Ok(packed.map(|mut packed| {
        for (to, from) in packed.strides.iter_mut().zip(&operand.value.strides) {
            *to = if *from == 0 { 0 } else { *to };
        }
        packed
    }))
}

/// Makes a row-major copy of an operand on its own device. Returns `None` if the device has no
/// kernel for that.
fn pack(operand: &Operand<'_>) -> Result<Option<Value>> {
    let device = operand.value.buffer.device();
    let state = if device == Device::CPU { super::host() } else { registry::registered(device)? };
    let exec = Exec::beside(state)?;
    match exec.packed_here(operand) {
        Ok(packed) => exec.settle().map(|()| Some(packed)),
        Err(_) if exec.take_refusal() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies a whole buffer to another device. If one backend serves both devices and can copy between
/// them, it makes the copy; otherwise the copy goes through the host.
pub fn copy_buffer(
    from: &Buffer,
    device: &'static DeviceState,
    exec: Option<&Exec>,
) -> Result<BufferRef> {
    if device.is_host() || from.device() == Device::CPU {
        stats::count_mirror();
    }
    copy_range(from, 0..from.bytes(), device, exec)
}

/// Copies a range of a buffer's bytes in the same way.
fn copy_range(
    from: &Buffer,
    range: Range<usize>,
    device: &'static DeviceState,
    exec: Option<&Exec>,
) -> Result<BufferRef> {
    if device.is_host() {
        return to_host(from, range);
    }
    if from.device() == Device::CPU {
        return to_device(from, range, device);
    }
    stats::count_transfer();
    let source = registry::registered(from.device())?;
    if let (Some(exec), Some(copy)) = (exec, peer(source, device)) {
        return by_peer(from, range, source, exec, copy);
    }
    match from.mirrored(Device::CPU) {
        Some(found) => to_device(&found, range, device),
        None => {
            let bytes = range.len();
            to_device(&*to_host(from, range)?, 0..bytes, device)
        }
    }
}

fn to_host(from: &Buffer, range: Range<usize>) -> Result<BufferRef> {
    let to = Buffer::new(range.len(), super::host())?;
    if range.is_empty() {
        return Ok(to);
    }
    let source = registry::registered(from.device())?;
    shutdown::check_wait(source)?;
    from.ready()?;
    let Some(copy) = source.table.copy_to_host else { return Err(source.lacks("copy_to_host")) };
    stats::count_to_host(range.len());
    let (target, bytes) = (to.as_ptr() as *mut c_void, range.len() as u64);
    let (stream, offset) = (std::ptr::null_mut(), range.start as u64);
    let mut error = std::ptr::null_mut();
    // Only one call at a time is allowed for the stream NULL.
    let guard = lock(&source.copies);
    // SAFETY: the target has `bytes` bytes, and the buffer has as many from `offset` on. The handle
    // is the source device's, and the work that writes the buffer is completed.
    let code =
        unsafe { copy(source.handle, stream, from.handle(), offset, target, bytes, &mut error) };
    drop(guard);
    host_table::check("copy_to_host", code, error)?;
    Ok(to)
}

/// Copies a range from a buffer in host memory, `from`, to a device.
fn to_device(
    from: &Buffer,
    range: Range<usize>,
    device: &'static DeviceState,
) -> Result<BufferRef> {
    if range.is_empty() {
        return bytes_to_device(&[], device);
    }
    // SAFETY: host memory with all bytes of the range.
    let bytes = unsafe { std::slice::from_raw_parts(from.as_ptr().add(range.start), range.len()) };
    bytes_to_device(bytes, device)
}

/// Allocates memory on a device and copies these bytes into it.
pub(super) fn bytes_to_device(bytes: &[u8], device: &'static DeviceState) -> Result<BufferRef> {
    let to = Buffer::new(bytes.len(), device)?;
    if !bytes.is_empty() {
        part_to_device(bytes, device, &to, 0)?;
    }
    Ok(to)
}

/// Copies bytes into a part of a buffer that nothing else uses yet. On return, the bytes have been
/// read.
pub(super) fn part_to_device(
    bytes: &[u8],
    device: &'static DeviceState,
    to: &Buffer,
    offset: usize,
) -> Result<()> {
    shutdown::check(device)?;
    let Some(copy) = device.table.copy_to_device else {
        return Err(device.lacks("copy_to_device"));
    };
    stats::count_to_device(bytes.len());
    let (source, offset, bytes) = (bytes.as_ptr().cast(), offset as u64, bytes.len() as u64);
    let call = |stream: *mut c_void| {
        let mut error = std::ptr::null_mut();
        // SAFETY: the source has `bytes` bytes, and the buffer has as many from `offset` on. The
        // handle is the device's, and so is the stream, if there is one. Nothing else uses the
        // buffer.
        let code =
            unsafe { copy(device.handle, stream, to.handle(), offset, source, bytes, &mut error) };
        host_table::check("copy_to_device", code, error)
    };
    match device.uploads()? {
        // Later users of the buffer wait for the copy on the device.
        Some(stream) => stream.submit("copy", iter::empty(), iter::once(to), call),
        None => {
            let _guard = lock(&device.copies);
            call(std::ptr::null_mut())
        }
    }
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

/// Returns the backend's own copy between two devices, if it serves both and has one.
fn peer(a: &DeviceState, b: &DeviceState) -> Option<PeerCopy> {
    let same = a.backend == b.backend && a.table.backend == b.table.backend;
    let table: PeerInterface =
        same.then(|| b.interface(ultramarine_abi::interface::peer::INTERFACE))??;
    table.copy
}

fn by_peer(
    from: &Buffer,
    range: Range<usize>,
    source: &'static DeviceState,
    exec: &Exec,
    copy: PeerCopy,
) -> Result<BufferRef> {
    let to = exec.buffer(range.len())?;
    if range.is_empty() {
        return Ok(to);
    }
    stats::count_to_device(range.len());
    let reads = iter::once(from);
    exec.enqueue(reads, iter::once(&*to), |stream| {
        let mut error = std::ptr::null_mut();
        // SAFETY: the handles belong to the two devices of this backend. Both buffers have that
        // many bytes after the offsets, and the stream waits for the work that writes the source.
        let code = unsafe {
            copy(
                exec.device.handle,
                stream,
                to.handle(),
                0,
                source.handle,
                from.handle(),
                range.start as u64,
                range.len() as u64,
                &mut error,
            )
        };
        host_table::check("copy", code, error)
    })?;
    Ok(to)
}
