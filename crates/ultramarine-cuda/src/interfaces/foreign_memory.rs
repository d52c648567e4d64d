//! `ultramarine.memory/1`: imports other libraries' memory as buffers, exports buffers to them, and
//! makes streams wait for each other in both directions.
//!
//! Device memory, managed memory and pinned host memory can be imported, because CUDA knows their
//! addresses. Other host memory is imported only if the device computes in it at full speed, as
//! devices that share the host's memory do. Elsewhere a copy is faster than reads across the bus.

use crate::context;
use crate::context::failure::{self, cuda};
use crate::events::Event;
use crate::launch::Device;
use crate::memory::{Buffer, Release};
use crate::streams::Stream;
use crate::sys::driver::{self, Address, StreamHandle, attribute, code};
use core::ffi::{c_int, c_uint, c_void};
use std::sync::OnceLock;
use ultramarine_abi::helper::{
    Failure, Result, device_of, give, guard_value, handle, host_of, with_device,
};
use ultramarine_abi::interface::memory::{ForeignMemory, MemoryInterface, kind};
use ultramarine_abi::{Error, Status, read_sized, write_sized};

/// The interface.
pub fn table() -> &'static MemoryInterface {
    static TABLE: OnceLock<MemoryInterface> = OnceLock::new();
    TABLE.get_or_init(|| MemoryInterface {
        size: size_of::<MemoryInterface>() as u32,
        // All devices share this table, so it declares only what each of them can do.
        imports: 1 << kind::DEVICE_POINTER | u32::from(share_host_memory()) << kind::HOST,
        exports: 1 << kind::DEVICE_POINTER,
        flags: 0,
        import: Some(import),
        export: Some(export),
        wait_foreign: Some(wait_foreign),
        native_stream: Some(native_stream),
        signal_foreign: Some(signal_foreign),
        // The driver's streams have no reference counts.
        retain_foreign: None,
        release_foreign: None,
    })
}

/// Returns true if a device has an attribute.
fn says(ordinal: c_int, which: c_int) -> bool {
    let mut value = 0;
    // SAFETY: the output pointer is valid.
    driver::driver().is_ok_and(|driver| unsafe {
        (driver.device_attribute)(&mut value, which, ordinal) == code::SUCCESS && value != 0
    })
}

/// True if a device can compute in all of the host's memory, because it shares this memory.
fn shares_host_memory(ordinal: c_int) -> bool {
    says(ordinal, attribute::INTEGRATED) && says(ordinal, attribute::PAGEABLE_MEMORY_ACCESS)
}

fn share_host_memory() -> bool {
    let (Ok(driver), mut count) = (driver::driver(), 0) else { return false };
    // SAFETY: the output pointer is valid.
    let known = unsafe { (driver.device_count)(&mut count) } == code::SUCCESS;
    known && count > 0 && (0..count).all(shares_host_memory)
}

/// `CUpointer_attribute` values.
mod pointer {
    use core::ffi::c_int;
    pub const MEMORY_TYPE: c_int = 2;
    pub const DEVICE_POINTER: c_int = 3;
    pub const IS_MANAGED: c_int = 8;
    pub const DEVICE_ORDINAL: c_int = 9;
}

/// `CU_MEMORYTYPE_HOST`.
const HOST_MEMORY: c_uint = 1;

/// An attribute of an address; `None` if CUDA does not know the address.
fn ask<T: Default>(device: &Device, address: u64, which: c_int) -> Option<T> {
    let mut value = T::default();
    // SAFETY: the output has the size of the attribute.
    let result = unsafe {
        (device.driver.pointer_attribute)((&raw mut value).cast(), which, address as Address)
    };
    (result == code::SUCCESS).then_some(value)
}

/// The device's address of foreign memory. The context is current.
fn seen(device: &Device, address: u64, kind: u32) -> Result<u64> {
    let ours = device.properties.ordinal;
    let Some(memory) = ask::<c_uint>(device, address, pointer::MEMORY_TYPE) else {
        if kind == kind::HOST && shares_host_memory(ours) {
            return Ok(address);
        }
        return Err(match kind {
            kind::HOST => Failure::unsupported(format!(
                "host memory at {address:#x} is not pinned, so the device cannot use it. Copy it to the device"
            )),
            _ => Failure::invalid(format!(
                "there is no memory of a CUDA device at {address:#x}: it was freed, or belongs to another kind of device"
            )),
        });
    };
    if memory == HOST_MEMORY {
        // Pinned memory may have a different address on the device.
        return ask::<u64>(device, address, pointer::DEVICE_POINTER).ok_or_else(|| {
            Failure::invalid(format!(
                "the host memory at {address:#x} is pinned, but not mapped for the device. Copy it to the device"
            ))
        });
    }
    let managed = ask::<c_uint>(device, address, pointer::IS_MANAGED).unwrap_or(0) != 0;
    match ask::<c_int>(device, address, pointer::DEVICE_ORDINAL) {
        Some(theirs) if theirs != ours && !managed => Err(Failure::invalid(format!(
            "the memory at {address:#x} is on CUDA device {theirs}, and this is device {ours}. Copy it first"
        ))),
        _ => Ok(address),
    }
}

