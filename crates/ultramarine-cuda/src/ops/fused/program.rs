//! Validated programs of the contract.

use crate::launch::Dtype;
use crate::ops::elementwise::rule::{self, Rule, Weight};
use ultramarine_abi::fused::{self, Instruction, family};
use ultramarine_abi::helper::{ProgramLimits, ProgramParts, Result};

/// Maximum number of instructions of a program.
pub const INSTRUCTIONS: usize = 64;
/// Maximum number of inputs.
pub const INPUTS: usize = 24;
/// Maximum number of outputs.
pub const OUTPUTS: usize = 8;
/// Maximum number of constants.
pub const CONSTANTS: usize = 32;

/// An instruction of a [`Program`]. Operands are indices of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A unary function, by its code.
    Unary(u32, usize),
    /// A binary function, by its code.
    Binary(u32, usize, usize),
    /// Selects the second operand where the first is true, otherwise the third.
    Select(usize, usize, usize),
    /// A conversion to another dtype.
    Cast(usize),
}

/// A validated program of the contract. Values are numbered: inputs, then constants, then steps.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl Program {
    /// Validates a program with inputs of these dtypes.
    ///
    /// # Safety
    /// The program's lists have the stated lengths.
    pub unsafe fn of(given: &fused::Program, inputs: &[Dtype]) -> Result<Self> {
        let most = ProgramLimits {
            inputs: INPUTS,
            outputs: OUTPUTS,
            tensors: usize::MAX,
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
        };
        for (i, instruction) in parts.instructions.iter().enumerate() {
            let (step, dtype) = program.step(instruction).ok_or_else(|| {
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
    fn step(&self, i: &Instruction) -> Option<(Step, Dtype)> {
        let to = Dtype::of(i.dtype)?;
        let dtype = |value: u16| self.dtypes.get(usize::from(value)).copied();
        let (a, b, c) = (usize::from(i.a), usize::from(i.b), usize::from(i.c));
        let (from, code) = (dtype(i.a)?, u32::from(i.op));
        let gives = |rule: Rule| rule.output(from) == to;
        let step = match i.family {
            family::UNARY if rule::unary_rule(from, code).is_some_and(gives) => {
                Step::Unary(code, a)
            }
            family::BINARY if rule::binary_rule(from, code).is_some_and(gives) => {
                (dtype(i.b)? == from).then_some(Step::Binary(code, a, b))?
            }
            family::SELECT => {
                let fits = from == Dtype::Bool && dtype(i.b)? == to && dtype(i.c)? == to;
                fits.then_some(Step::Select(a, b, c))?
            }
            family::CAST => Step::Cast(a),
            _ => return None,
        };
        Some((step, to))
    }

    /// Index of the first step's value.
    pub fn first(&self) -> usize {
        self.inputs + self.constants
    }

    /// Returns the dtype of output `i`, before the reduction.
    pub fn output(&self, i: usize) -> Dtype {
        self.dtypes[self.outputs[i]]
    }

    /// Dtypes of the tensors before the epilogue: inputs, then outputs.
    pub fn tensors(&self) -> Vec<Dtype> {
        let outputs = self.outputs.iter().map(|o| self.dtypes[*o]);
        self.dtypes[..self.inputs].iter().copied().chain(outputs).collect()
    }

    /// The amount of code for an element: a rough number of arithmetic instructions.
    pub fn weight(&self) -> usize {
        let weight = |w: Weight| match w {
            Weight::Light => 1,
            Weight::Middle => 12,
            Weight::Heavy => 80,
        };
        let step = |step: &Step| match *step {
            Step::Unary(code, a) => weight(rule::unary_weight(self.dtypes[a], code)),
            Step::Binary(code, a, _) => weight(rule::binary_weight(self.dtypes[a], code)),
            Step::Select(..) | Step::Cast(_) => 1,
        };
        self.steps.iter().map(step).sum()
    }

    /// A unique name, which does not include the epilogue.
    pub fn name(&self) -> String {
        let mut name = String::from("fused");
        for (i, dtype) in self.dtypes[..self.first()].iter().enumerate() {
            let kind = if i < self.inputs { "" } else { "=" };
            name.push_str(&format!(" {kind}{}", dtype.tag()));
        }
        for (i, step) in self.steps.iter().enumerate() {
            let to = self.dtypes[self.first() + i].tag();
            name.push_str(&match *step {
                Step::Unary(code, a) => format!(" | {} {a}", rule::unary_name(code)),
                Step::Binary(code, a, b) => format!(" | {} {a} {b}", rule::binary_name(code)),
                Step::Select(a, b, c) => format!(" | select {a} {b} {c}"),
                Step::Cast(a) => format!(" | {to} {a}"),
            });
        }
        name.push_str(" >");
        self.outputs.iter().for_each(|o| name.push_str(&format!(" {o}")));
        name
    }
}
