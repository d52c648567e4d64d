//! Programs, decoded and checked once: steps with their tile functions, and the registers (slots of
//! the scratch memory) that hold tiles between steps.

use super::layout::MAX_TENSORS;
use super::pairs::{paired, simple_of};
use super::slots::{CONSTANT_PLACE, allocate};
use super::source::{Instruction, Source};
use crate::elementwise::pair::{self, PairFn};
use crate::elementwise::{self, TileFn, TileOp};
use crate::kernel::{Refusal, Signature};
use crate::reduce::{self, Fold};
use crate::{dtype::DType, level::Level};
use ultramarine_abi::schema;

/// Most values (inputs, constants, results) of a program.
pub const MAX_VALUES: usize = 160;

/// One call per tile.
#[derive(Clone, Copy)]
pub struct Step {
    /// The function.
    pub run: Run,
    /// Operand values; unused operands repeat the first.
    pub operands: [u16; 4],
    /// Value that it makes.
    pub result: u16,
}

/// The function of a step.
#[derive(Clone, Copy)]
pub enum Run {
    /// A function of whole tiles.
    Tile(TileFn),
    /// A few float32 operations in one pass, with the operands' steps.
    Pair(PairFn, [usize; 4]),
}

impl Step {
    /// Computes `n` elements of the result; `stream` lets a pair bypass the caches.
    ///
    /// # Safety
    /// The addresses of the operands and of the result obey the contract of the function.
    #[inline(always)]
    pub unsafe fn call(&self, result: *mut u8, operands: [*mut u8; 4], n: usize, stream: bool) {
        let [a, b, c, _] = operands;
        // SAFETY: by this function's contract.
        unsafe {
            match self.run {
                Run::Tile(f) => f(result, a, b, c, n),
                Run::Pair(f, steps) => {
                    f(result as *mut f32, operands.map(|p| p as *const f32), steps, n, stream)
                }
            }
        }
    }
}

/// An output of the iteration shape.
#[derive(Clone, Copy)]
pub struct Output {
    /// The value.
    pub value: u16,
    /// Its tensor: `n_inputs` plus its place among the outputs.
    pub tensor: u16,
    /// Bytes of an element.
    pub size: u8,
    /// Set if its step may write directly to the output.
    pub direct: bool,
    /// Set if a later step reads an input whose memory may be this output's.
    pub late_reads: bool,
    /// Set if its step can bypass the caches, and nothing reads the output again.
    pub streams: bool,
}

/// The reduction at the end of a program.
pub struct Epilogue {
    /// The value that is reduced.
    pub value: u16,
    /// Reduced axes.
    pub axes: u64,
    /// The result does not depend on the order.
    pub any_order: bool,
    /// Its functions.
    pub fold: Fold,
}

/// A checked program.
pub struct Program {
    /// Level of the functions.
    pub level: Level,
    /// Number of inputs.
    pub n_inputs: usize,
    /// Dtypes of the constants.
    pub constants: Vec<DType>,
    /// Bytes of an element of every value.
    pub sizes: Vec<u8>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Position of every value's slot: the bytes before it, per element of a tile. For constants
    /// that only pairs read, it is the index of a block after all slots.
    slots: Vec<u32>,
    /// Blocks of constants after the slots.
    blocks: usize,
    /// Bytes of all slots, per element of a tile.
    pub width: usize,
    /// Outputs that are not reduced.
    pub outputs: Vec<Output>,
    /// The reduction at its end.
    pub epilogue: Option<Epilogue>,
    /// Set if all tensors are promised to be contiguous.
    pub contiguous: bool,
}

/// Operands that an op reads.
fn arity(op: TileOp) -> usize {
    match op {
        TileOp::Unary(_) | TileOp::Cast(_) => 1,
        TileOp::Binary(_) => 2,
        TileOp::Select => 3,
    }
}

