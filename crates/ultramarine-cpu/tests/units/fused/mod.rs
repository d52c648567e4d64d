//! Programs against a reference that takes one element at a time, and against
//! their own ops one by one.

mod epilogues;

use ultramarine_abi::schema::{binary, reduce, unary};
use ultramarine_cpu::elementwise::{self, TileOp};
use ultramarine_cpu::kernel::{Args, Context, Desc, Refusal, Signature, View};
use ultramarine_cpu::tested::families::fused as build;
use ultramarine_cpu::tested::{Instruction, Source};
use ultramarine_cpu::{dtype::DType, level::Level, par::Par};
use ultramarine_test_support::Rng;

/// A tensor with memory of its own, some of it around and between its elements.
#[derive(Clone)]
struct Tensor {
    dtype: DType,
    memory: Vec<u64>,
    start: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Tensor {
    /// Elements in random order of axes, with gaps, backwards; broadcast where `zero`.
    fn strided(random: &mut Rng, dtype: DType, shape: &[i64], zero: bool) -> Tensor {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        random.shuffle(&mut order);
        let (mut strides, mut span, mut low) = (vec![0i64; shape.len()], 1i64, 0i64);
        for axis in order {
            if zero && random.below(4) == 0 {
                continue;
            }
            let gap = if random.below(4) == 0 { 2 } else { 1 };
            let negative = random.below(4) == 0;
            strides[axis] = if negative { -span * gap } else { span * gap };
            if negative {
                low += span * gap * (shape[axis] - 1);
            }
            span *= gap * shape[axis];
        }
        Tensor::with(random, dtype, shape, strides, span as usize, low as usize)
    }

    fn dense(random: &mut Rng, dtype: DType, shape: &[i64]) -> Tensor {
        let mut strides = vec![0i64; shape.len()];
        let mut span = 1;
        for (stride, n) in strides.iter_mut().zip(shape).rev() {
            *stride = span;
            span *= n;
        }
        Tensor::with(random, dtype, shape, strides, span as usize, 0)
    }

    fn with(
        random: &mut Rng,
        dtype: DType,
        shape: &[i64],
        strides: Vec<i64>,
        span: usize,
        start: usize,
    ) -> Tensor {
        let mut t = Tensor {
            dtype,
            memory: vec![0u64; span + 2],
            start: start + 1,
            shape: shape.to_vec(),
            strides,
        };
        let size = dtype.size();
        // SAFETY: u64 memory as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(t.memory.as_mut_ptr() as *mut u8, t.memory.len() * 8)
        };
        for element in bytes.chunks_exact_mut(size) {
            let x = random.below(17) as f64 / 4.0 - 2.0;
            match dtype {
                DType::Bool => element[0] = (random.below(3) > 0) as u8,
                DType::F32 => element.copy_from_slice(&(x as f32 * 1.1).to_le_bytes()),
                DType::F64 => element.copy_from_slice(&(x * 1.1).to_le_bytes()),
                DType::F16 => element.copy_from_slice(&half::f16::from_f64(x).to_le_bytes()),
                DType::BF16 => element.copy_from_slice(&half::bf16::from_f64(x).to_le_bytes()),
                DType::C64 => {
                    element[..4].copy_from_slice(&(x as f32).to_le_bytes());
                    element[4..].copy_from_slice(&(1.0 - x as f32).to_le_bytes());
                }
                _ => element.copy_from_slice(&random.bits().to_le_bytes()[..size]),
            }
        }
        t
    }

    fn view(&self) -> View<'_> {
        let data = self.memory.as_ptr() as *mut u8;
        View {
            data: data.wrapping_add(self.start * self.dtype.size()),
            dtype: self.dtype,
            shape: &self.shape,
            strides: &self.strides,
        }
    }

    fn desc(&self) -> Desc {
        Desc { dtype: self.dtype, ndim: self.shape.len(), contiguous: self.view().is_contiguous() }
    }

    /// The bits of the element at row-major place `index` of `shape`.
    fn bits(&self, index: usize, shape: &[i64]) -> u64 {
        let (mut rest, mut offset) = (index as i64, self.start as i64);
        for axis in (0..shape.len()).rev() {
            if self.shape[axis] != 1 {
                offset += rest % shape[axis] * self.strides[axis];
            }
            rest /= shape[axis];
        }
        let (size, mut bits) = (self.dtype.size(), 0u64);
        let memory = self.memory.as_ptr() as *const u8;
        // SAFETY: the strides stay within the memory.
        unsafe {
            let from = memory.add(offset as usize * size);
            std::ptr::copy_nonoverlapping(from, &raw mut bits as *mut u8, size);
        }
        bits
    }

    fn all_bits(&self) -> Vec<u64> {
        let n = self.shape.iter().product::<i64>() as usize;
        (0..n).map(|i| self.bits(i, &self.shape)).collect()
    }
}