// The functions below implement the interface. Their safety follows from the contract: handles are
// those that the backend returned, output pointers are NULL or writable, and structs state their
// sizes.

unsafe extern "C" fn import(
    device: *mut c_void,
    memory: *const ForeignMemory,
    buffer: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let nothing = || Failure::invalid("the pointer to the memory is NULL");
            let block: ForeignMemory = read_sized(memory).ok_or_else(nothing)?;
            if block.kind != kind::DEVICE_POINTER && block.kind != kind::HOST {
                return Err(Failure::unsupported(format!(
                    "this backend imports device pointers, not memory of kind {}",
                    block.kind
                )));
            }
            if block.handle == 0 || block.bytes == 0 || buffer.is_null() {
                return Err(nothing());
            }
            if block.ready != 0 {
                return Err(Failure::unsupported(
                    "the memory is not ready yet. Wait for its stream by wait_foreign",
                ));
            }
            let _entered = device.enter()?;
            let first = block.handle.checked_add(block.offset).ok_or_else(nothing)?;
            let address = seen(device, first, block.kind)?;
            let release = Release::new(block.release, block.context);
            give(buffer, Buffer::foreign(address, block.bytes, release))
        })
    }
}

unsafe extern "C" fn export(
    device: *mut c_void,
    buffer: *mut c_void,
    kind: u32,
    memory: *mut ForeignMemory,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |_| {
            context::not_forked()?;
            if kind != kind::DEVICE_POINTER {
                return Err(Failure::unsupported(format!(
                    "this backend exports device pointers, not memory of kind {kind}"
                )));
            }
            let buffer: &Buffer = handle(buffer, "the buffer")?;
            let exported = ForeignMemory {
                size: size_of::<ForeignMemory>() as u32,
                kind,
                flags: 0,
                reserved: 0,
                handle: buffer.address(),
                offset: 0,
                bytes: buffer.bytes(),
                release: None,
                context: std::ptr::null_mut(),
                ready: 0,
            };
            match write_sized(memory, &exported) {
                true => Ok(()),
                false => Err(Failure::invalid("the pointer to the description is NULL")),
            }
        })
    }
}

unsafe extern "C" fn native_stream(device: *mut c_void, stream: *mut c_void) -> u64 {
    // SAFETY: guaranteed by the contract.
    let (host, found, stream) = unsafe {
        (host_of::<Device>(device), device_of::<Device>(device), stream.cast::<Stream>().as_ref())
    };
    let Some(device) = found else { return 0 };
    guard_value(host.as_ref(), 0, || stream.unwrap_or(&device.default_stream).handle() as u64)
}

/// `CU_STREAM_LEGACY`.
const LEGACY: u64 = 1;

/// A foreign stream: a stream of the device's context, or one of the driver's special handles
/// (`CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`), which DLPack passes as numbers. The context is
/// current.
fn foreign_stream(device: &Device, foreign: u64) -> Result<StreamHandle> {
    if foreign == 0 {
        return Err(Failure::invalid(
            "stream 0 is ambiguous. Pass 1 for the legacy default stream, 2 for the one of each thread",
        ));
    }
    let (driver, stream) = (device.driver, foreign as StreamHandle);
    let (mut theirs, mut capturing) = (std::ptr::null_mut(), 0);
    // SAFETY: the output pointers are valid; the stream is what the contract says.
    let known = unsafe { (driver.stream_context)(stream, &mut theirs) };
    if known != code::SUCCESS || theirs != device.context.handle() {
        return Err(Failure::invalid(format!(
            "{foreign:#x} is not a stream of CUDA device {} and its primary context. Pass one that is",
            device.properties.ordinal
        )));
    }
    // SAFETY: as above.
    let asked = unsafe { (driver.stream_capturing)(stream, &mut capturing) };
    failure::check(driver, "cuStreamIsCapturing", asked)?;
    match capturing {
        0 => Ok(stream),
        _ => Err(Failure::unsupported(
            "the stream is being captured into a CUDA graph. Exchange arrays before or after that",
        )),
    }
}

unsafe extern "C" fn wait_foreign(
    device: *mut c_void,
    stream: *mut c_void,
    foreign: u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let _entered = device.enter()?;
            let ours = stream.cast::<Stream>().as_ref().unwrap_or(&device.default_stream);
            // Tables of DLPack's exchange API pass native handles, of which 0 is the legacy default
            // stream.
            let theirs = foreign_stream(device, if foreign == 0 { LEGACY } else { foreign })?;
            if theirs == ours.handle() {
                return Ok(());
            }
            let (driver, event) = (device.driver, device.context.take_event()?);
            let waits = cuda!(driver.event_record(event, theirs))
                .and_then(|()| cuda!(driver.stream_wait_event(ours.handle(), event, 0)));
            // Waiters depend only on the work before the record, so the event can be reused.
            device.context.give_event(event);
            waits
        })
    }
}

unsafe extern "C" fn signal_foreign(
    device: *mut c_void,
    foreign: u64,
    event: *mut c_void,
    value: u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let _entered = device.enter()?;
            let theirs = foreign_stream(device, foreign)?;
            let (event, driver): (&Event, _) = (handle(event, "the event")?, device.driver);
            event.with_mark(value, |mark| cuda!(driver.stream_wait_event(theirs, mark, 0)))
        })
    }
}
