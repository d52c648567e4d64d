//! The fused program of a task: operands numbered, constants pulled out.

use super::grouping::Task;
use crate::{backend::PlanKey, dtype::Dtype, node::Node, scalar::Scalar};
use smallvec::SmallVec;
use std::sync::Arc;
use ultramarine_abi::dlpack::DLDataType;
use ultramarine_abi::fused::{Instruction, NO_REDUCTION, Program};

/// A program with what it needs to run. The vectors hold a small program's inline; larger ones would cost a small
/// program more to move than a large one to allocate.
pub(super) struct FusedProgram {
    /// Distinct operands from outside, and how many members' edges lead to each.
    pub inputs: SmallVec<[(Arc<Node>, usize); 4]>,
    pub constants: SmallVec<[Scalar; 4]>,
    /// Constants among them whose memory the last instruction may write, and how many members' edges lead to each.
    spare: SmallVec<[(Arc<Node>, usize); MOST_SPARE]>,
    instructions: SmallVec<[Instruction; 8]>,
    constant_types: SmallVec<[DLDataType; 4]>,
    outputs: SmallVec<[u16; 4]>,
    reduce: u32,
    axes: u64,
    /// An operand without use that lends a reduction of constants its shape.
    dummy: bool,
}

/// Constants that are looked at for their memory.
const MOST_SPARE: usize = 2;

fn dtype_word(d: DLDataType) -> u64 {
    (d.code as u64) << 8 | d.bits as u64
}

impl FusedProgram {
    /// Numbers a task's operands. Outputs are in the order of [`Task::outputs`].
    pub fn new(task: &Task) -> Option<FusedProgram> {
        let mut program = FusedProgram {
            inputs: SmallVec::new(),
            constants: SmallVec::new(),
            spare: SmallVec::new(),
            instructions: SmallVec::with_capacity(task.bodies()),
            constant_types: SmallVec::new(),
            outputs: SmallVec::new(),
            reduce: task.epilogue.map_or(NO_REDUCTION, |c| c.code),
            axes: task.epilogue.map_or(0, |c| c.axes),
            dummy: false,
        };
        for (i, member) in task.members.iter().enumerate() {
            member.entry.work().with_inputs(|inputs| {
                for input in inputs {
                    program.note(task, i, input);
                }
            });
        }
        let bodies = task.bodies();
        for (i, member) in task.members[..bodies].iter().enumerate() {
            let kind = member.entry.work().op.elementwise()?;
            let mut operands = [0; 3];
            member.entry.work().with_inputs(|inputs| {
                for (number, input) in operands.iter_mut().zip(inputs) {
                    *number = program.operand(task, i, input)?;
                }
                Some(())
            })?;
            let [a, b, c] = operands;
            program.instructions.push(Instruction {
                family: kind.family,
                op: kind.code,
                a,
                b,
                c,
                dtype: member.entry.node.dtype.to_dl(),
            });
        }
        if task.epilogue.is_some() {
            let source = task.reduced()?;
            program.outputs.push(program.operand(task, bodies, &source)?);
        }
        for i in task.written() {
            program.outputs.push(program.result(i)?);
        }
        program.constant_types = program.constants.iter().map(|c| c.dtype().to_dl()).collect();
        Some(program)
    }

    fn note(&mut self, task: &Task, member: usize, input: &Arc<Node>) {
        if task.position(member, input).is_some() {
            return;
        }
        // A reduction needs a tensor to take its iteration shape from, so a constant
        // that it reduces directly counts as one.
        if let Some(value) = input.constant()
            && !(task.epilogue.is_some() && task.members.len() == 1)
        {
            if !self.constants.contains(&value) {
                self.constants.push(value);
            }
            self.note_spare(task, input);
            return;
        }
        match self.inputs.iter_mut().find(|(n, _)| Arc::ptr_eq(n, input)) {
            Some((_, edges)) => *edges += 1,
            None => self.inputs.push((input.clone(), 1)),
        }
    }

    /// Notes a constant that has memory of the size of the last instruction's result.
    fn note_spare(&mut self, task: &Task, input: &Arc<Node>) {
        let Some(value) = input.value() else { return };
        if let Some((_, edges)) = self.spare.iter_mut().find(|(n, _)| Arc::ptr_eq(n, input)) {
            *edges += 1;
            return;
        }
        let last = task.members[..task.bodies()].last();
        let fits = last.is_some_and(|m| m.entry.node.bytes() == value.buffer.bytes());
        if fits && self.spare.len() < MOST_SPARE {
            self.spare.push((input.clone(), 1));
        }
    }

