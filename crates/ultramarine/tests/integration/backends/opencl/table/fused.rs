//! Fused programs give the bits that their ops give one by one.

use super::compare::*;
use super::pair;
use super::side::{Case, Operand, Side, describe, size, words};
use crate::opencl_process;
use std::ptr::null_mut;
use ultramarine_abi::fused::{
    FusedInterface, INTERFACE, Instruction, NO_REDUCTION, Program, family,
};
use ultramarine_abi::schema::{DTYPES, binary, op, reduce, unary};

const SHAPE: [i64; 3] = [5, 6, 7];
const N: usize = 210;

/// A program under way: every value as its ops give it, and the instructions so far.
struct Draft<'a> {
    side: &'a Side,
    values: Vec<Operand>,
    instructions: Vec<Instruction>,
}

impl Draft<'_> {
    /// Adds a step, if the backend has its op.
    fn step(
        &mut self,
        op: u32,
        attributes: Vec<u32>,
        operands: &[u16],
        to: usize,
        step: (u8, u32),
    ) {
        let inputs: Vec<Operand> =
            operands.iter().map(|o| self.values[*o as usize].clone()).collect();
        let case =
            Case { op, attributes, inputs, dtype: to, shape: SHAPE.to_vec(), scalars: vec![] };
        let Ok(bytes) = self.side.run(&case) else { return };
        self.values.push(place(to, &bytes, &SHAPE, 0));
        let at = |i: usize| operands.get(i).copied().unwrap_or(0);
        self.instructions.push(Instruction {
            family: step.0,
            op: step.1 as u8,
            a: at(0),
            b: at(1),
            c: at(2),
            dtype: DTYPES[to].1,
        });
    }

    /// The last value of a dtype before `end`, made by a conversion if there is none.
    fn value(&mut self, dtype: usize, skip: usize) -> u16 {
        let found =
            (0..self.values.len()).rev().filter(|i| self.values[*i].dtype == dtype).nth(skip);
        match found {
            Some(i) => i as u16,
            None => {
                let last = (self.values.len() - 1) as u16;
                self.step(op::COPY, vec![4], &[last], dtype, (family::CAST, 0));
                (self.values.len() - 1) as u16
            }
        }
    }
}

fn interface(side: &Side) -> FusedInterface {
    let ask = side.table.interface.expect("interface");
    // SAFETY: a NUL-terminated id; the answer is the interface's static table.
    unsafe { *(ask(side.table.backend, INTERFACE.as_ptr()) as *const FusedInterface) }
}

/// The same bits; which NaN it is does not count.
fn same(dtype: usize, got: &[u8], want: &[u8]) -> Option<String> {
    agree(dtype, got, want, 0.0, 0.0)
}

#[test]
fn programs_of_every_dtype() {
    opencl_process!();
    let Some(pair) = pair() else { return };
    let side = &pair.opencl;
    let prepare = interface(side).prepare.expect("prepare");
    for dtype in 0..DTYPES.len() {
        let other = [F32, I32, C64, F16, BF16, F64][dtype % 6];
        let inputs: Vec<Operand> = [dtype, other, dtype]
            .iter()
            .enumerate()
            .map(|(i, d)| place(*d, &values(*d, N, 17 + i as u64, true), &SHAPE, (dtype + i) % 4))
            .collect();
        let mut constant = element(dtype, 1.5);
        constant.resize(8, 0);
        let bits = u64::from_le_bytes(constant.try_into().unwrap_or_default());
        // The constant stands after the inputs, as an array of one value.
        let repeated = bits.to_le_bytes()[..size(dtype)].repeat(N);
        let mut known = inputs.clone();
        known.push(place(dtype, &repeated, &SHAPE, 0));
        let mut draft = Draft { side, values: known, instructions: vec![] };
        for i in 0..9 {
            let a = draft.value(dtype, i % 3);
            let code = (7 * i as u32 + 3 * dtype as u32) % unary::NAMES.len() as u32;
            draft.step(op::UNARY, vec![8, code], &[a], dtype, (family::UNARY, code));
            let b = draft.value(dtype, (i + 1) % 3);
            let code = (5 * i as u32 + dtype as u32) % binary::NAMES.len() as u32;
            draft.step(op::BINARY, vec![8, code], &[a, b], dtype, (family::BINARY, code));
        }
        let (a, b) = (draft.value(dtype, 0), draft.value(dtype, 1));
        draft.step(
            op::BINARY,
            vec![8, binary::LESS],
            &[a, b],
            BOOL,
            (family::BINARY, binary::LESS),
        );
        let c = draft.value(BOOL, 0);
        draft.step(op::SELECT, vec![4], &[c, a, b], dtype, (family::SELECT, 0));
        draft.step(op::COPY, vec![4], &[a], other, (family::CAST, 0));
        let Draft { values, instructions, .. } = draft;
        assert!(instructions.len() > 4, "{}", name_of(dtype));

        for closing in [NO_REDUCTION, reduce::MAX, reduce::SUM] {
            // Outputs: the choice (reduced), and a value on the way.
            let outputs = [(values.len() - 2) as u16, (values.len() - 1) as u16];
            let axes = if closing == NO_REDUCTION { 0 } else { 0b101 };
            let mut rooms: Vec<Operand> =
                outputs.iter().map(|o| Operand::room(values[*o as usize].dtype, &SHAPE)).collect();
            let mut wanted = values[outputs[0] as usize].bytes.clone();
            if closing != NO_REDUCTION {
                let shape = [1, SHAPE[1], 1];
                let case = Case {
                    op: op::REDUCE,
                    attributes: vec![16, closing, axes as u32, 0],
                    inputs: vec![values[outputs[0] as usize].clone()],
                    dtype,
                    shape: shape.to_vec(),
                    scalars: vec![],
                };
                let Ok(bytes) = side.run(&case) else { continue };
                wanted = bytes;
                rooms[0] = Operand::room(dtype, &shape);
            }
            let constants = [DTYPES[dtype].1];
            let program = Program {
                size: size_of::<Program>() as u32,
                reduce: closing,
                axes,
                instructions: instructions.as_ptr(),
                constants: constants.as_ptr(),
                outputs: outputs.as_ptr(),
                n_instructions: instructions.len() as u32,
                n_constants: 1,
                n_outputs: 2,
                n_inputs: 3,
            };
            let (mut plan, mut error) = (null_mut(), null_mut());
            let (ins, outs) = (describe(&inputs), describe(&rooms));
            // SAFETY: the program's arrays have the lengths that it says.
            let code = unsafe {
                prepare(side.device, &program, ins.as_ptr(), outs.as_ptr(), &mut plan, &mut error)
            };
            assert_eq!(code, 0, "{}: {}", name_of(dtype), words(error));
            let got = side.submit(plan, &inputs, &rooms, &[bits]).expect("it runs");
            let what = format!("{} closed by {closing}", name_of(dtype));
            assert_eq!(same(dtype, &got[0], &wanted), None, "{what}");
            let second = &values[outputs[1] as usize];
            assert_eq!(same(second.dtype, &got[1], &second.bytes), None, "{what}, second");
        }
    }
}
