//! Random fused programs: of many dtypes, with several outputs, in all layouts.

use super::{asked, bits_differ, single};
use crate::cases::none;
use crate::device::{Device, Handle, desc, words};
use crate::dtype::{DType, Num};
use crate::record::{PASSED, Result, skip};
use crate::run::{self, Request};
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, ordinary};
use ultramarine_abi::TensorDesc;
use ultramarine_abi::fused::{FusedInterface, Instruction, NO_REDUCTION, Program, family};
use ultramarine_abi::schema::{self, BinaryAttrs, OpId, ReduceAttrs, UnaryAttrs, op, reduce};

const SHAPES: [&[i64]; 5] = [&[37, 53], &[5, 6, 7], &[64, 32], &[301], &[3, 1, 40]];
const DTYPES: [DType; 9] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::BOOL,
    DType::I32,
    DType::U8,
    DType::I64,
    DType::C64,
];

/// A program under construction. Each value is computed by single ops.
struct Draft<'a> {
    device: &'a Device<'a>,
    stream: Handle,
    rng: Rng,
    shape: &'static [i64],
    dtypes: Vec<DType>,
    inputs: Vec<Placed>,
    constants: Vec<(DType, [u64; 2])>,
    instructions: Vec<Instruction>,
    values: Vec<Array>,
}

/// Makes a program of a seed and compares it with its ops.
pub fn run(device: &Device<'_>, interface: &FusedInterface, seed: u64) -> Result {
    let stream = device.stream()?;
    let result = compared(device, interface, stream, seed);
    device.destroy_stream(stream);
    result
}

fn compared(device: &Device<'_>, interface: &FusedInterface, stream: Handle, seed: u64) -> Result {
    let mask = device.info.dtypes_arithmetic;
    let dtypes: Vec<DType> = DTYPES.into_iter().filter(|d| d.in_mask(mask)).collect();
    let mut rng = Rng::new(900 + seed);
    let shape = SHAPES[rng.next() as usize % SHAPES.len()];
    let (inputs, constants, instructions, values) = <_>::default();
    let mut draft =
        Draft { device, stream, rng, shape, dtypes, inputs, constants, instructions, values };
    draft.begin();
    let wanted = 2 + draft.pick(9);
    for _ in 0..60 {
        let longest = device.info.fused_max_instructions as usize;
        if draft.instructions.len() >= wanted.min(longest) {
            break;
        }
        draft.step()?;
    }
    match draft.instructions.is_empty() {
        true => skip("none of its ops is native"),
        false => draft.finish(interface),
    }
}

