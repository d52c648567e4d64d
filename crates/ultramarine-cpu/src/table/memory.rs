//! The interface `ultramarine.memory/1`. The CPU's memory is the host's own, so Ultramarine's host imports and exports
//! tensors itself. Another host that calls this table can import its memory as a buffer. Commands use the addresses in
//! their tensors.

use super::state;
use core::ffi::c_void;
use ultramarine_abi::helper::{Failure, guard};
use ultramarine_abi::interface::memory::{ForeignMemory, MemoryInterface, kind};
use ultramarine_abi::{self as abi, Status};

pub(super) static TABLE: MemoryInterface = MemoryInterface {
    size: size_of::<MemoryInterface>() as u32,
    imports: 1 << kind::HOST,
    exports: 1 << kind::HOST,
    flags: 0,
    import: Some(import),
    export: Some(export),
    wait_foreign: None,
    native_stream: None,
    signal_foreign: None,
    retain_foreign: None,
    release_foreign: None,
};

/// The address of a block.
fn address(block: &ForeignMemory) -> Result<u64, Failure> {
    let outside = || Failure::invalid("the block leaves the address space");
    if block.handle == 0 || block.bytes == 0 {
        return Err(Failure::invalid("there is no memory to import"));
    }
    let address = block.handle.checked_add(block.offset).ok_or_else(outside)?;
    address.checked_add(block.bytes).map(|_| address).ok_or_else(outside)
}

unsafe extern "C" fn import(
    device: *mut c_void,
    memory: *const ForeignMemory,
    buffer: *mut *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host passes what `backend_init` gave.
    let state = unsafe { state(device) };
    let work = || {
        // SAFETY: the host's struct says its size; all-zero is a valid one.
        let block = unsafe { abi::read_sized(memory) };
        let block = block.ok_or_else(|| Failure::invalid("there is no memory to import"))?;
        if block.kind != kind::HOST || block.ready != 0 {
            return Err(Failure::unsupported("host memory is imported, with its content"));
        }
        let handle = address(&block)?;
        if buffer.is_null() {
            return Err(Failure::invalid("no place for the buffer"));
        }
        let made = Box::new(ForeignMemory { handle, offset: 0, ..block });
        // SAFETY: the host's place.
        unsafe { *buffer = Box::into_raw(made).cast() };
        Ok(())
    };
    // SAFETY: the host's error place.
    unsafe { guard(state.map(|s| &s.host), error, work) }
}

unsafe extern "C" fn export(
    device: *mut c_void,
    buffer: *mut c_void,
    wanted: u32,
    memory: *mut ForeignMemory,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host passes what `backend_init` gave.
    let state = unsafe { state(device) };
    let work = || {
        if wanted != kind::HOST {
            return Err(Failure::unsupported("buffers are host memory"));
        }
        // SAFETY: NULL, or a buffer that `import` made.
        let block = unsafe { buffer.cast::<ForeignMemory>().as_ref() };
        let block = block.ok_or_else(|| Failure::invalid("the buffer is NULL"))?;
        let described = ForeignMemory { release: None, context: core::ptr::null_mut(), ..*block };
        // SAFETY: the host's struct says its size.
        match unsafe { abi::write_sized(memory, &described) } {
            true => Ok(()),
            false => Err(Failure::invalid("no place for the memory's description")),
        }
    };
    // SAFETY: the host's error place.
    unsafe { guard(state.map(|s| &s.host), error, work) }
}

/// Returns imported memory to its owner.
pub(super) unsafe extern "C" fn buffer_free(_device: *mut c_void, buffer: *mut c_void) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: a buffer that `import` made, freed once.
    let block = unsafe { Box::from_raw(buffer.cast::<ForeignMemory>()) };
    if let Some(release) = block.release {
        // SAFETY: the owner's own function and argument, once.
        unsafe { release(block.context) };
    }
}

pub(super) unsafe extern "C" fn buffer_host_pointer(
    _device: *mut c_void,
    buffer: *mut c_void,
) -> *mut c_void {
    // SAFETY: NULL, or a buffer that `import` made.
    let block = unsafe { buffer.cast::<ForeignMemory>().as_ref() };
    block.map_or(core::ptr::null_mut(), |b| b.handle as *mut c_void)
}
