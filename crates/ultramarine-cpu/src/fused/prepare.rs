//! The ops of the contract that are programs of one step or none.

use super::source::{Instruction, Source};
use super::{program::Program, run::Fused};
use crate::elementwise::{self, TileOp};
use crate::kernel::{Op, Prepared, Refusal, Signature, known};
use crate::level::Level;
use ultramarine_abi::fused;
use ultramarine_abi::schema::{self, op as id};

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
pub fn prepare_op(op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    let expected = match op.id {
        id::BINARY => 2,
        id::SELECT => 3,
        id::COPY | id::UNARY | id::REDUCE => 1,
        _ => return Err(Refusal::Unsupported),
    };
    signature.expect(expected, 1)?;
    let to = signature.outputs[0].dtype;
    let step = match op.id {
        id::REDUCE => {
            let attrs: schema::ReduceAttrs = op.attributes()?;
            let code = known(attrs.op, schema::reduce::NAMES)?;
            let source =
                Source { outputs: vec![0], reduce: Some((code, attrs.axes)), ..Source::default() };
            return build(source, signature, level);
        }
        id::COPY if signature.inputs[0].dtype == to => {
            return build(Source { outputs: vec![0], ..Source::default() }, signature, level);
        }
        id::COPY => TileOp::Cast(to),
        id::UNARY => {
            let attrs: schema::UnaryAttrs = op.attributes()?;
            TileOp::Unary(known(attrs.op, schema::unary::NAMES)?)
        }
        id::BINARY => {
            let attrs: schema::BinaryAttrs = op.attributes()?;
            TileOp::Binary(known(attrs.op, schema::binary::NAMES)?)
        }
        _ => TileOp::Select,
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