    /// Constants that have memory which the program does not read, and how many members' edges lead to each.
    pub fn spare(&self) -> impl Iterator<Item = (&Arc<Node>, usize)> {
        self.spare.iter().map(|(node, edges)| (node, *edges))
    }

    /// The place among the constants of what a member reads, if it is one.
    pub fn constant(&self, task: &Task, member: usize, input: &Arc<Node>) -> Option<usize> {
        let carried = task.position(member, input).is_none()
            && !self.inputs.iter().any(|(n, _)| Arc::ptr_eq(n, input));
        let value = input.op.constant().filter(|_| carried)?;
        self.constants.iter().position(|c| *c == value)
    }

    fn operand(&self, task: &Task, member: usize, input: &Arc<Node>) -> Option<u16> {
        if let Some(i) = task.position(member, input) {
            return self.result(i);
        }
        if let Some(i) = self.inputs.iter().position(|(n, _)| Arc::ptr_eq(n, input)) {
            return u16::try_from(i).ok();
        }
        // Noted as a constant, even if it was exported since.
        let value = input.op.constant()?;
        let i = self.constants.iter().position(|c| *c == value)?;
        u16::try_from(self.inputs.len() + i).ok()
    }

    fn result(&self, member: usize) -> Option<u16> {
        u16::try_from(self.inputs.len() + self.constants.len() + member).ok()
    }

    /// Makes room for a dummy input before the constants (there are no others).
    pub fn shift_constants(&mut self) {
        self.dummy = true;
        for i in &mut self.instructions {
            (i.a, i.b, i.c) = (i.a + 1, i.b + 1, i.c + 1);
        }
        self.outputs.iter_mut().for_each(|o| *o += 1);
    }

    fn n_inputs(&self) -> usize {
        self.inputs.len() + self.dummy as usize
    }

    /// Dtype of each input.
    pub fn input_dtypes(&self) -> impl Iterator<Item = Dtype> {
        self.inputs.iter().map(|(n, _)| n.dtype)
    }

    /// The contract's program; it borrows from `self`.
    pub fn to_abi(&self) -> Program {
        Program {
            size: size_of::<Program>() as u32,
            reduce: self.reduce,
            axes: self.axes,
            instructions: self.instructions.as_ptr(),
            constants: self.constant_types.as_ptr(),
            outputs: self.outputs.as_ptr(),
            n_instructions: self.instructions.len() as u32,
            n_constants: self.constants.len() as u32,
            n_outputs: self.outputs.len() as u32,
            n_inputs: self.n_inputs() as u32,
        }
    }

    /// The program in words, for the plan cache.
    pub fn key(&self) -> PlanKey {
        let mut key = PlanKey::new();
        // No op id is this large, so programs and ops do not meet.
        key.push(
            u64::MAX << 32 | (self.instructions.len() as u64) << 8 | self.outputs.len() as u64,
        );
        key.push(
            (self.reduce as u64) << 32
                | (self.constants.len() as u64) << 16
                | self.n_inputs() as u64,
        );
        key.push(self.axes);
        for i in &self.instructions {
            key.push((i.family as u64) << 56 | (i.op as u64) << 48 | dtype_word(i.dtype));
            key.push((i.a as u64) << 32 | (i.b as u64) << 16 | i.c as u64);
        }
        key.extend(self.constants.iter().map(|c| c.dtype() as u64));
        key.extend(self.outputs.iter().map(|o| *o as u64));
        key
    }
}

impl Task {
    /// Members that are instructions: all but an epilogue reduction.
    pub fn bodies(&self) -> usize {
        self.members.len() - self.epilogue.is_some() as usize
    }

    /// Instructions whose results are written. Without an epilogue reduction the
    /// root, the only one that may take over an operand's memory, comes last.
    pub fn written(&self) -> impl Iterator<Item = usize> {
        let bodies = self.bodies();
        (0..bodies).filter(|i| self.members[*i].materialised)
    }

    /// Which member before `member` the node is.
    fn position(&self, member: usize, node: &Arc<Node>) -> Option<usize> {
        // No instruction computes a constant, and a long program has one for each.
        if node.op.is_constant() {
            return None;
        }
        // The nearest are the likeliest.
        (0..member.min(self.bodies()))
            .rev()
            .find(|i| Arc::ptr_eq(&self.members[*i].entry.node, node))
    }
}
