//! Validated programs of the contract.

use crate::dtype::Dtype;
use crate::hal::Properties;
use crate::ops::elementwise::{Function, Functions, function_of};
use std::collections::BTreeMap;
use ultramarine_abi::fused::{self, Instruction, family};
use ultramarine_abi::helper::{ProgramLimits, ProgramParts, Result};
use ultramarine_abi::schema::op;

/// Maximum number of instructions of a program.
pub const INSTRUCTIONS: usize = 64;
/// Maximum number of constants.
const CONSTANTS: usize = 32;

/// An instruction of a [`Program`]. Operands are indices of values.
#[derive(Clone)]
pub enum Step {
    /// A function of these values, which all have the same dtype.
    Call(Function, Vec<usize>),
    /// Selects the second operand where the first is true, otherwise the third.
    Select(usize, usize, usize),
    /// A conversion to another dtype.
    Cast(usize),
}

impl Step {
    /// The values that it reads.
    pub fn operands(&self) -> Vec<usize> {
        match self {
            Self::Call(_, of) => of.clone(),
            Self::Select(a, b, c) => vec![*a, *b, *c],
            Self::Cast(a) => vec![*a],
        }
    }
}

/// A validated program of the contract. Values are numbered: inputs, then constants, then steps.
#[derive(Clone)]
pub struct Program {
    /// Number of inputs.
    pub inputs: usize,
    /// Number of constants.
    pub constants: usize,
    /// Instructions.
    pub steps: Vec<Step>,
    /// Dtypes of all values.
    pub dtypes: Vec<Dtype>,
    /// The values that are written.
    pub outputs: Vec<usize>,
    /// The epilogue of output 0: its code, and the mask of its axes.
    pub reduce: Option<(u32, u64)>,
    /// The functions of the dtypes that the program computes with.
    pub functions: BTreeMap<Dtype, Functions>,
}

impl Program {
    /// Validates a program with inputs of these dtypes, for a device.
    ///
    /// # Safety
    /// The program's lists have the stated lengths.
    pub unsafe fn of(
        given: &fused::Program,
        inputs: &[Dtype],
        properties: &Properties,
    ) -> Result<Self> {
        let tensors = super::most_tensors(properties);
        let most = ProgramLimits {
            inputs: tensors,
            outputs: tensors,
            tensors,
            constants: CONSTANTS,
            instructions: INSTRUCTIONS,
        };
        // SAFETY: by this function's contract.
        let parts = unsafe { ProgramParts::of(given, inputs, most)? };
        let mut program = Self {
            inputs: inputs.len(),
            constants: parts.dtypes.len() - inputs.len(),
            steps: Vec::with_capacity(parts.instructions.len()),
            dtypes: parts.dtypes,
            outputs: parts.outputs,
            reduce: parts.reduce,
            functions: BTreeMap::new(),
        };
        for (i, instruction) in parts.instructions.iter().enumerate() {
            let (step, dtype) = program.step(instruction, properties.float64).ok_or_else(|| {
                ProgramParts::refused(format!("whose instruction {i} is {instruction:?}"))
            })?;
            program.steps.push(step);
            program.dtypes.push(dtype);
        }
        if let Some(output) = program.outputs.iter().find(|o| **o >= program.dtypes.len()) {
            return Err(ProgramParts::refused(format!("without value {output}, which it gives")));
        }
        Ok(program)
    }

    /// An instruction and the dtype of its result; `None` if the instruction is invalid.
    fn step(&mut self, i: &Instruction, float64: bool) -> Option<(Step, Dtype)> {
        let to = Dtype::of(i.dtype)?;
        let dtype = |value: u16| self.dtypes.get(usize::from(value)).copied();
        let (a, b, c) = (usize::from(i.a), usize::from(i.b), usize::from(i.c));
        let from = dtype(i.a)?;
        let step = match i.family {
            family::UNARY => Step::Call(function_of(op::UNARY, i.op.into(), from)?, vec![a]),
            family::BINARY if dtype(i.b)? == from => {
                Step::Call(function_of(op::BINARY, i.op.into(), from)?, vec![a, b])
            }
            family::SELECT => {
                let fits = from == Dtype::Bool && dtype(i.b)? == to && dtype(i.c)? == to;
                fits.then_some(Step::Select(a, b, c))?
            }
            family::CAST => Step::Cast(a),
            _ => return None,
        };
        if let Step::Call(function, _) = &step {
            let functions =
                self.functions.entry(from).or_insert_with(|| Functions::of(from, float64));
            if function.output != to || !functions.has(&function.name) {
                return None;
            }
        }
        Some((step, to))
    }

    /// Index of the first step's value.
    pub fn first(&self) -> usize {
        self.inputs + self.constants
    }

    /// Dtypes of the tensors before the epilogue: inputs, then outputs.
    pub fn tensors(&self) -> Vec<Dtype> {
        let outputs = self.outputs.iter().map(|o| self.dtypes[*o]);
        self.dtypes[..self.inputs].iter().copied().chain(outputs).collect()
    }
}