impl Program {
    /// Checks `source` against the tensors and looks its functions up.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] for ops and dtypes without a tile function and
    /// programs that are too big; [`Refusal::Invalid`] for malformed ones.
    pub fn new(
        mut source: Source,
        signature: &Signature<'_>,
        level: Level,
    ) -> Result<Self, Refusal> {
        let n_inputs = signature.inputs.len();
        ensure!(
            source.outputs.len() == signature.outputs.len() && !source.outputs.is_empty(),
            "a program's outputs differ from the tensors"
        );
        let mut values: Vec<DType> = signature.inputs.iter().map(|d| d.dtype).collect();
        values.extend(&source.constants);
        let first_result = values.len();
        let mut steps = Vec::new();
        let mut simple = Vec::new();
        for i in source.instructions.iter() {
            simple.push(simple_of(&values, i));
            Self::step(&mut values, &mut steps, i, level)?;
        }
        let there = |v: &u16| usize::from(*v) < values.len();
        ensure!(source.outputs.iter().all(there), "an output names no value");
        let fold = Self::epilogue(&mut source, &mut values, &mut steps, signature, level)?;
        for (i, (value, desc)) in source.outputs.iter().zip(signature.outputs).enumerate() {
            let fits = i == 0 && fold.is_some() || values[usize::from(*value)] == desc.dtype;
            ensure!(fits, "output {i} has another dtype than its value");
        }
        if values.len() > MAX_VALUES || n_inputs + source.outputs.len() > MAX_TENSORS {
            return Err(Refusal::Unsupported);
        }
        let sizes: Vec<u8> = values.iter().map(|d| d.size() as u8).collect();
        let is_constant = |v: u16| (n_inputs..first_result).contains(&usize::from(v));
        let steps = paired(steps, &simple, &source.outputs, is_constant, level);
        let (slots, width, blocks) =
            allocate(&sizes, n_inputs, first_result, &steps, &source.outputs);
        let mut outputs: Vec<Output> = Vec::new();
        for (i, value) in source.outputs.iter().enumerate() {
            if i == 0 && fold.is_some() {
                continue;
            }
            let made = steps.iter().position(|s| s.result == *value);
            outputs.push(Output {
                value: *value,
                tensor: (n_inputs + i) as u16,
                size: sizes[usize::from(*value)],
                direct: made.is_some() && outputs.iter().all(|o| o.value != *value),
                streams: made.is_some_and(|at| {
                    // Values that are read again should stay in the cache.
                    let again = steps[at + 1..].iter().any(|s| s.operands.contains(value))
                        || (fold.is_some() && source.outputs[0] == *value);
                    matches!(steps[at].run, Run::Pair(..)) && !again
                }),
                late_reads: made.is_some_and(|at| {
                    let mut later = steps[at + 1..].iter().flat_map(|s| s.operands);
                    later.any(|o| usize::from(o) < n_inputs)
                        || source.outputs.iter().any(|o| usize::from(*o) < n_inputs)
                }),
            });
        }
        let epilogue = fold.map(|(fold, axes)| {
            let value = source.outputs[0];
            let dtype = values[usize::from(value)];
            let any_order = dtype.is_int() || dtype == DType::Bool;
            Epilogue { value, axes, any_order, fold }
        });
        let contiguous = signature.inputs.iter().chain(signature.outputs).all(|d| d.contiguous);
        Ok(Program {
            level,
            n_inputs,
            constants: source.constants,
            sizes,
            steps,
            slots,
            blocks,
            width,
            outputs,
            epilogue,
            contiguous,
        })
    }

    /// Bytes of scratch for tiles of at most `room` elements.
    pub fn scratch(&self, room: usize) -> usize {
        self.width * room + self.blocks * pair::CONSTANT
    }

    /// The start of a value's slot in the scratch memory.
    #[inline]
    pub fn place(&self, scratch: *mut u8, room: usize, value: usize) -> *mut u8 {
        let slot = self.slots[value];
        scratch.wrapping_add(if slot & CONSTANT_PLACE == 0 {
            slot as usize * room
        } else {
            self.width * room + (slot ^ CONSTANT_PLACE) as usize * pair::CONSTANT
        })
    }

    /// Elements that a constant's slot is filled with, for tiles of `n`.
    pub fn constant_len(&self, value: usize, n: usize) -> usize {
        let whole = self.slots[value] & CONSTANT_PLACE == 0;
        if whole { n } else { pair::CONSTANT / usize::from(self.sizes[value]) }
    }

    /// Checks one instruction and appends its step and value.
    fn step(
        values: &mut Vec<DType>,
        steps: &mut Vec<Step>,
        i: &Instruction,
        level: Level,
    ) -> Result<(), Refusal> {
        let n = arity(i.op);
        let mut operands = [i.operands[0], i.operands[1], i.operands[2], i.operands[0]];
        let there = operands[..n].iter().all(|v| usize::from(*v) < values.len());
        ensure!(there, "an instruction reads a value that is not there yet");
        // Unused operands repeat a used one: this gives a valid pointer and does not extend a live
        // range.
        for k in n..4 {
            operands[k] = operands[0];
        }
        let dtypes = operands.map(|v| values[usize::from(v)]);
        let (main, agree) = match i.op {
            TileOp::Select => (dtypes[1], dtypes[0] == DType::Bool && dtypes[1] == dtypes[2]),
            TileOp::Binary(_) => (dtypes[0], dtypes[0] == dtypes[1]),
            _ => (dtypes[0], true),
        };
        ensure!(agree, "an instruction's operands have different dtypes");
        let run = elementwise::lookup(level, i.op, main).ok_or(Refusal::Unsupported)?;
        let result = elementwise::result_dtype(i.op, main);
        ensure!(result == i.dtype, "an instruction's dtype is not its result's");
        steps.push(Step { run: Run::Tile(run), operands, result: values.len() as u16 });
        values.push(i.dtype);
        Ok(())
    }

    /// The epilogue's functions; a conversion to the dtype in which it
    /// accumulates becomes a step.
    fn epilogue(
        source: &mut Source,
        values: &mut Vec<DType>,
        steps: &mut Vec<Step>,
        signature: &Signature<'_>,
        level: Level,
    ) -> Result<Option<(Fold, u64)>, Refusal> {
        let Some((code, axes)) = source.reduce else { return Ok(None) };
        let ndim = signature.inputs.iter().chain(signature.outputs).map(|d| d.ndim).max();
        ensure!(axes >> ndim.unwrap_or(0).min(63) == 0, "a reduced axis is not there");
        let from = values[usize::from(source.outputs[0])];
        let boolean = code == schema::reduce::ALL || code == schema::reduce::ANY;
        let to = signature.outputs[0].dtype;
        let expected = if boolean { DType::Bool } else { from };
        ensure!(to == expected, "a reduction's output has another dtype");
        let within = reduce::accumulates_in(code, from);
        if within != from {
            let cast = Instruction {
                op: TileOp::Cast(within),
                operands: [source.outputs[0], 0, 0],
                dtype: within,
            };
            Self::step(values, steps, &cast, level)?;
            source.outputs[0] = (values.len() - 1) as u16;
        }
        let fold = reduce::fold(code, within, to, level).ok_or(Refusal::Unsupported)?;
        Ok(Some((fold, axes)))
    }
}