fn run(
    level: Level,
    source: &Source,
    inputs: &[&Tensor],
    outputs: &[&Tensor],
    scalars: &[[u64; 2]],
) -> Result<(), Refusal> {
    let descs = |t: &[&Tensor]| t.iter().map(|t| t.desc()).collect::<Vec<_>>();
    let (ins, outs) = (descs(inputs), descs(outputs));
    let signature = Signature { inputs: &ins, outputs: &outs };
    let kernel = build(source.clone(), &signature, level)?;
    fn views<'a>(t: &[&'a Tensor]) -> Vec<View<'a>> {
        t.iter().map(|t| t.view()).collect()
    }
    let (ins, outs) = (views(inputs), views(outputs));
    let fence: Vec<_> =
        outputs.iter().map(|t| (t.memory[0], t.memory[t.memory.len() - 1])).collect();
    let args = Args { inputs: &ins, outputs: &outs, scalars };
    // SAFETY: the tensors have memory for their strides.
    unsafe { kernel.run(&Context { par: Par::default(), level }, &args) }
        .map_err(Refusal::Invalid)?;
    for (t, (first, last)) in outputs.iter().zip(fence) {
        if t.dtype.size() == 8 {
            assert_eq!((t.memory[0], t.memory[t.memory.len() - 1]), (first, last), "wrote outside");
        }
    }
    Ok(())
}

/// The value's bits of one element, by tile functions on single elements.
fn one(level: Level, i: &Instruction, dtypes: &[DType], values: &[u64]) -> u64 {
    let [a, b, c] = i.operands.map(|v| values.get(v as usize).copied().unwrap_or(0));
    let which = if i.op == TileOp::Select { 1 } else { 0 };
    let f =
        elementwise::lookup(level, i.op, dtypes[i.operands[which] as usize]).expect("was there");
    let mut out = 0u64;
    let at = |x: &u64| x as *const u64 as *const u8;
    // SAFETY: one element of at most eight bytes each.
    unsafe { f(&raw mut out as *mut u8, at(&a), at(&b), at(&c), 1) };
    out
}

const SHAPES: &[&[i64]] = &[
    &[],
    &[1],
    &[7],
    &[64],
    &[1025],
    &[5000],
    &[1, 1],
    &[3, 5],
    &[33, 65],
    &[1, 130],
    &[130, 1],
    &[40, 70],
    &[3, 2100],
    &[2100, 3],
    &[2, 3, 4],
    &[17, 9, 40],
    &[9, 1, 40],
    &[5, 3, 2, 7, 2],
    &[70, 20, 30],
];

/// A random program over values of `dtype` (and bools from comparisons).
fn random_program(
    random: &mut Rng,
    inputs: &[DType],
    dtype: DType,
    level: Level,
) -> (Source, Vec<DType>) {
    let mut source = Source { constants: vec![dtype; random.below(3)], ..Source::default() };
    let mut values = inputs.to_vec();
    values.extend(&source.constants);
    for _ in 0..random.below(8) {
        let of = |random: &mut Rng, values: &[DType], d: DType| {
            let all: Vec<_> = (0..values.len()).filter(|v| values[*v] == d).collect();
            (!all.is_empty()).then(|| all[random.below(all.len())] as u16)
        };
        let Some(a) = of(random, &values, dtype) else { break };
        let Some(b) = of(random, &values, dtype) else { break };
        let (op, operands) = match random.below(7) {
            0 => (TileOp::Unary(unary::NEGATIVE), [a, 0, 0]),
            1 => (TileOp::Binary(binary::LESS), [a, b, 0]),
            2 => match of(random, &values, DType::Bool) {
                Some(c) => (TileOp::Select, [c, a, b]),
                None => continue,
            },
            3 => (TileOp::Binary(binary::MULTIPLY), [a, b, 0]),
            4 => (TileOp::Binary(binary::MAXIMUM), [a, b, 0]),
            5 => (TileOp::Cast([DType::F64, DType::I16, DType::Bool][random.below(3)]), [a, 0, 0]),
            _ => (TileOp::Binary(binary::ADD), [a, b, 0]),
        };
        if elementwise::lookup(level, op, dtype).is_none() {
            continue;
        }
        let result = elementwise::result_dtype(op, dtype);
        source.instructions.push(Instruction { op, operands, dtype: result });
        values.push(result);
    }
    for _ in 0..1 + random.below(3) {
        source.outputs.push(random.below(values.len()) as u16);
    }
    (source, values)
}

