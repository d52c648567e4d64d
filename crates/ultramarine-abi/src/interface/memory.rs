//! Optional interface: memory of other libraries as buffers, and buffers for other
//! libraries, without a copy.
//!
//! DLPack's types of devices have each their kind: the CPU's and pinned memory are
//! [`kind::HOST`]; CUDA, its managed memory, ROCm, oneAPI and extension devices
//! [`kind::DEVICE_POINTER`]; Metal [`kind::MTL_BUFFER`]; OpenCL [`kind::CL_MEM`]. A block by an
//! address begins at the lowest element; one by a handle begins with the object, and Ultramarine
//! counts from there.
//!
//! Streams cross where [`MemoryInterface::native_stream`], [`MemoryInterface::wait_foreign`] and
//! [`MemoryInterface::signal_foreign`] are all there; else the host waits.

use crate::{Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.memory/1";

/// Values of [`ForeignMemory::kind`].
pub mod kind {
    /// `handle` is an address in host memory.
    pub const HOST: u32 = 0;
    /// `handle` is an address in the device's memory.
    pub const DEVICE_POINTER: u32 = 1;
    /// `handle` is an opaque file descriptor.
    pub const OPAQUE_FD: u32 = 2;
    /// `handle` is an `MTLBuffer`.
    pub const MTL_BUFFER: u32 = 3;
    /// `handle` is a `cl_mem`.
    pub const CL_MEM: u32 = 4;
}

/// Bits of [`ForeignMemory::flags`].
pub mod flag {
    /// The memory must not be written.
    pub const READ_ONLY: u32 = 1;
}

/// A block of memory that belongs to somebody else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ForeignMemory {
    /// `size_of::<ForeignMemory>()` of the writer.
    pub size: u32,
    /// One of [`kind`].
    pub kind: u32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Reserved, zero.
    pub reserved: u32,
    /// The memory, as `kind` says.
    pub handle: u64,
    /// Bytes from the start of the memory to the block.
    pub offset: u64,
    /// Bytes of the block.
    pub bytes: u64,
    /// Called once, on any thread, when the block is no longer used; may be NULL.
    /// The owner sets it for an import, the backend for an export.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Argument of `release`.
    pub context: *mut c_void,
    /// A native event or stream of the other library after whose present work the
    /// content is there; 0: it is there already.
    pub ready: u64,
}

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryInterface {
    /// `size_of::<MemoryInterface>()` of the backend.
    pub size: u32,
    /// Bit `i`: memory of kind `i` can be imported.
    pub imports: u32,
    /// Bit `i`: buffers can be exported as kind `i`.
    pub exports: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) A buffer over somebody else's memory. On success the backend calls
    /// `release` when the buffer is freed; on failure it never does.
    pub import: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            memory: *const ForeignMemory,
            buffer: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Describes a buffer as memory of `kind`. The host keeps the buffer alive
    /// for as long as the other side uses it, and calls `release` afterwards.
    pub export: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            buffer: *mut c_void,
            kind: u32,
            memory: *mut ForeignMemory,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Makes a stream of the backend wait for the present work of a foreign native
    /// stream, which comes as [`MemoryInterface::signal_foreign`] says.
    pub wait_foreign: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            foreign: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) The native stream behind one of the backend's streams, as an integer.
    pub native_stream:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void) -> u64>,
    /// (any) Makes later work of a foreign native stream wait until an event of the backend has
    /// reached `value`, which was recorded. The stream is what `native_stream` would return for
    /// it, or a number that DLPack gives a meaning to for the device's type (CUDA: 1 and 2;
    /// ROCm: 0). What is neither is refused, where the backend can tell.
    pub signal_foreign: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            foreign: u64,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Keeps a foreign native stream, which is alive, until
    /// [`MemoryInterface::release_foreign`]: what its owner does to it destroys it no earlier. Where
    /// streams are counted, as OpenCL's queues are; NULL elsewhere.
    pub retain_foreign: Option<
        unsafe extern "C" fn(device: *mut c_void, foreign: u64, error: *mut *mut Error) -> Status,
    >,
    /// (any) Ends a [`MemoryInterface::retain_foreign`] that succeeded. Both are there, or neither.
    pub release_foreign: Option<unsafe extern "C" fn(device: *mut c_void, foreign: u64)>,
}
