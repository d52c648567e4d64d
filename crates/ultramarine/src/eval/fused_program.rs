//! The fused program of a task. Its operands are numbered, and its constants are extracted.

use super::grouping::{Epilogue, Member, Task, is_constant};
use crate::backend::{Exec, Operand, PlanKey};
use crate::error::Result;
use crate::node::{Node, Value};
use crate::ops::{Anchor, shape::view::View};
use crate::{dtype::Dtype, scalar::Scalar};
use smallvec::SmallVec;
use std::sync::Arc;
use ultramarine_abi::dlpack::DLDataType;
use ultramarine_abi::fused::{self, Instruction, NO_REDUCTION, Program};

/// A program with everything that it needs to run. The vectors hold the entries of a small program
/// inline. More inline entries would cost a small program more to move than a large program saves
/// in allocations.
pub(super) struct FusedProgram {
    /// Distinct operands from outside the task, each with the number of edges from members to it.
    pub inputs: SmallVec<[(Arc<Node>, usize); 4]>,
    pub constants: SmallVec<[Scalar; 4]>,
    /// Constants whose memory the last instruction may overwrite, each with the number of edges
    /// from members to it.
    spare: SmallVec<[(Arc<Node>, usize); MOST_SPARE]>,
    instructions: SmallVec<[Instruction; 8]>,
    constant_types: SmallVec<[DLDataType; 4]>,
    outputs: SmallVec<[u16; 4]>,
    reduce: u32,
    axes: u64,
    /// True if there is an unused operand that gives a reduction of constants its shape.
    dummy: bool,
}

/// Number of constants whose memory is considered for reuse.
const MOST_SPARE: usize = 2;

fn dtype_word(d: DLDataType) -> u64 {
    (d.code as u64) << 8 | d.bits as u64
}

impl FusedProgram {
    /// Makes the program of a task by numbering its operands. Outputs are in the order of
    /// [`Task::outputs`]. `None` if the task does not run as a program.
    pub fn new(task: &Task) -> Option<FusedProgram> {
        let reduction = match task.epilogue {
            Some(Epilogue::Reduction(reduction)) => Some(reduction),
            _ => None,
        };
        let mut program = FusedProgram {
            inputs: SmallVec::new(),
            constants: SmallVec::new(),
            spare: SmallVec::new(),
            instructions: SmallVec::with_capacity(task.bodies()),
            constant_types: SmallVec::new(),
            outputs: SmallVec::new(),
            reduce: reduction.map_or(NO_REDUCTION, |c| c.code),
            axes: reduction.map_or(0, |c| c.axes),
            dummy: false,
        };
        for (i, member) in task.reading().iter().enumerate() {
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
        let FusedProgram { constants, constant_types, .. } = &mut program;
        constants.iter().for_each(|c| constant_types.push(c.dtype().to_dl()));
        Some(program)
    }

    fn note(&mut self, task: &Task, member: usize, input: &Arc<Node>) {
        if task.position(member, input).is_some() {
            return;
        }
        // A reduction takes its iteration shape from a tensor, so a constant that it reduces
        // directly counts as a tensor.
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

    /// Notes a constant whose memory has the size of the last instruction's result.
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

    /// Iterates over the constants whose memory the program does not read, each with the number of
    /// edges from members to it.
    pub fn spare(&self) -> impl Iterator<Item = (&Arc<Node>, usize)> {
        self.spare.iter().map(|(node, edges)| (node, *edges))
    }

    /// Returns the index among the constants of an operand that a member reads, or `None` if it is
    /// not a constant.
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
        // The operand was noted as a constant, and counts as one even if it was exported since.
        let value = input.op.constant()?;
        let i = self.constants.iter().position(|c| *c == value)?;
        u16::try_from(self.inputs.len() + i).ok()
    }

    fn result(&self, member: usize) -> Option<u16> {
        u16::try_from(self.inputs.len() + self.constants.len() + member).ok()
    }

    /// Reserves room for a dummy input before the constants. There are no other inputs.
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

    /// Returns the program in the form of the ABI. It borrows from `self`.
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

    /// Returns the words of the program, which form its key in the plan cache.
    pub fn key(&self) -> PlanKey {
        let mut key = PlanKey::new();
        // No op id is this large, so the keys of programs and ops are distinct.
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
        self.constants.iter().for_each(|c| key.push(c.dtype() as u64));
        self.outputs.iter().for_each(|o| key.push(*o as u64));
        key
    }
}

/// The anchor of a task's program, and the anchor's operands.
pub(super) struct Anchored {
    anchor: Anchor,
    /// All operands except the first.
    operands: SmallVec<[(Value, Dtype); 2]>,
}

impl Anchored {
    /// Makes the anchor of a task, if it has one. `space` is the iteration shape.
    pub fn new(exec: &Exec, task: &Task, space: &[usize]) -> Result<Option<Anchored>> {
        let work = task.members.last().map(|m| m.entry.work());
        let Some((work, anchor)) = work.and_then(|w| Some((w, w.op.rules()?.anchor()?))) else {
            return Ok(None);
        };
        let operands = work.inputs().into_iter().skip(1).map(|node| {
            let value = super::run::operand(exec, &node)?;
            Ok(match node.shape.len() < space.len() {
                true => (View::broadcast_value(&value, &node.shape, space), node.dtype),
                false => (value, node.dtype),
            })
        });
        let operands = operands.collect::<Result<_>>()?;
        Ok(Some(Anchored { anchor, operands }))
    }