#[test]
fn programs_match_single_elements() {
    let mut random = Rng::new(1);
    for &level in Level::available() {
        for round in 0..6 * SHAPES.len() {
            let shape = SHAPES[round % SHAPES.len()];
            let dtype = DType::ALL[random.below(14)];
            let strided = random.below(3) > 0;
            let inputs: Vec<_> = (0..1 + random.below(3))
                .map(|i| {
                    let d = if i == 2 { DType::Bool } else { dtype };
                    if strided {
                        Tensor::strided(&mut random, d, shape, true)
                    } else {
                        Tensor::dense(&mut random, d, shape)
                    }
                })
                .collect();
            let dtypes: Vec<_> = inputs.iter().map(|t| t.dtype).collect();
            let (source, values) = random_program(&mut random, &dtypes, dtype, level);
            let scalars: Vec<_> = source
                .constants
                .iter()
                .map(|d| [Tensor::dense(&mut random, *d, &[]).bits(0, &[]), 0])
                .collect();
            let outputs: Vec<_> = source
                .outputs
                .iter()
                .map(|v| {
                    let d = values[*v as usize];
                    if strided && random.below(2) == 0 {
                        Tensor::strided(&mut random, d, shape, false)
                    } else {
                        Tensor::dense(&mut random, d, shape)
                    }
                })
                .collect();
            let ins: Vec<_> = inputs.iter().collect();
            run(level, &source, &ins, &outputs.iter().collect::<Vec<_>>(), &scalars)
                .unwrap_or_else(|e| panic!("{e:?} {source:?}"));
            for i in 0..shape.iter().product::<i64>() as usize {
                let mut bits: Vec<u64> = inputs.iter().map(|t| t.bits(i, shape)).collect();
                bits.extend(scalars.iter().map(|s| s[0]));
                for instruction in &source.instructions {
                    bits.push(one(level, instruction, &values, &bits));
                }
                for (o, v) in outputs.iter().zip(&source.outputs) {
                    assert_eq!(
                        o.bits(i, shape),
                        bits[*v as usize],
                        "{level:?} {shape:?} {source:?} at {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn donated_inputs() {
    let mut random = Rng::new(4);
    let level = Level::current();
    for shape in [&[4i64][..], &[5000], &[40, 70], &[300, 200]] {
        let a = Tensor::strided(&mut random, DType::F32, shape, false);
        let before = a.clone();
        let d = DType::F32;
        let binary = |operands, op| Instruction { op: TileOp::Binary(op), operands, dtype: d };
        // out0 = a + a lies in a's memory; out1 = a * out0 and out2 = a are made of a.
        let source = Source {
            instructions: vec![binary([0, 0, 0], binary::ADD), binary([0, 1, 0], binary::MULTIPLY)],
            outputs: vec![1, 2, 0],
            ..Source::default()
        };
        let out = Tensor::dense(&mut random, d, shape);
        let copy = Tensor::dense(&mut random, d, shape);
        run(level, &source, &[&a], &[&a, &out, &copy], &[]).unwrap_or_else(|e| panic!("{e:?}"));
        for i in 0..shape.iter().product::<i64>() as usize {
            let x = f32::from_bits(before.bits(i, shape) as u32);
            assert_eq!(a.bits(i, shape) as u32, (x + x).to_bits());
            assert_eq!(out.bits(i, shape) as u32, (x * (x + x)).to_bits());
            assert_eq!(copy.bits(i, shape) as u32, x.to_bits());
        }
    }
}

#[test]
fn malformed_programs_are_refused() {
    let mut random = Rng::new(6);
    let x = Tensor::dense(&mut random, DType::F32, &[4]);
    let refused = |source: Source, out: &Tensor| {
        assert!(run(Level::current(), &source, &[&x], &[out], &[]).is_err(), "{source:?}");
    };
    let out = x.clone();
    let add = |operands, dtype| Instruction { op: TileOp::Binary(binary::ADD), operands, dtype };
    refused(Source { outputs: vec![1], ..Source::default() }, &out);
    refused(Source { outputs: vec![], ..Source::default() }, &out);
    let bad = vec![add([0, 1, 0], DType::F32)];
    refused(Source { instructions: bad, outputs: vec![1], ..Source::default() }, &out);
    let bad = vec![add([0, 0, 0], DType::F64)];
    refused(Source { instructions: bad, outputs: vec![1], ..Source::default() }, &out);
    refused(Source { outputs: vec![0], reduce: Some((reduce::SUM, 2)), ..Source::default() }, &out);
    refused(Source { outputs: vec![0], reduce: Some((77, 1)), ..Source::default() }, &out);
    // A result that does not have the reduced shape.
    refused(Source { outputs: vec![0], reduce: Some((reduce::SUM, 1)), ..Source::default() }, &out);
    let longer = Tensor::dense(&mut random, DType::F32, &[5]);
    refused(Source { outputs: vec![0], ..Source::default() }, &longer);
}
