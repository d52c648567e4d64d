//! Optional interface: kernels given by users, in source form or compiled.
//!
//! [`crate::DeviceInfo::kernel_languages`] lists the languages of a device: sources `cuda-c`,
//! `wgsl`, `msl`, `opencl-c` ...; compiled code `ptx`, `cubin`.

use crate::{Error, Status, Tensor};
use core::ffi::{c_char, c_void};
use ultramarine_dlpack::DLDataType;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.kernel/1";

/// A kernel to compile. Pointers are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelSource {
    /// `size_of::<KernelSource>()` of the writer.
    pub size: u32,
    /// Number of `template_arguments`.
    pub n_template_arguments: u32,
    /// One of [`crate::DeviceInfo::kernel_languages`], NUL-terminated.
    pub language: *const c_char,
    /// Source: `source_bytes` bytes of UTF-8; for `cubin` any bytes.
    pub source: *const c_char,
    /// Bytes of `source`.
    pub source_bytes: u64,
    /// Name of the function, NUL-terminated.
    pub entry: *const c_char,
    /// Template arguments as text, each NUL-terminated.
    pub template_arguments: *const *const c_char,
    /// Options for the compiler, NUL-terminated, or NULL.
    pub options: *const c_char,
}

/// Values of [`KernelArgument::kind`].
pub mod argument {
    /// A pointer to the first element of `tensor`, or a binding of memory that begins at it. Unlike
    /// a command's tensor it may be empty; its buffer may then be NULL.
    pub const TENSOR: u32 = 0;
    /// The value `scalar` of `dtype`; bool is a byte.
    pub const SCALAR: u32 = 1;
}

/// One argument of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelArgument {
    /// `size_of::<KernelArgument>()` of the writer.
    pub size: u32,
    /// One of [`argument`].
    pub kind: u32,
    /// The tensor, or NULL.
    pub tensor: *const Tensor,
    /// Little-endian bits of a scalar.
    pub scalar: [u64; 2],
    /// Type of the scalar.
    pub dtype: DLDataType,
    /// 1 if the kernel writes to the tensor.
    pub written: u32,
}

/// One launch. Pointers are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelLaunch {
    /// `size_of::<KernelLaunch>()` of the writer.
    pub size: u32,
    /// Number of arguments.
    pub n_arguments: u32,
    /// Arguments, in the order of the kernel's parameters.
    pub arguments: *const KernelArgument,
    /// Bytes from one element of `arguments` to the next.
    pub argument_stride: u32,
    /// Bytes of dynamic shared memory. Languages that pass it as a parameter (opencl-c) have it
    /// last.
    pub shared_bytes: u32,
    /// Blocks (work groups) in x, y, z.
    pub grid: [u32; 3],
    /// Threads (work items) of a block in x, y, z.
    pub block: [u32; 3],
}

/// Properties of a compiled kernel on a device. The host sets `size`; unknown properties stay zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelInfo {
    /// `size_of::<KernelInfo>()` of the host.
    pub size: u32,
    /// Most threads of a block of this kernel.
    pub max_threads: u32,
    /// Efficient numbers of threads are multiples of this (the size of a warp or wave).
    pub thread_multiple: u32,
    /// Bytes of shared memory of a block, dynamic and static.
    pub max_shared: u32,
}

/// Functions of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelInterface {
    /// `size_of::<KernelInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Compiles a kernel. If this fails, the error has the compiler's log.
    pub compile: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            source: *const KernelSource,
            kernel: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Enqueues a launch after the stream's earlier work.
    pub launch: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            kernel: *mut c_void,
            launch: *const KernelLaunch,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Frees a kernel that no stream runs any more.
    pub release: Option<unsafe extern "C" fn(device: *mut c_void, kernel: *mut c_void)>,
    /// (any) Reads the properties of a kernel.
    pub info: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            kernel: *mut c_void,
            info: *mut KernelInfo,
            error: *mut *mut Error,
        ) -> Status,
    >,
}
