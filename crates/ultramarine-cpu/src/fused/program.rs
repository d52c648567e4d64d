//! Programs, decoded and checked once: steps with their tile functions, and the
//! registers (slots of the scratch memory) that hold tiles between steps.

use super::{
    layout::MAX_TENSORS,
    reduce::{self, Fold},
};
use crate::{
    dtype::DType,
    kernel::{Refusal, Signature},
    level::Level,
    tile::{
        self, TileFn, TileOp,
        pair::{self, Arith, PairFn},
    },
};
use ultramarine_abi::{
    fused,
    schema::{self, binary},
};

/// Most values (inputs, constants, results) of a program.
pub const MAX_VALUES: usize = 160;

/// An instruction in this crate's terms.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// What it does.
    pub op: TileOp,
    /// Operands: values counted through inputs, constants and results.
    pub operands: [u16; 3],
    /// Its result's dtype.
    pub dtype: DType,
}

/// A program as it comes in.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// In order.
    pub instructions: Vec<Instruction>,
    /// Dtypes of the constants.
    pub constants: Vec<DType>,
    /// The value of each output.
    pub outputs: Vec<u16>,
    /// Code and axes of the closing reduction.
    pub reduce: Option<(u32, u64)>,
}

/// One call per tile.
#[derive(Clone, Copy)]
pub struct Step {
    /// The function.
    pub run: Run,
    /// Operand values; unused ones repeat the first.
    pub operands: [u16; 4],
    /// Value that it makes.
    pub result: u16,
}

/// What a step calls.
#[derive(Clone, Copy)]
pub enum Run {
    /// A function of whole tiles.
    Tile(TileFn),
    /// A few float32 operations in one pass, with the operands' steps.
    Pair(PairFn, [usize; 4]),
}

impl Step {
    /// Makes `n` elements of the result; `stream` lets a pair write past the caches.
    ///
    /// # Safety
    /// The places of the operands and of the result obey the contract of the function.
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

/// A float32 sum, difference or product, until it is known what it is paired with.
#[derive(Clone, Copy)]
struct Simple {
    op: Arith,
    operands: [u16; 2],
}

/// A place of a constant in front of which nothing stands: see [`Program::place`].
const CONSTANT_PLACE: u32 = 1 << 31;

/// An output of the iteration shape.
#[derive(Clone, Copy)]
pub struct Output {
    /// The value.
    pub value: u16,
    /// Its tensor: `n_inputs` plus its place among the outputs.
    pub tensor: u16,
    /// Bytes of an element.
    pub size: u8,
    /// The step that makes it may write straight into the output.
    pub direct: bool,
    /// A step after that one reads an input, which may be this output's memory.
    pub late_reads: bool,
    /// The step that makes it can write past the caches, and nothing reads it again.
    pub streams: bool,
}

/// The closing reduction.
pub struct Closing {
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
    /// Place of every value's slot: bytes before it, per element of a tile; or, of
    /// constants that only pairs read, which of the blocks after all slots.
    slots: Vec<u32>,
    /// Blocks of constants after the slots.
    blocks: usize,
    /// Bytes of all slots, per element of a tile.
    pub width: usize,
    /// Outputs that are not reduced.
    pub outputs: Vec<Output>,
    /// The closing reduction.
    pub closing: Option<Closing>,
    /// Every tensor is promised to be contiguous.
    pub contiguous: bool,
}

fn invalid<T>(text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Invalid(text.into()))
}

/// Operands that an op reads.
fn arity(op: TileOp) -> usize {
    match op {
        TileOp::Unary(_) | TileOp::Cast(_) => 1,
        TileOp::Binary(_) => 2,
        TileOp::Select => 3,
    }
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
}

/// Hands out slots, taking back those of dead values.
#[derive(Default)]
struct Slots {
    free: Vec<(u32, u8)>,
    width: u32,
}

