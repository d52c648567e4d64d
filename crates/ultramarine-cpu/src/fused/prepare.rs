//! The ops of the contract that are programs of one step or none.

use super::{
    program::Program,
    run::Fused,
    source::{Instruction, Source},
};
use crate::{
    elementwise::{self, TileOp},
    kernel::{Prepared, Refusal, Signature, known, read_attrs},
    level::Level,
};
use core::ffi::c_void;
use ultramarine_abi::{
    fused,
    schema::{self, op},
};

/// Checks a program and makes a kernel of it.
pub fn build(source: Source, signature: &Signature<'_>, level: Level) -> Prepared {
    Ok(Box::new(Fused::new(Program::new(source, signature, level)?)))
}

/// Prepares a program of the boundary.
///
/// # Safety
/// The program's arrays have the lengths that it says.
pub unsafe fn prepare_program(
    program: &fused::Program,
    signature: &Signature<'_>,
    level: Level,
) -> Prepared {
    // SAFETY: passed on from the caller.
    build(unsafe { Source::decode(program)? }, signature, level)
}

/// Prepares COPY, UNARY, BINARY, SELECT or REDUCE.
///
/// # Safety
/// `attributes` points at the op's attribute struct (or, for ops without, is NULL).
pub unsafe fn prepare_op(
    id: u32,
    attributes: *const c_void,
    signature: &Signature<'_>,
    level: Level,
) -> Prepared {
    let expected = match id {
        op::BINARY => 2,
        op::SELECT => 3,
        op::COPY | op::UNARY | op::REDUCE => 1,
        _ => return Err(Refusal::Unsupported),
    };
    signature.expect(expected, 1)?;
    let to = signature.outputs[0].dtype;
    // SAFETY: by this function's contract.
    let step = unsafe {
        match id {
            op::REDUCE => {
                let attrs = read_attrs::<schema::ReduceAttrs>(attributes)?;
                let code = known(attrs.op, schema::reduce::NAMES)?;
                let source = Source {
                    outputs: vec![0],
                    reduce: Some((code, attrs.axes)),
                    ..Source::default()
                };
                return build(source, signature, level);
            }
            op::COPY if signature.inputs[0].dtype == to => {
                return build(Source { outputs: vec![0], ..Source::default() }, signature, level);
            }
            op::COPY => TileOp::Cast(to),
            op::UNARY => {
                let attrs = read_attrs::<schema::UnaryAttrs>(attributes)?;
                TileOp::Unary(known(attrs.op, schema::unary::NAMES)?)
            }
            op::BINARY => {
                let attrs = read_attrs::<schema::BinaryAttrs>(attributes)?;
                TileOp::Binary(known(attrs.op, schema::binary::NAMES)?)
            }
            _ => TileOp::Select,
        }
    };
    let main = signature.inputs[if step == TileOp::Select { 1 } else { 0 }].dtype;
    let instruction =
        Instruction { op: step, operands: [0, 1, 2], dtype: elementwise::result_dtype(step, main) };
    let source = Source {
        instructions: vec![instruction],
        outputs: vec![expected as u16],
        ..Source::default()
    };
    build(source, signature, level)
}
