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
    /// `integer`; also used for flags.
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

/// Functions that the host lends to extensions. The struct lives as long as the process.
///
/// Functions with the argument `host` may be called from any thread. Functions with `host_call`
/// ([`EvalCall::host_call`](super::EvalCall::host_call)) may be called during the evaluation, by
/// its thread.
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
    /// Makes an error from a status and UTF-8 text. The caller owns it until the caller frees or
    /// returns it.
    pub error_new: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            code: Status,
            text: *const c_char,
            length: u64,
        ) -> *mut Error,
    >,
    /// Returns the status of an error.
    pub error_code: Option<unsafe extern "C" fn(host: *mut c_void, error: *const Error) -> Status>,
    /// Returns the text of an error, which is valid until the error is freed. It is not
    /// NUL-terminated.
    pub error_text: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            error: *const Error,
            length: *mut u64,
        ) -> *const c_char,
    >,
    /// Frees an error.
    pub error_free: Option<unsafe extern "C" fn(host: *mut c_void, error: *mut Error)>,
    /// Returns a new handle of an array, which the caller owns.
    pub array_retain: Option<
        unsafe extern "C" fn(host: *mut c_void, array: *const ArrayHandle) -> *mut ArrayHandle,
    >,
    /// Ends a handle. NULL is ignored.
    pub array_release: Option<unsafe extern "C" fn(host: *mut c_void, array: *mut ArrayHandle)>,
    /// Writes shape and dtype of an array.
    pub array_type: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            array: *const ArrayHandle,
            of: *mut TensorType,
        ) -> Status,
    >,
    /// Writes the stream that computes an array.
    pub array_place: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            array: *const ArrayHandle,
            place: *mut PlaceCode,
        ) -> Status,
    >,
    /// Computes arrays and waits for them. Must not be called inside of an evaluation.
    pub array_eval: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            arrays: *const *mut ArrayHandle,
            n: u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Returns a view of an array's elements in host memory, which are computed first. The view is
    /// valid as long as the handle, and read-only.
    pub array_view: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            array: *const ArrayHandle,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Makes an array from `bytes` bytes in row-major order, which are copied.
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
    /// Makes an array of one value, from the little-endian bits (16 bytes) of the value in the
    /// type's dtype. An array without axes is computed where its other operands are.
    pub array_full: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            of: *const TensorType,
            bits: *const u64,
            array: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Writes the dtype to which operands of two dtypes are converted.
    pub promote_types: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            a: DLDataType,
            b: DLDataType,
            promoted: *mut DLDataType,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Returns 1 if the dtype belongs to the category, 0 if it does not, and -1 if there is no such
    /// category.
    pub issubdtype: Option<
        unsafe extern "C" fn(host: *mut c_void, dtype: DLDataType, category: *const c_char) -> i32,
    >,
    /// Writes the shape to which all types broadcast, and the dtype to which they promote.
    pub broadcast_types: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            types: *const TensorType,
            n: u32,
            broadcast: *mut TensorType,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Broadcasts arrays against each other. The caller owns the results.
    pub broadcast_arrays: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            arrays: *const *mut ArrayHandle,
            n: u32,
            results: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Runs an operation of Ultramarine by its name, such as "add"
    /// (`docs/extension-operations.md`). Attributes have the names of mlx.core's keyword arguments.
    /// The caller owns the results.
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
    /// Applies a primitive, and takes over its context. The outputs are lazy, and the caller owns
    /// them.
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
    /// Calls `body(context, i)` for every `i < count`, on the host's threads and the calling one.
    /// Returns when all calls have returned.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            host: *mut c_void,
            count: u64,
            body: ParallelBody,
            context: *mut c_void,
        ),
    >,
    /// Returns the most threads that `parallel_for` uses.
    pub thread_count: Option<unsafe extern "C" fn(host: *mut c_void) -> u32>,
    /// Allocates new memory for an output. `strides` are in elements, and dense in some order of
    /// the axes. NULL means row-major.
    pub allocate: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            output: u32,
            strides: *const i64,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Gives an input's memory to an output, if nothing else needs it. Otherwise returns
    /// [`crate::status::UNSUPPORTED`] without an error object.
    pub take: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            output: u32,
            input: u32,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Makes an output a view of an input's elements, from element `offset` on. The output must not
    /// be written.
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
    /// On the CPU: enqueues a task, which runs on the stream after the evaluation and before
    /// anything that needs the outputs. `drop` frees the context once, even if the task never runs
    /// or this call fails.
    pub enqueue: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            task: Task,
            drop: Option<TaskDrop>,
            context: *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Compiles a kernel, or returns one that was compiled before. If the compiler fails, the error
    /// has its log with lines of the source.
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
    /// Allocates memory of the device. The memory is released once the launches are done.
    /// `temporary` gets its number.
    pub temporary: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            bytes: u64,
            temporary: *mut u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Makes an input row-major for the following launches, by a copy if necessary. `view` gets its
    /// new view.
    pub contiguous: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            input: u32,
            view: *mut View,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Enqueues a launch on the evaluation's stream.
    pub launch: Option<
        unsafe extern "C" fn(
            host_call: *mut c_void,
            kernel: *mut KernelHandle,
            dispatch: *const Dispatch,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Returns the text that the host puts before kernels of a language, NUL-terminated, or NULL.
    pub prelude:
        Option<unsafe extern "C" fn(host: *mut c_void, language: *const c_char) -> *const c_char>,
    /// Registers the function that makes primitives with this name again, for functions in files.
    /// Since 1.2. `package` names the package to install; it is for the error that programs get
    /// which do not know the name. The context lives as long as the process. A later call for the
    /// same name replaces the function.
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

// SAFETY: the table is plain data, and by the contract its functions may be called from any thread.
// `host` is only passed back to them.
unsafe impl Send for ExtensionHost {}
// SAFETY: as above.
unsafe impl Sync for ExtensionHost {}
