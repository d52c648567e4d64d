//! Optional interface: elementwise programs with an optional reduction as epilogue.
//!
//! A program is in static single assignment form. Operand indices count first
//! the inputs, then the constants, then the instructions' results. Every value
//! has the iteration shape: the shape of the largest operand, to which inputs
//! are broadcast by zero strides. Every instruction rounds to its dtype, without
//! contraction, so a program gives the bits that its ops give one by one.
//!
//! With an epilogue, output 0 is the named value reduced over `axes`
//! (kept as size 1); further outputs have the iteration shape. A sum or a product
//! gives the bits of REDUCE of that value, so the order in which either joins values
//! depends on dtype, shape and axes, and not on an operand's strides.
//!
//! Revision 2 ([`ANCHORED_INTERFACE`]) is offered besides revision 1. Its programs hang on an operation of the
//! contract, their anchor, which reads a value of the program.

use crate::{Error, Status, TensorDesc};
use core::ffi::c_void;
use ultramarine_dlpack::DLDataType;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.fused/1";
/// Id of the interface for programs with an anchor.
pub const ANCHORED_INTERFACE: &core::ffi::CStr = c"ultramarine.fused/2";

/// Families of instructions.
pub mod family {
    /// [`crate::schema::unary`] codes; operand `a`.
    pub const UNARY: u8 = 0;
    /// [`crate::schema::binary`] codes; operands `a`, `b` of one dtype.
    pub const BINARY: u8 = 1;
    /// `a ? b : c`, `a` bool.
    pub const SELECT: u8 = 2;
    /// Conversion of `a` to the instruction's dtype.
    pub const CAST: u8 = 3;
}

/// One instruction.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// One of [`family`].
    pub family: u8,
    /// Op code within the family; 0 for select and cast.
    pub op: u8,
    /// First operand.
    pub a: u16,
    /// Second operand, or 0.
    pub b: u16,
    /// Third operand, or 0.
    pub c: u16,
    /// Dtype of the result.
    pub dtype: DLDataType,
}

/// `Program::reduce` of a program without epilogue.
pub const NO_REDUCTION: u32 = u32::MAX;

/// A program. Pointers are valid only during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// `size_of::<Program>()` of the writer.
    pub size: u32,
    /// A [`crate::schema::reduce`] code for output 0, or [`NO_REDUCTION`].
    pub reduce: u32,
    /// Bit `i`: axis `i` of the iteration shape is reduced.
    pub axes: u64,
    /// `n_instructions` instructions (may be none, with an epilogue).
    pub instructions: *const Instruction,
    /// Dtypes of the `n_constants` constants; values come as the command's scalars.
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

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FusedInterface {
    /// `size_of::<FusedInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Like [`crate::BackendTable::prepare`]; the plan is submitted and
    /// released like any other.
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

/// [`Anchor::position`]s.
pub mod position {
    /// The operation comes last: its operand 0 is the value that the program's output 0 names.
    pub const LAST: u32 = 0;
}

/// An operation with one output that a program hangs on. Pointers are valid only during the call.
///
/// A command has the program's inputs, then the operation's operands but for the one that is a value of the program;
/// the program's constants, then the operation's scalars. With [`position::LAST`] its output 0 is the operation's; the
/// further outputs are the program's, of the iteration shape, and may be the value that the operation reads. Of these
/// outputs the last one may lie in an input of the program, as in revision 1, but in none that the operation reads. The
/// program has no reduction as epilogue. The value is rounded to its dtype before the operation reads it, so results are
/// bitwise identical to those of the program and, of its row-major result, of the operation by itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// `size_of::<Anchor>()` of the writer.
    pub size: u32,
    /// An operation: one of [`crate::schema::op`].
    pub op: u32,
    /// Revision of its attributes.
    pub revision: u32,
    /// One of [`position`]; others are unsupported.
    pub position: u32,
    /// The operation's attribute struct.
    pub attributes: *const c_void,
    /// Number of operands besides the one that is a value of the program.
    pub n_inputs: u32,
    /// Number of scalars.
    pub n_scalars: u32,
}

/// The table of [`ANCHORED_INTERFACE`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AnchoredInterface {
    /// `size_of::<AnchoredInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Like [`FusedInterface::prepare`]. There are as many `inputs` as the program and the anchor have together.
    /// After [`crate::status::UNSUPPORTED`] or [`crate::status::NOT_YET`] the host gives the program and the operation one
    /// by one.
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
