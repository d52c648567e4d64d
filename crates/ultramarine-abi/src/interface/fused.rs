//! Optional interface: elementwise programs with an optional reduction as epilogue.
//!
//! A program computes several elementwise operations in one kernel. It is in static single
//! assignment form: operand indices count first the inputs, then the constants, then the results of
//! the instructions. Every value has the iteration shape, the shape of the largest operand, to
//! which inputs are broadcast by zero strides. Every instruction rounds to its dtype, without
//! contraction, so results are bitwise identical to those of the operations one by one.
//!
//! With an epilogue, output 0 is the named value, reduced over `axes` (which stay, with size 1);
//! further outputs have the iteration shape. A sum or product is bitwise identical to REDUCE of
//! that value. So the order of adding depends on dtype, shape and axes, and not on an operand's
//! strides.
//!
//! The output of the last instruction may be the memory of an input, element for element. No other
//! output overlaps an input.
//!
//! Revision 2 ([`ANCHORED_INTERFACE`]) is offered besides revision 1. Its programs end in an
//! operation of the contract, their anchor, which reads a value of the program.

use crate::{Error, Status, TensorDesc};
use core::ffi::c_void;
use ultramarine_dlpack::DLDataType;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.fused/1";
/// Id of the interface for programs with an anchor.
pub const ANCHORED_INTERFACE: &core::ffi::CStr = c"ultramarine.fused/2";

/// Families of instructions.
pub mod family {
    /// A [`crate::schema::unary`] code, of operand `a`.
    pub const UNARY: u8 = 0;
    /// A [`crate::schema::binary`] code, of operands `a` and `b`, which have one dtype.
    pub const BINARY: u8 = 1;
    /// `a ? b : c`; `a` is bool.
    pub const SELECT: u8 = 2;
    /// Operand `a`, converted to the instruction's dtype as COPY does.
    pub const CAST: u8 = 3;
}

/// One instruction. It gives operands by their indices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// One of [`family`].
    pub family: u8,
    /// Op code within the family; 0 for select and cast.
    pub op: u8,
    /// First operand.
    pub a: u16,
    /// Second operand; 0 if the family has none.
    pub b: u16,
    /// Third operand; 0 if the family has none.
    pub c: u16,
    /// Dtype of the result.
    pub dtype: DLDataType,
}

/// The value of `Program::reduce` for a program without an epilogue.
pub const NO_REDUCTION: u32 = u32::MAX;

/// A program. Pointers are valid during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// `size_of::<Program>()` of the writer.
    pub size: u32,
    /// Epilogue: a [`crate::schema::reduce`] code for output 0, or [`NO_REDUCTION`].
    pub reduce: u32,
    /// Bit `i` (of value 2^i): axis `i` of the iteration shape is reduced.
    pub axes: u64,
    /// `n_instructions` instructions; with an epilogue there may be none.
    pub instructions: *const Instruction,
    /// Dtypes of the `n_constants` constants. A command's scalars are their values.
    pub constants: *const DLDataType,
    /// Operand index of each of the `n_outputs` outputs.
    pub outputs: *const u16,
    /// Number of instructions.
    pub n_instructions: u32,
    /// Number of constants.
    pub n_constants: u32,
    /// Number of outputs.
    pub n_outputs: u32,
    /// Number of inputs.
    pub n_inputs: u32,
}

/// Functions of the interface [`INTERFACE`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FusedInterface {
    /// `size_of::<FusedInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Makes a plan for a program, as [`crate::BackendTable::prepare`] does for an operation.
    /// There are `n_inputs` and `n_outputs` descriptions. The plan is submitted and released like
    /// any other. After [`crate::status::UNSUPPORTED`] or [`crate::status::NOT_YET`] the host runs
    /// the operations one by one.
    pub prepare: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            program: *const Program,
            inputs: *const TensorDesc,
            outputs: *const TensorDesc,
            plan: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
}

/// Values of [`Anchor::position`].
pub mod position {
    /// The operation comes last: its operand 0 is the value that the program's output 0 names.
    pub const LAST: u32 = 0;
}

/// An anchor: an operation with one output that reads a value of a program. The program has no
/// epilogue. Pointers are valid during the call only.
///
/// Inputs of a command are the program's inputs, then the operation's operands without the one that
/// is the value. Scalars are the program's constants, then the operation's scalars. With
/// [`position::LAST`], output 0 is the operation's. The further outputs are the program's, of the
/// iteration shape; the value itself may be among them. The last of them may be the memory of an
/// input of the program, as in revision 1, but of none that the operation reads.
///
/// The value is rounded to its dtype before the operation reads it. So results are bitwise
/// identical to those of the program, followed by the operation on its row-major result.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// `size_of::<Anchor>()` of the writer.
    pub size: u32,
    /// The operation: one of [`crate::schema::op`].
    pub op: u32,
    /// Revision of its attributes.
    pub revision: u32,
    /// One of [`position`]; all other values are unsupported.
    pub position: u32,
    /// The operation's attribute struct of [`crate::schema`].
    pub attributes: *const c_void,
    /// Number of operands besides the one that is a value of the program.
    pub n_inputs: u32,
    /// Number of scalars.
    pub n_scalars: u32,
}

/// Functions of the interface [`ANCHORED_INTERFACE`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AnchoredInterface {
    /// `size_of::<AnchoredInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Makes a plan, as [`FusedInterface::prepare`] does. `inputs` has the program's
    /// `n_inputs` descriptions, then the anchor's `n_inputs`. After [`crate::status::UNSUPPORTED`]
    /// or [`crate::status::NOT_YET`] the host runs the program and the operation one after the
    /// other.
    pub prepare: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            program: *const Program,
            anchor: *const Anchor,
            inputs: *const TensorDesc,
            outputs: *const TensorDesc,
            plan: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
}