impl Draft<'_> {
    fn pick(&mut self, n: usize) -> usize {
        (self.rng.next() >> 8) as usize % n.max(1)
    }

    /// Inputs in some layouts, and constants.
    fn begin(&mut self) {
        let most = (self.device.info.fused_max_inputs as usize).clamp(1, 4);
        for _ in 0..1 + self.pick(most) {
            let at = self.pick(self.dtypes.len());
            let dtype = self.dtypes[at];
            let values = ordinary(dtype, 700, &mut self.rng);
            let mut array = Array::cycle(dtype, self.shape, &values);
            let layouts = [Layout::Contiguous, Layout::Broadcast, Layout::Contiguous];
            let all: Vec<Layout> = layouts.into_iter().chain(Layout::STRIDED).collect();
            let layout = all[self.pick(all.len())];
            self.inputs.push(Placed::new(&mut array, layout));
            self.values.push(array);
        }
        for _ in 0..self.pick(3) {
            let at = self.pick(self.inputs.len());
            let dtype = self.values[at].dtype;
            let value = dtype.value(if dtype.is_int() { Num::Int(3) } else { Num::Real(0.625) });
            self.constants.push((dtype, dtype.scalar(value)));
            self.values.push(Array::cycle(dtype, self.shape, &[value]));
        }
    }

    /// A value, a recent one more often.
    fn operand(&mut self) -> usize {
        let n = self.values.len();
        let back = self.pick(n).min(self.pick(n));
        n - 1 - back
    }

    fn operand_of(&mut self, dtype: DType) -> usize {
        let all: Vec<usize> =
            (0..self.values.len()).filter(|i| self.values[*i].dtype == dtype).collect();
        all[self.pick(all.len())]
    }

    /// Tries to add a random instruction, which is added if there is such an op.
    fn step(&mut self) -> Result<()> {
        let a = self.operand();
        let from = self.values[a].dtype;
        match self.pick(6) {
            0 | 1 => self.coded(op::UNARY, family::UNARY, vec![a]),
            2 | 3 => {
                let b = self.operand_of(from);
                self.coded(op::BINARY, family::BINARY, vec![a, b])
            }
            4 => {
                let at = self.pick(self.dtypes.len());
                let to = self.dtypes[at];
                // The contract leaves conversions out of range open.
                if (from.is_float() || from.is_complex()) && to.is_int() {
                    return Ok(());
                }
                self.add(op::COPY, none(), (family::CAST, 0), vec![a], to)
            }
            _ => {
                let flags = self.values.iter().any(|v| v.dtype == DType::BOOL);
                if !flags {
                    let b = self.operand_of(from);
                    let attributes = words(&BinaryAttrs::new(schema::binary::NOT_EQUAL));
                    let code = (family::BINARY, schema::binary::NOT_EQUAL);
                    return self.add(op::BINARY, attributes, code, vec![a, b], DType::BOOL);
                }
                let (flag, c) = (self.operand_of(DType::BOOL), self.operand_of(from));
                self.add(op::SELECT, none(), (family::SELECT, 0), vec![flag, a, c], from)
            }
        }
    }

    /// An instruction with a random code.
    fn coded(&mut self, id: OpId, family: u8, operands: Vec<usize>) -> Result<()> {
        let Some(row) = schema::find(id) else { return Ok(()) };
        let from = self.values[operands[0]].dtype;
        let code = &row.codes[self.pick(row.codes.len())];
        let outputs = row.output_of(Some(code), usize::from(from.0));
        let to = DType::all().find(|d| d.in_mask(outputs));
        let (Some(to), true) = (to, from.in_mask(row.dtypes_of(Some(code)))) else { return Ok(()) };
        let attributes = match id {
            op::UNARY => words(&UnaryAttrs::new(code.code)),
            _ => words(&BinaryAttrs::new(code.code)),
        };
        self.add(id, attributes, (family, code.code), operands, to)
    }

    fn add(
        &mut self,
        id: OpId,
        attributes: Vec<u64>,
        (family, code): (u8, u32),
        operands: Vec<usize>,
        to: DType,
    ) -> Result<()> {
        let arrays = operands.iter().map(|i| self.values[*i].clone()).collect();
        let target = (to, self.shape.to_vec());
        let value = single(self.device, self.stream, (id, attributes), arrays, target)?;
        let Some(value) = value else { return Ok(()) };
        let at = |i: usize| operands.get(i).map_or(0, |o| *o as u16);
        let (a, b, c) = (at(0), at(1), at(2));
        self.values.push(value);
        self.instructions.push(Instruction { family, op: code as u8, a, b, c, dtype: to.dl() });
        Ok(())
    }

    /// The epilogue, a reduction: the value, the code, the axes and the expected result.
    fn epilogue(&mut self) -> Result<Option<(u16, u32, u64, Array)>> {
        if self.pick(3) > 0 {
            return Ok(None);
        }
        let value = self.values.len() - 1 - self.pick(self.instructions.len());
        let axes = 1 + self.pick((1 << self.shape.len()) - 1) as u64;
        let codes = [reduce::SUM, reduce::MAX, reduce::MIN, reduce::ANY, reduce::ALL];
        let code = codes[self.pick(codes.len())];
        let input = self.values[value].clone();
        let Some(row) = schema::find(op::REDUCE) else { return Ok(None) };
        let Some(known) = row.code(code) else { return Ok(None) };
        let outputs = row.output_of(Some(known), usize::from(input.dtype.0));
        let to = DType::all().find(|d| d.in_mask(outputs));
        let fits = input.dtype.in_mask(row.dtypes_of(Some(known)));
        let (Some(to), true) = (to, fits) else { return Ok(None) };
        let kept = |(i, n): (usize, &i64)| if axes >> i & 1 == 1 { 1 } else { *n };
        let target = (to, self.shape.iter().enumerate().map(kept).collect());
        let attributes = words(&ReduceAttrs::new(code, axes));
        let found =
            single(self.device, self.stream, (op::REDUCE, attributes), vec![input], target)?;
        Ok(found.map(|array| (value as u16, code, axes, array)))
    }

    /// Runs it, and compares all outputs.
    fn finish(mut self, interface: &FusedInterface) -> Result {
        let epilogue = self.epilogue()?;
        let first = self.values.len() - self.instructions.len();
        let (mut outputs, mut expected): (Vec<u16>, Vec<Array>) = <_>::default();
        if let Some((value, .., array)) = &epilogue {
            outputs.push(*value);
            expected.push(array.clone());
        }
        let least = usize::from(epilogue.is_none());
        for i in 0..least.max(self.pick(3)) {
            // The last value, and some more.
            let back = if i == 0 { 0 } else { self.pick(self.instructions.len()) };
            let value = self.values.len() - 1 - back;
            if value >= first
                && !outputs[usize::from(epilogue.is_some())..].contains(&(value as u16))
            {
                outputs.push(value as u16);
                expected.push(self.values[value].clone());
            }
        }
        let constants: Vec<_> = self.constants.iter().map(|(dtype, _)| dtype.dl()).collect();
        let made = Program {
            size: size_of::<Program>() as u32,
            reduce: epilogue.as_ref().map_or(NO_REDUCTION, |c| c.1),
            axes: epilogue.as_ref().map_or(0, |c| c.2),
            instructions: self.instructions.as_ptr(),
            constants: constants.as_ptr(),
            outputs: outputs.as_ptr(),
            n_instructions: self.instructions.len() as u32,
            n_constants: constants.len() as u32,
            n_outputs: outputs.len() as u32,
            n_inputs: self.inputs.len() as u32,
        };
        let placed = |array: &Array| Placed::output(array.dtype, &array.shape, Layout::Contiguous);
        let mut targets: Vec<Placed> = expected.iter().map(placed).collect();
        let described = |list: &[Placed]| -> Vec<TensorDesc> {
            list.iter().map(|p| desc(p.dtype, self.shape.len(), p.class)).collect()
        };
        let descs = [described(&self.inputs), described(&targets)];
        let plan = match asked(self.device, interface, &made, [&descs[0], &descs[1]])? {
            Ok(plan) => plan,
            Err(why) => return skip(why),
        };
        let request = Request {
            op: op::COPY,
            attributes: none(),
            inputs: self.inputs.clone(),
            output: targets.remove(0),
            more: targets,
            scalars: self.constants.iter().map(|c| c.1).collect(),
            donated: None,
        };
        let found = run::submit_all(self.device, self.stream, plan, &request);
        self.device.release(plan);
        for (k, (found, expected)) in found?.iter().zip(&expected).enumerate() {
            if let Some(i) = bits_differ(expected.dtype, found, &expected.values) {
                let (a, b) = (found[i], expected.values[i]);
                return Err(format!(
                    "element {i} of output {k} ({}) is {a} in the program, {b} op by op; shape {:?}, inputs {:?}, outputs {outputs:?}, {:?}",
                    expected.dtype.name(),
                    self.shape,
                    self.inputs.iter().map(|p| (p.dtype.name(), &p.strides)).collect::<Vec<_>>(),
                    self.instructions,
                ));
            }
        }
        PASSED
    }
}
