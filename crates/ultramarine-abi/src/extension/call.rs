//! Arguments and results of evaluations: views, kernels, launches.

use super::View;
use crate::{Error, Status};
use core::ffi::{c_char, c_void};
use ultramarine_dlpack::DLDataType;

/// Arguments of an evaluation, on the CPU or on a device. Inputs and outputs are `view_stride`
/// bytes apart, because structs of a later version are longer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EvalCall {
    /// `size_of::<EvalCall>()` of the writer.
    pub size: u32,
    /// Number of inputs.
    pub n_inputs: u32,
    /// Number of outputs.
    pub n_outputs: u32,
    /// Bytes between the elements of `inputs` and `outputs`.
    pub view_stride: u32,
    /// Inputs.
    pub inputs: *const View,
    /// Outputs. They have memory, unless the primitive allocates it.
    pub outputs: *const View,
    /// Languages of kernels that the device takes, separated by spaces, NUL-terminated; empty on the CPU.
    pub languages: *const c_char,
    /// First argument of those functions of the host table that belong to an evaluation.
    pub host_call: *mut c_void,
}

/// A kernel in source form. The host puts the language's prelude before it. The languages `ptx` and
/// `cubin` are compiled code, which is loaded unchanged.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelText {
    /// `size_of::<KernelText>()` of the writer.
    pub size: u32,
    /// Number of `template_arguments`.
    pub n_template_arguments: u32,
    /// Language, NUL-terminated.
    pub language: *const c_char,
    /// Source. It is NUL-terminated unless `source_bytes` gives its length.
    pub source: *const c_char,
    /// Name of the function, NUL-terminated.
    pub entry: *const c_char,
    /// Template arguments as text, each NUL-terminated; or NULL.
    pub template_arguments: *const *const c_char,
    /// Options for the compiler, NUL-terminated; or NULL.
    pub options: *const c_char,
    /// Bytes of `source`. 0 means that it is NUL-terminated. Since 1.1.
    pub source_bytes: u64,
}

/// A compiled kernel. It is opaque, and valid until the evaluation returns.
#[repr(C)]
pub struct KernelHandle {
    _opaque: [u8; 0],
}

/// Properties of a compiled kernel on its device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelProperties {
    /// `size_of::<KernelProperties>()` of the writer.
    pub size: u32,
    /// Most threads of a group for this kernel.
    pub max_group: u32,
    /// Group sizes that are multiples of this are the fastest.
    pub group_multiple: u32,
    /// Bytes of shared memory of a group.
    pub max_shared: u32,
}

/// Values of [`Binding::kind`].
pub mod bind {
    /// Input `index`.
    pub const INPUT: u32 = 0;
    /// Output `index`, which is written.
    pub const OUTPUT: u32 = 1;
    /// Temporary `index`, which is written.
    pub const TEMPORARY: u32 = 2;
    /// `scalar` of `dtype`, by value.
    pub const SCALAR: u32 = 3;
    /// A read-only array of `bytes` bytes at `constants`.
    pub const CONSTANTS: u32 = 4;
}

/// An argument of a launch. Its kind determines which other fields are used.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// `size_of::<Binding>()` of the writer.
    pub size: u32,
    /// One of [`bind`].
    pub kind: u32,
    /// Index of the input, output or temporary.
    pub index: u32,
    /// Dtype of the scalar.
    pub dtype: DLDataType,
    /// Little-endian bits of the scalar.
    pub scalar: [u64; 2],
    /// Constants.
    pub constants: *const c_void,
    /// Bytes of `constants`.
    pub bytes: u64,
}

/// A launch of a kernel: `grid` groups of `group` threads, along x, y and z.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// `size_of::<Dispatch>()` of the writer.
    pub size: u32,
    /// Number of bindings.
    pub n_bindings: u32,
    /// Bindings, in the order of the kernel's parameters.
    pub bindings: *const Binding,
    /// Bytes from one element of `bindings` to the next.
    pub binding_stride: u32,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Groups in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a group in x, y, z.
    pub group: [u32; 3],
}

/// Work for a stream, for [`ExtensionHost::enqueue`](super::ExtensionHost::enqueue). If it fails,
/// the evaluation that enqueued it fails with the same error.
pub type Task = unsafe extern "C" fn(context: *mut c_void, error: *mut *mut Error) -> Status;
/// Ends the context of a [`Task`].
pub type TaskDrop = unsafe extern "C" fn(context: *mut c_void);