impl Slots {
    fn take(&mut self, size: u8) -> u32 {
        if let Some(i) = self.free.iter().position(|(_, s)| *s == size) {
            return self.free.swap_remove(i).0;
        }
        let place = self.width;
        self.width += u32::from(size);
        place
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
        if source.outputs.len() != signature.outputs.len() || source.outputs.is_empty() {
            return invalid("a program's outputs differ from the tensors");
        }
        let mut values: Vec<DType> = signature.inputs.iter().map(|d| d.dtype).collect();
        values.extend(&source.constants);
        let first_result = values.len();
        let mut steps = Vec::new();
        let mut simple = Vec::new();
        for i in source.instructions.iter() {
            simple.push(simple_of(&values, i));
            Self::step(&mut values, &mut steps, i, level)?;
        }
        if source.outputs.iter().any(|v| usize::from(*v) >= values.len()) {
            return invalid("an output names no value");
        }
        let fold = Self::close(&mut source, &mut values, &mut steps, signature, level)?;
        for (i, (value, desc)) in source.outputs.iter().zip(signature.outputs).enumerate() {
            if !(i == 0 && fold.is_some()) && values[usize::from(*value)] != desc.dtype {
                return invalid(format!("output {i} has another dtype than its value"));
            }
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
                    // What is read again had better stay in the cache.
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
        let closing = fold.map(|(fold, axes)| {
            let value = source.outputs[0];
            let dtype = values[usize::from(value)];
            let any_order = dtype.is_int() || dtype == DType::Bool;
            Closing { value, axes, any_order, fold }
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
            closing,
            contiguous,
        })
    }

    /// Bytes of scratch for tiles of at most `room` elements.
    pub fn scratch(&self, room: usize) -> usize {
        self.width * room + self.blocks * pair::CONSTANT
    }

    /// Where a value's slot begins in the scratch memory.
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
        if operands[..n].iter().any(|v| usize::from(*v) >= values.len()) {
            return invalid("an instruction reads a value that is not there yet");
        }
        // Unused operands name a used one: always a valid pointer, no live range.
        for k in n..4 {
            operands[k] = operands[0];
        }
        let dtypes = operands.map(|v| values[usize::from(v)]);
        let (main, agree) = match i.op {
            TileOp::Select => (dtypes[1], dtypes[0] == DType::Bool && dtypes[1] == dtypes[2]),
            TileOp::Binary(_) => (dtypes[0], dtypes[0] == dtypes[1]),
            _ => (dtypes[0], true),
        };
        if !agree {
            return invalid("an instruction's operands have different dtypes");
        }
        let run = tile::lookup(level, i.op, main).ok_or(Refusal::Unsupported)?;
        if tile::result_dtype(i.op, main) != i.dtype {
            return invalid("an instruction's dtype is not its result's");
        }
        steps.push(Step { run: Run::Tile(run), operands, result: values.len() as u16 });
        values.push(i.dtype);
        Ok(())
    }

