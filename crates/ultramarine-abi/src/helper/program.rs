//! Decoded fused programs.

use super::{Dtype, Failure, Result};
use crate::fused::{Instruction, NO_REDUCTION, Program};

/// A decoded fused program: the parts from which a backend makes its own form.
#[derive(Debug)]
pub struct ProgramParts<'a> {
    /// Dtypes of the inputs, then of the constants. The dtypes of the instructions' results are to
    /// be appended.
    pub dtypes: Vec<Dtype>,
    /// Instructions. Their operands are not checked.
    pub instructions: &'a [Instruction],
    /// The values that are written. They are not checked either.
    pub outputs: Vec<usize>,
    /// The epilogue of output 0: its code, and the mask of its axes.
    pub reduce: Option<(u32, u64)>,
}

/// The limits for programs that a backend takes.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLimits {
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// Inputs and outputs together.
    pub tensors: usize,
    /// Constants.
    pub constants: usize,
    /// Instructions.
    pub instructions: usize,
}

/// Returns a list of the contract as a slice.
///
/// # Safety
/// `first` is NULL, or points at `n` elements that are valid for `'a`.
unsafe fn list<'a, T>(first: *const T, n: u32) -> Result<&'a [T]> {
    match (n, first.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(Failure::invalid("a list of the program is NULL")),
        // SAFETY: by this function's contract.
        _ => Ok(unsafe { core::slice::from_raw_parts(first, n as usize) }),
    }
}

impl<'a> ProgramParts<'a> {
    /// Decodes a program whose inputs have these dtypes.
    ///
    /// # Safety
    /// The program's lists have the lengths that the program gives, and are valid for `'a`.
    ///
    /// # Errors
    /// [`Failure::unsupported`] for a program that exceeds `most`, and for a dtype that the
    /// contract does not have.
    pub unsafe fn of(given: &Program, inputs: &[Dtype], most: ProgramLimits) -> Result<Self> {
        let tensors = u64::from(given.n_inputs) + u64::from(given.n_outputs);
        for (what, n, most) in [
            ("inputs", given.n_inputs.into(), most.inputs),
            ("outputs", given.n_outputs.into(), most.outputs),
            ("tensors", tensors, most.tensors),
            ("constants", given.n_constants.into(), most.constants),
            ("instructions", given.n_instructions.into(), most.instructions),
        ] {
            if n > most as u64 {
                return Err(Self::refused(format!("of {n} {what}, at most {most} are taken")));
            }
        }
        if given.n_inputs == 0 || given.n_outputs == 0 || given.n_inputs as usize != inputs.len() {
            return Err(Self::refused("without inputs or outputs".to_owned()));
        }
        // SAFETY: by this function's contract.
        let (constants, instructions, outputs) = unsafe {
            (
                list(given.constants, given.n_constants)?,
                list(given.instructions, given.n_instructions)?,
                list(given.outputs, given.n_outputs)?,
            )
        };
        let mut dtypes = inputs.to_vec();
        for constant in constants {
            let dtype = Dtype::of(*constant);
            dtypes.push(
                dtype.ok_or_else(|| Self::refused(format!("with a constant of {constant:?}")))?,
            );
        }
        let outputs = outputs.iter().map(|o| usize::from(*o)).collect();
        let reduce = (given.reduce != NO_REDUCTION).then_some((given.reduce, given.axes));
        Ok(Self { dtypes, instructions, outputs, reduce })
    }

    /// Makes the refusal of a program.
    pub fn refused(what: String) -> Failure {
        Failure::unsupported(format!("a program {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{schema, status};

    #[test]
    fn programs_are_decoded_or_refused() {
        let float32 = schema::DTYPES[Dtype::Float32 as usize].1;
        let (constants, outputs) = ([float32], [2_u16]);
        let most =
            ProgramLimits { inputs: 2, outputs: 1, tensors: 2, constants: 1, instructions: 0 };
        let given = Program {
            size: size_of::<Program>() as u32,
            reduce: NO_REDUCTION,
            axes: 0,
            instructions: core::ptr::null(),
            constants: constants.as_ptr(),
            outputs: outputs.as_ptr(),
            n_instructions: 0,
            n_constants: 1,
            n_outputs: 1,
            n_inputs: 1,
        };
        // SAFETY: the lists have these lengths, except those of the last program, which are not
        // read.
        let parts = |given: &Program| unsafe {
            ProgramParts::of(given, &[Dtype::Int8], most).map_err(|failure| failure.code)
        };
        let made = parts(&given).unwrap();
        assert_eq!(made.dtypes, [Dtype::Int8, Dtype::Float32]);
        assert_eq!((made.outputs, made.reduce), (vec![2], None));
        let reduced = Program { reduce: 3, axes: 5, ..given };
        assert_eq!(parts(&reduced).unwrap().reduce, Some((3, 5)));
        let null = Program { constants: core::ptr::null(), ..given };
        assert_eq!(parts(&null).unwrap_err(), status::INVALID);
        for many in [Program { n_constants: 2, ..given }, Program { n_inputs: 2, ..given }] {
            assert_eq!(parts(&many).unwrap_err(), status::UNSUPPORTED);
        }
    }
}
