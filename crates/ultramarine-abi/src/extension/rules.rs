//! The table of an operation's rules.

use super::{ArrayHandle, EvalCall, TensorType};
use crate::{Error, Status};
use core::ffi::{c_char, c_void};

/// Bits of [`Primitive::flags`].
pub mod primitive {
    /// The primitive itself gives its outputs memory, by `allocate`, `take` or `share`, before it
    /// writes them.
    pub const ALLOCATES: u32 = 1;
}

/// An operation with its attributes: the table of its rules. The host copies the struct, the name
/// and the attributes; [`ExtensionHost::apply`](super::ExtensionHost::apply) takes over the
/// context.
///
/// Required are `infer`, and `compose` or an evaluation. `compose` expresses the operation by other
/// operations. If derivatives, batching or evaluations have no rule of their own, they are computed
/// from `compose`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Primitive {
    /// `size_of::<Primitive>()` of the writer.
    pub size: u32,
    /// Bits of [`primitive`].
    pub flags: u32,
    /// Name, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// Version. Primitives with equal name, version and attributes are the same operation, which
    /// may be computed only once.
    pub version: u32,
    /// Number of outputs, at least 1.
    pub n_outputs: u32,
    /// `attribute_bytes` bytes.
    pub attributes: *const c_void,
    /// Bytes of `attributes`.
    pub attribute_bytes: u64,
    /// First argument of the rules.
    pub context: *mut c_void,
    /// Writes the outputs' shapes and dtypes, and refuses operands that do not fit. The host has
    /// set the `size` of the outputs. The function is called again for other shapes, and always
    /// gives the same answer for the same inputs.
    pub infer: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            inputs: *const TensorType,
            n_inputs: u32,
            outputs: *mut TensorType,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Computes the outputs on the CPU, in the stream's order. They count as written once the
    /// function has returned and its tasks are done.
    pub eval_cpu: Option<Evaluate>,
    /// Computes the outputs on a device that takes kernels, by launches on its stream. If it
    /// returns [`crate::status::UNSUPPORTED`] with an error object, the host uses `compose`;
    /// without a `compose` that error is reported.
    pub eval_gpu: Option<Evaluate>,
    /// Makes the outputs from other operations. They have the types that `infer` returned. The
    /// caller owns them.
    pub compose: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            inputs: *const *mut ArrayHandle,
            n_inputs: u32,
            outputs: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Makes the cotangents of the inputs from those of the outputs. Each has its input's shape.
    /// `results` and `wanted` have an entry for each input; a NULL array means zero. Results that
    /// are not `wanted` may stay NULL.
    pub vjp: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            inputs: *const *mut ArrayHandle,
            n_inputs: u32,
            outputs: *const *mut ArrayHandle,
            cotangents: *const *mut ArrayHandle,
            wanted: *const u8,
            results: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Makes the tangents of the outputs from those of the inputs. For both, a NULL array means
    /// zero.
    pub jvp: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            inputs: *const *mut ArrayHandle,
            n_inputs: u32,
            tangents: *const *mut ArrayHandle,
            results: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Makes the outputs for a batch of size `batch`. Input i has the batch along its axis
    /// `axes[i]`; -1 means that the input is the same for the whole batch. The rule writes the
    /// outputs, and to `output_axes` the axis of the batch in each output.
    pub vmap: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            inputs: *const *mut ArrayHandle,
            n_inputs: u32,
            axes: *const i32,
            batch: i64,
            outputs: *mut *mut ArrayHandle,
            output_axes: *mut i32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Returns 0 if two primitives are different operations although their name, version,
    /// attributes and this function are equal. May be NULL.
    pub equivalent: Option<unsafe extern "C" fn(context: *mut c_void, other: *mut c_void) -> i32>,
    /// Writes the text that errors and graphs show, at most `room` bytes without NUL, and returns
    /// its full length. May be NULL.
    pub print:
        Option<unsafe extern "C" fn(context: *mut c_void, text: *mut c_char, room: u64) -> u64>,
    /// Frees `context`. It is called once, on any thread, when nothing needs the primitive. May be
    /// NULL.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

/// Receives a primitive and takes over its context.
pub type Receive = unsafe extern "C" fn(receiver: *mut c_void, primitive: *const Primitive);

/// Makes a primitive again from its version and attributes, and calls `receive` with it, once.
/// Version and attributes come from a file and may be arbitrary: an unknown version and malformed
/// attributes are errors.
pub type Restore = unsafe extern "C" fn(
    context: *mut c_void,
    version: u32,
    attributes: *const c_void,
    attribute_bytes: u64,
    receive: Receive,
    receiver: *mut c_void,
    error: *mut *mut Error,
) -> Status;

/// An evaluation: [`Primitive::eval_cpu`] or [`Primitive::eval_gpu`].
pub type Evaluate = unsafe extern "C" fn(
    context: *mut c_void,
    call: *const EvalCall,
    error: *mut *mut Error,
) -> Status;
