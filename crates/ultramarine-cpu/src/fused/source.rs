//! Programs as they are received, before they are checked.

use crate::{dtype::DType, elementwise::TileOp, kernel::Desc, kernel::Refusal};
use ultramarine_abi::fused;

/// An instruction in this crate's terms.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// The operation.
    pub op: TileOp,
    /// Operands: values counted through inputs, constants and results.
    pub operands: [u16; 3],
    /// Its result's dtype.
    pub dtype: DType,
}

/// A program as it is received.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// In order.
    pub instructions: Vec<Instruction>,
    /// Dtypes of the constants.
    pub constants: Vec<DType>,
    /// The value of each output.
    pub outputs: Vec<u16>,
    /// Code and axes of the epilogue.
    pub reduce: Option<(u32, u64)>,
}

impl Source {
    /// Decodes a program of the boundary.
    ///
    /// # Safety
    /// The program's arrays have the lengths that it says.
    pub unsafe fn decode(program: &fused::Program) -> Result<Self, Refusal> {
        /// # Safety
        /// `data` is readable for `n` items, or `n` is 0.
        unsafe fn slice<'a, T>(data: *const T, n: u32) -> &'a [T] {
            if n == 0 || data.is_null() {
                return &[];
            }
            // SAFETY: by this function's contract.
            unsafe { std::slice::from_raw_parts(data, n as usize) }
        }
        // SAFETY: by this function's contract.
        let (instructions, constants, outputs) = unsafe {
            (
                slice(program.instructions, program.n_instructions),
                slice(program.constants, program.n_constants),
                slice(program.outputs, program.n_outputs),
            )
        };
        let dtype = |dl| DType::from_dl(dl).ok_or(Refusal::Unsupported);
        let mut source = Source {
            constants: constants.iter().map(|d| dtype(*d)).collect::<Result<_, _>>()?,
            outputs: outputs.to_vec(),
            reduce: (program.reduce != fused::NO_REDUCTION)
                .then_some((program.reduce, program.axes)),
            instructions: Vec::with_capacity(instructions.len()),
        };
        for i in instructions {
            let to = dtype(i.dtype)?;
            let op = match i.family {
                fused::family::UNARY => TileOp::Unary(i.op.into()),
                fused::family::BINARY => TileOp::Binary(i.op.into()),
                fused::family::SELECT => TileOp::Select,
                fused::family::CAST => TileOp::Cast(to),
                _ => return Err(Refusal::Unsupported),
            };
            source.instructions.push(Instruction { op, operands: [i.a, i.b, i.c], dtype: to });
        }
        Ok(source)
    }

    /// The dtype of a value of the program with these inputs, if it is one.
    pub fn dtype(&self, inputs: &[Desc], value: u16) -> Option<DType> {
        let value = usize::from(value);
        let made = self.instructions.iter().map(|i| i.dtype);
        let constants = self.constants.iter().copied();
        inputs.iter().map(|d| d.dtype).chain(constants).chain(made).nth(value)
    }
}
