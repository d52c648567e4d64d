//! Optional interface: importing memory of other libraries as buffers, and exporting buffers to
//! other libraries, without a copy.
//!
//! Kinds follow DLPack's device types:
//!
//! * [`kind::HOST`] for the CPU and pinned memory;
//! * [`kind::DEVICE_POINTER`] for CUDA, its managed memory, ROCm, oneAPI and extension devices;
//! * [`kind::MTL_BUFFER`] for Metal;
//! * [`kind::CL_MEM`] for OpenCL.
//!
//! A block that is given by an address begins at the lowest element. A block that is given by a
//! handle begins at the beginning of the object.
//!
//! If [`MemoryInterface::native_stream`], [`MemoryInterface::wait_foreign`] and
//! [`MemoryInterface::signal_foreign`] are all there, streams of the two libraries are ordered on
//! the device. Otherwise the host waits.

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

/// A block of memory that belongs to another library.
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
    /// The memory, in the form that `kind` names.
    pub handle: u64,
    /// Bytes from the start of the memory to the block.
    pub offset: u64,
    /// Size of the block in bytes.
    pub bytes: u64,
    /// Called once, on any thread, when the block is no longer used; may be NULL. The owner sets it
    /// for an import, the backend for an export.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Argument of `release`.
    pub context: *mut c_void,
    /// Native event or stream of the other library: the content is there after its present work. 0
    /// means that the content is there already.
    pub ready: u64,
}

/// Functions of the interface.
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
    /// (any) Makes a buffer from a block of another library. After OK the backend calls
    /// [`ForeignMemory::release`] when the buffer is freed. After a failure it never calls it, and
    /// the owner keeps the block.
    pub import: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            memory: *const ForeignMemory,
            buffer: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Describes a buffer as memory of `kind`, for another library. The host keeps the buffer
    /// alive as long as that library uses it, and calls [`ForeignMemory::release`] afterwards.
    pub export: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            buffer: *mut c_void,
            kind: u32,
            memory: *mut ForeignMemory,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Makes a stream of the backend wait for the present work of a foreign native stream,
    /// given as in [`MemoryInterface::signal_foreign`].
    pub wait_foreign: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            foreign: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Returns the native stream behind a stream of the backend, as an integer.
    pub native_stream:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void) -> u64>,
    /// (any) Makes later work of a foreign native stream wait until an event of the backend has
    /// reached `value`, which has been recorded. `foreign` is a number as `native_stream` returns
    /// it, or one to which DLPack gives a meaning for the device's type (CUDA: 1 and 2; ROCm: 0).
    /// The backend refuses other numbers if it can detect them.
    pub signal_foreign: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            foreign: u64,
            event: *mut c_void,
            value: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Keeps a living foreign native stream alive until [`MemoryInterface::release_foreign`],
    /// even if its owner drops it. It is for APIs that count references, such as OpenCL's queues.
    /// For other APIs it is NULL.
    pub retain_foreign: Option<
        unsafe extern "C" fn(device: *mut c_void, foreign: u64, error: *mut *mut Error) -> Status,
    >,
    /// (any) Ends a successful [`MemoryInterface::retain_foreign`]. It is NULL if and only if that
    /// function is.
    pub release_foreign: Option<unsafe extern "C" fn(device: *mut c_void, foreign: u64)>,
}
