//! The table of an operation's rules.

use super::{ArrayHandle, EvalCall, TensorType};
use crate::{Error, Status};
use core::ffi::{c_char, c_void};

/// Bits of [`Primitive::flags`].
pub mod primitive {
    /// The primitive gives its outputs memory itself, by `allocate`, `take` or `share`, before it writes them.
    pub const ALLOCATES: u32 = 1;
}

/// An operation with its attributes. The host copies the struct, the name and the attributes.
///
/// Only `infer` and one evaluation or `compose` are required. `compose` is the operation written with others: where a
/// derivative, batching or an evaluation has no rule of its own, it follows from it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Primitive {
    /// `size_of::<Primitive>()` of the writer.
    pub size: u32,
    /// Bits of [`primitive`].
    pub flags: u32,
    /// Name, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// Name, version and attributes say whether two primitives are the same operation.
    pub version: u32,
    /// Number of outputs, at least 1.
    pub n_outputs: u32,
    /// `attribute_bytes` bytes.
    pub attributes: *const c_void,
    /// Bytes of `attributes`.
    pub attribute_bytes: u64,
    /// First argument of the rules.
    pub context: *mut c_void,
    /// Shapes and dtypes of the outputs (whose `size` the host has set); the place for errors about operands.
    pub infer: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            inputs: *const TensorType,
            n_inputs: u32,
            outputs: *mut TensorType,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// On the CPU, in the stream's order.
    pub eval_cpu: Option<Evaluate>,
    /// On a device that takes kernels.
    pub eval_gpu: Option<Evaluate>,
    /// The outputs, of the types that `infer` gave, by other operations.
    pub compose: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            inputs: *const *mut ArrayHandle,
            n_inputs: u32,
            outputs: *mut *mut ArrayHandle,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// Cotangents of the inputs; a NULL array, given or returned, is zero.
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
    /// Tangents of the outputs; a NULL array, given or returned, is zero.
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
    /// The outputs for a batch; an axis of -1 means the same for all.
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
    /// Asked when name, version, attributes and this function are equal: 0 if they are different nevertheless.
    pub equivalent: Option<unsafe extern "C" fn(context: *mut c_void, other: *mut c_void) -> i32>,
    /// Writes at most `room` bytes of what errors and graphs show; returns the full length.
    pub print:
        Option<unsafe extern "C" fn(context: *mut c_void, text: *mut c_char, room: u64) -> u64>,
    /// Ends `context`, once, on any thread.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

/// Takes a primitive, whose context is the receiver's then.
pub type Receive = unsafe extern "C" fn(receiver: *mut c_void, primitive: *const Primitive);

/// Makes a primitive again from its version and attributes, and calls `receive` with it, once. Both come from a file, and may be
/// anything: what is not known fails.
pub type Restore = unsafe extern "C" fn(
    context: *mut c_void,
    version: u32,
    attributes: *const c_void,
    attribute_bytes: u64,
    receive: Receive,
    receiver: *mut c_void,
    error: *mut *mut Error,
) -> Status;

/// An evaluation.
pub type Evaluate = unsafe extern "C" fn(
    context: *mut c_void,
    call: *const EvalCall,
    error: *mut *mut Error,
) -> Status;