    /// The closing reduction's functions; a conversion to the dtype in which it
    /// accumulates becomes a step.
    fn close(
        source: &mut Source,
        values: &mut Vec<DType>,
        steps: &mut Vec<Step>,
        signature: &Signature<'_>,
        level: Level,
    ) -> Result<Option<(Fold, u64)>, Refusal> {
        let Some((code, axes)) = source.reduce else { return Ok(None) };
        let ndim = signature.inputs.iter().chain(signature.outputs).map(|d| d.ndim).max();
        if axes >> ndim.unwrap_or(0).min(63) != 0 {
            return invalid("a reduced axis is not there");
        }
        let from = values[usize::from(source.outputs[0])];
        let boolean = code == schema::reduce::ALL || code == schema::reduce::ANY;
        let to = signature.outputs[0].dtype;
        if to != (if boolean { DType::Bool } else { from }) {
            return invalid("a reduction's output has another dtype");
        }
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

/// The instruction as a float32 sum, difference or product, if it is one.
fn simple_of(values: &[DType], i: &Instruction) -> Option<Simple> {
    let TileOp::Binary(code) = i.op else { return None };
    let op = match code {
        binary::ADD => Arith::Add,
        binary::SUBTRACT => Arith::Subtract,
        binary::MULTIPLY => Arith::Multiply,
        _ => return None,
    };
    let operands = [i.operands[0], i.operands[1]];
    let float = |v: &u16| values.get(usize::from(*v)) == Some(&DType::F32);
    operands.iter().all(float).then_some(Simple { op, operands })
}

/// The steps with float32 sums, differences and products done a few in a pass, where
/// results in between have no other use.
fn paired(
    mut steps: Vec<Step>,
    simple: &[Option<Simple>],
    outputs: &[u16],
    is_constant: impl Fn(u16) -> bool,
    level: Level,
) -> Vec<Step> {
    let uses = |value: u16| {
        let reads = |s: &Step| {
            // Operands that repeat the first do not count (or count for two, which
            // keeps a value from being swallowed, no more).
            let n = if s.operands[0] == s.operands[2] { 2 } else { 3 };
            s.operands[..n].iter().filter(|v| **v == value).count()
        };
        steps.iter().map(reads).sum::<usize>() + outputs.iter().filter(|v| **v == value).count()
    };
    // Which steps each one swallows: its left and its right operand's.
    let mut parts: Vec<[Option<usize>; 2]> = vec![[None; 2]; steps.len()];
    let mut swallowed = vec![false; steps.len()];
    for (at, s) in simple.iter().enumerate() {
        let Some(s) = s.filter(|s| s.operands[0] != s.operands[1]) else { continue };
        let free = |v: u16| {
            let made = steps.iter().position(|step| step.result == v)?;
            let whole = parts[made] == [None; 2] && !swallowed[made] && uses(v) == 1;
            simple.get(made).copied().flatten().filter(|_| whole).map(|op| (made, op.op))
        };
        let [left, right] = s.operands.map(free);
        let product = |part: Option<(usize, Arith)>| part.is_some_and(|p| p.1 == Arith::Multiply);
        let both = product(left) && product(right) && s.op != Arith::Multiply;
        let left = left.map(|p| p.0);
        let right = right.map(|p| p.0).filter(|_| both || left.is_none());
        parts[at] = [left, right];
        left.into_iter().chain(right).for_each(|made| swallowed[made] = true);
    }
    for (at, s) in simple.iter().enumerate().filter(|(at, _)| !swallowed[*at]) {
        let Some(last) = s else { continue };
        let part = |k: usize| parts[at][k].and_then(|made| simple[made]);
        let (run, operands) = match (part(0), part(1)) {
            (Some(a), Some(b)) => {
                let operands = [a.operands[0], a.operands[1], b.operands[0], b.operands[1]];
                (pair::products(level, last.op), operands)
            }
            (Some(a), None) => {
                let operands = [a.operands[0], a.operands[1], last.operands[1], a.operands[0]];
                (pair::lookup(level, a.op, last.op), operands)
            }
            (None, Some(b)) => {
                let operands = [b.operands[0], b.operands[1], last.operands[0], b.operands[0]];
                (pair::lookup(level, b.op, last.op.turned()), operands)
            }
            (None, None) => {
                let [a, b] = last.operands;
                (pair::lookup(level, last.op, Arith::None), [a, b, a, a])
            }
        };
        let Some(run) = run else { continue };
        let strides = operands.map(|v| usize::from(!is_constant(v)));
        steps[at] = Step { run: Run::Pair(run, strides), operands, result: steps[at].result };
    }
    let mut keep = swallowed.into_iter().map(|s| !s).chain(std::iter::repeat(true));
    steps.retain(|_| keep.next() == Some(true));
    steps
}

/// Places of the values' slots, their total in bytes per element, and the number of
/// blocks of constants.
///
/// Inputs have slots of their own, and constants too unless only pairs read them; a
/// result takes the slot of a dead value of its size, and those of outputs live to the
/// end. A result never takes the slot of an operand that dies with it: in place, tile
/// functions are slower.
fn allocate(
    sizes: &[u8],
    n_inputs: usize,
    first_result: usize,
    steps: &[Step],
    outputs: &[u16],
) -> (Vec<u32>, usize, usize) {
    let mut slots = Slots::default();
    let mut blocks = 0;
    let reads = |step: &Step, value: u16| step.operands.contains(&value);
    let mut places: Vec<u32> = Vec::with_capacity(sizes.len());
    for (v, size) in sizes[..first_result].iter().enumerate() {
        let pairs_only = v >= n_inputs
            && !outputs.contains(&(v as u16))
            && steps.iter().all(|s| !reads(s, v as u16) || matches!(s.run, Run::Pair(..)));
        if pairs_only {
            places.push(CONSTANT_PLACE | blocks);
            blocks += 1;
        } else {
            places.push(slots.take(*size));
        }
    }
    places.resize(sizes.len(), 0);
    for (at, step) in steps.iter().enumerate() {
        places[usize::from(step.result)] = slots.take(sizes[usize::from(step.result)]);
        // Results that nobody reads after this step.
        let mut dead = step.operands.to_vec();
        dead.push(step.result);
        dead.sort_unstable();
        dead.dedup();
        dead.retain(|v| {
            usize::from(*v) >= first_result
                && !outputs.contains(v)
                && !steps[at + 1..].iter().any(|later| reads(later, *v))
        });
        for v in dead.into_iter().map(usize::from) {
            slots.free.push((places[v], sizes[v]));
        }
    }
    (places, slots.width as usize, blocks as usize)
}
