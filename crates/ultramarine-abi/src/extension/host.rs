//! Functions that the host lends to extensions.

use super::{
    ArrayHandle, Dispatch, KernelHandle, KernelProperties, KernelText, PlaceCode, Primitive,
    Restore, Task, TaskDrop, TensorType, View,
};
use crate::{Error, ParallelBody, Status};
use core::ffi::{c_char, c_void};
use ultramarine_dlpack::DLDataType;

/// Values of [`Attribute::kind`].
pub mod attribute {
    /// `integer`; also of flags.
    pub const INT: u32 = 0;
    /// `real`.
    pub const FLOAT: u32 = 1;
    /// `count` integers at `integers`.
    pub const INTS: u32 = 2;
    /// `dtype`.
    pub const DTYPE: u32 = 3;
    /// `text`.
    pub const TEXT: u32 = 4;
}

/// A named argument of an operation, other than an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// `size_of::<Attribute>()` of the writer.
    pub size: u32,
    /// One of [`attribute`].
    pub kind: u32,
    /// Its name, NUL-terminated.
    pub name: *const c_char,
    /// An integer.
    pub integer: i64,
    /// A number.
    pub real: f64,
    /// `count` integers.
    pub integers: *const i64,
    /// Number of `integers`.
    pub count: u64,
    /// A text, NUL-terminated.
    pub text: *const c_char,
    /// A dtype.
    pub dtype: DLDataType,
    /// Reserved, zero.
    pub reserved: u32,
}

/// Functions that the host lends. They may be called from any thread; those with a `host_call`, while the evaluation's
/// call lasts, by its thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExtensionHost {
    /// `size_of::<ExtensionHost>()` of the host.
    pub size: u32,
    /// The host's [`super::EXTENSION_MAJOR`].
    pub major: u16,
    /// The host's [`super::EXTENSION_MINOR`].
    pub minor: u16,
    /// First argument of the functions.
    pub host: *mut c_void,
    /// Version of Ultramarine, NUL-terminated.
    pub version: *const c_char,
    /// Makes an error from a status and UTF-8 text.
    pub error_new: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            code: Status,
            text: *const c_char,
            length: u64,
        ) -> *mut Error,
    >,
    /// The status of an error.
    pub error_code: Option<unsafe extern "C" fn(host: *mut c_void, error: *const Error) -> Status>,
    /// The text of an error, which is good until it is freed. Not NUL-terminated.
    pub error_text: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            error: *const Error,
            length: *mut u64,
        ) -> *const c_char,
    >,
    /// Frees an error.
    pub error_free: Option<unsafe extern "C" fn(host: *mut c_void, error: *mut Error)>,
    /// A handle of one's own.
    pub array_retain: Option<
        unsafe extern "C" fn(host: *mut c_void, array: *const ArrayHandle) -> *mut ArrayHandle,
    >,
    /// Ends a handle. NULL is ignored.
    pub array_release: Option<unsafe extern "C" fn(host: *mut c_void, array: *mut ArrayHandle)>,
    /// Shape and dtype.
    pub array_type: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            array: *const ArrayHandle,
            of: *mut TensorType,
        ) -> Status,
    >,
    /// The stream that computes it.
    pub array_place: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            array: *const ArrayHandle,
            place: *mut PlaceCode,
        ) -> Status,
    >,
    /// Computes arrays and waits. Not inside of an evaluation.
    pub array_eval: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            arrays: *const *mut ArrayHandle,
            n: u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// The elements in host memory, read-only; computes them if need be. Good as long as the handle.
    pub array_view: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            array: *const ArrayHandle,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// A copy of `bytes` bytes, row-major.
    pub array_from_bytes: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            of: *const TensorType,
            data: *const c_void,
            bytes: u64,
            array: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// A constant of a shape, from the little-endian bits (16 bytes) of a value of its dtype. Scalars have no home: they follow
    /// what they meet.
    pub array_full: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            of: *const TensorType,
            bits: *const u64,
            array: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// The dtype that both promote to.
    pub promote_types: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            a: DLDataType,
            b: DLDataType,
            promoted: *mut DLDataType,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// 1 if the dtype is of the category, 0 if not, -1 for a category that is none.
    pub issubdtype: Option<
        unsafe extern "C" fn(host: *mut c_void, dtype: DLDataType, category: *const c_char) -> i32,
    >,
    /// The shape that all broadcast to, and the promoted dtype.
    pub broadcast_types: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            types: *const TensorType,
            n: u32,
            broadcast: *mut TensorType,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Arrays broadcast to one shape.
    pub broadcast_arrays: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            arrays: *const *mut ArrayHandle,
            n: u32,
            results: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// An operation of Ultramarine by its name. Attributes have the names of mlx.core's keyword arguments.
    pub operation: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            name: *const c_char,
            inputs: *const *mut ArrayHandle,
            n_inputs: u32,
            attributes: *const Attribute,
            n_attributes: u32,
            place: *const PlaceCode,
            results: *mut *mut ArrayHandle,
            n_results: u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// A primitive. Takes over its context.
    pub apply: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            primitive: *const Primitive,
            inputs: *const *mut ArrayHandle,
            n_inputs: u32,
            place: *const PlaceCode,
            outputs: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Calls `body(context, i)` for every `i < count` on the host's thread pool; returns when all are done.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            count: u64,
            body: ParallelBody,
            context: *mut c_void,
        ),
    >,
    /// Threads that `parallel_for` uses at most.
    pub thread_count: Option<unsafe extern "C" fn(host: *mut c_void) -> u32>,
    /// New memory for an output; `strides` in elements, dense in some order of the axes, or NULL for row-major.
    pub allocate: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            output: u32,
            strides: *const i64,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// An input's memory for an output, if nobody else needs it; else UNSUPPORTED without an error.
    pub take: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            output: u32,
            input: u32,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// An output that is a view of an input's elements, from `offset` elements on; it may not be written.
    pub share: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            output: u32,
            input: u32,
            offset: i64,
            strides: *const i64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// On the CPU: a task that runs on the stream behind the evaluation and before whatever needs the outputs. `drop` ends
    /// the context, once, also when the task never runs, and when enqueueing fails.
    pub enqueue: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            task: Task,
            drop: Option<TaskDrop>,
            context: *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Compiles a kernel, or finds it. A failure's error holds the compiler's log and the source's lines.
    pub kernel: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            text: *const KernelText,
            kernel: *mut *mut KernelHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Reads a kernel's properties on the device.
    pub kernel_properties: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            kernel: *mut KernelHandle,
            properties: *mut KernelProperties,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Memory of the device until the launches are done.
    pub temporary: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            bytes: u64,
            temporary: *mut u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Makes an input row-major for the launches that follow, if it is not; its view changes accordingly.
    pub contiguous: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            input: u32,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Gives a launch to the stream.
    pub launch: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            kernel: *mut KernelHandle,
            dispatch: *const Dispatch,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// The text that precedes kernels of a language, NUL-terminated, or NULL.
    pub prelude:
        Option<unsafe extern "C" fn(host: *mut c_void, language: *const c_char) -> *const c_char>,
    /// Says how primitives of a name are made again, for functions in files; since 1.2. `package` is the package to install or
    /// import, for errors where the name is unknown. The context is good as long as the process lives; a later call for a
    /// name takes an earlier one's place.
    pub provide: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            name: *const c_char,
            package: *const c_char,
            restore: Restore,
            context: *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
}

// SAFETY: the table is plain data, and its functions are callable from any thread by contract;
// `host` is only handed back to them.
unsafe impl Send for ExtensionHost {}
// SAFETY: as above.
unsafe impl Sync for ExtensionHost {}
