//! `ultramarine.memory/1`: imports other libraries' `MTLBuffer`s, and exports buffers to them. No streams are involved:
//! producers complete their work before they pass a tensor, and this backend completes its work before it exports one.

use crate::hal;
use crate::hal::foreign::Owner;
use crate::launch::Device;
use crate::memory::Buffer;
use core::ffi::c_void;
use ultramarine_abi::helper::{Failure, give, handle, with_device};
use ultramarine_abi::interface::memory::{ForeignMemory, MemoryInterface, kind};
use ultramarine_abi::{Error, Status, read_sized, write_sized};

/// The interface's table.
pub static TABLE: MemoryInterface = MemoryInterface {
    size: size_of::<MemoryInterface>() as u32,
    imports: 1 << kind::MTL_BUFFER,
    exports: 1 << kind::MTL_BUFFER,
    flags: 0,
    import: Some(import),
    export: Some(export),
    wait_foreign: None,
    native_stream: None,
    signal_foreign: None,
    retain_foreign: None,
    release_foreign: None,
};

// The functions below implement the interface. Their safety follows from the contract: devices and buffers are those that
// the backend returned, output pointers are NULL or writable, and structs state their sizes.

unsafe extern "C" fn import(
    device: *mut c_void,
    memory: *const ForeignMemory,
    buffer: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            device.context.usable()?;
            let memory = read_sized(memory)
                .ok_or_else(|| Failure::invalid("the pointer to the memory is NULL"))?;
            if memory.kind != kind::MTL_BUFFER || memory.offset != 0 {
                return Err(Failure::unsupported("the memory is not the start of an MTLBuffer"));
            }
            let most = device.context.properties.max_buffer;
            let taken = hal::take(&device.context.device, memory.handle, memory.bytes);
            let (made, length) = taken.map_err(Failure::unsupported)?;
            if length > most {
                let text = format!(
                    "a buffer has {length} bytes, and kernels take {most} at most. Split it"
                );
                return Err(Failure::unsupported(text));
            }
            give(buffer, device.allocator.adopt(made, length, Owner::of(&memory)))
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
        with_device::<Device>(device, error, |device| {
            device.context.usable()?;
            if kind != kind::MTL_BUFFER {
                return Err(Failure::unsupported("the memory of this backend is MTLBuffers"));
            }
            let buffer: &Buffer = handle(buffer, "the buffer")?;
            let described = ForeignMemory {
                size: size_of::<ForeignMemory>() as u32,
                kind,
                flags: 0,
                reserved: 0,
                handle: buffer.0.handle(),
                offset: 0,
                bytes: buffer.0.bytes(),
                release: None,
                context: core::ptr::null_mut(),
                ready: 0,
            };
            match write_sized(memory, &described) {
                true => Ok(()),
                false => Err(Failure::invalid("the pointer to the description is NULL")),
            }
        })
    }
}