    /// Iterates over the anchor's operands, in the iteration shape.
    pub fn operands<'a>(&'a self, space: &'a [usize]) -> impl Iterator<Item = Operand<'a>> {
        let operand = |(value, dtype): &'a (Value, Dtype)| (value, *dtype);
        self.operands.iter().map(operand).map(|(value, dtype)| Operand {
            value,
            shape: space,
            dtype,
        })
    }

    /// Returns the anchor's scalars.
    pub fn scalars(&self) -> &[Scalar] {
        &self.anchor.scalars
    }

    /// Adds the anchor to the words of the program's key.
    pub fn extend_key(&self, key: &mut PlanKey) {
        key.push((self.anchor.op as u64) << 32 | self.operands.len() as u64);
        key.extend_from_slice(&self.anchor.attributes);
    }

    /// Returns the anchor in the form of the ABI. It borrows from `self`.
    pub fn to_abi(&self) -> fused::Anchor {
        fused::Anchor {
            size: size_of::<fused::Anchor>() as u32,
            op: self.anchor.op,
            revision: 1,
            position: fused::position::LAST,
            attributes: self.anchor.attributes.as_ptr().cast(),
            n_inputs: self.operands.len() as u32,
            n_scalars: self.anchor.scalars.len() as u32,
        }
    }
}

impl Task {
    /// Removes the anchor from the program. The program then writes its last result to memory.
    pub fn detach_anchor(&mut self) -> Option<Member> {
        let anchor = self.members.pop();
        self.epilogue = None;
        if let Some(last) = self.members.last_mut() {
            last.materialised = true;
        }
        let constants =
            |m: &Member| m.entry.work().with_inputs(|ins| ins.iter().any(|x| is_constant(x)));
        self.program = self.members.len() > 1 || self.members.iter().any(constants);
        anchor
    }

    /// Returns the members whose operands are the program's operands: all members except an anchor.
    pub fn reading(&self) -> &[Member] {
        match self.epilogue {
            Some(Epilogue::Anchor) => &self.members[..self.bodies()],
            _ => &self.members,
        }
    }

    /// Returns the number of members that are instructions: all members except an epilogue.
    pub fn bodies(&self) -> usize {
        self.members.len() - self.epilogue.is_some() as usize
    }

    /// Iterates over the instructions whose results are written. Without an epilogue, the root
    /// comes last, because only the last instruction may overwrite an operand's memory.
    pub fn written(&self) -> impl Iterator<Item = usize> {
        let bodies = self.bodies();
        (0..bodies).filter(|i| self.members[*i].materialised)
    }

    /// The position of the node among the members before `member`.
    fn position(&self, member: usize, node: &Arc<Node>) -> Option<usize> {
        // No instruction computes a constant. Return early, because a long program may have a
        // constant for each instruction.
        if node.op.is_constant() {
            return None;
        }
        // Search backwards, because the nearest member is the likeliest.
        (0..member.min(self.bodies()))
            .rev()
            .find(|i| Arc::ptr_eq(&self.members[*i].entry.node, node))
    }
}
