//! Programs against a reference that takes one element at a time, and against
//! their own ops one by one.

use super::{
    prepare::finish,
    program::{Instruction, Source},
};
use crate::{
    dtype::DType,
    kernel::{Args, Context, Desc, Refusal, Signature, View},
    level::Level,
    par::Par,
    tile::{self, TileOp},
};
use ultramarine_abi::schema::{binary, reduce, unary};

/// A generator of numbers, the same in every run (Steele's SplitMix64).
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

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
    fn strided(random: &mut Random, dtype: DType, shape: &[i64], zero: bool) -> Tensor {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
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

    fn dense(random: &mut Random, dtype: DType, shape: &[i64]) -> Tensor {
        let mut strides = vec![0i64; shape.len()];
        let mut span = 1;
        for (stride, n) in strides.iter_mut().zip(shape).rev() {
            *stride = span;
            span *= n;
        }
        Tensor::with(random, dtype, shape, strides, span as usize, 0)
    }

    fn with(
        random: &mut Random,
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
                _ => element.copy_from_slice(&random.next().to_le_bytes()[..size]),
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
    let kernel = finish(source.clone(), &signature, level)?;
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
    let f = tile::lookup(level, i.op, dtypes[i.operands[which] as usize]).expect("was there");
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
    random: &mut Random,
    inputs: &[DType],
    dtype: DType,
    level: Level,
) -> (Source, Vec<DType>) {
    let mut source = Source { constants: vec![dtype; random.below(3)], ..Source::default() };
    let mut values = inputs.to_vec();
    values.extend(&source.constants);
    for _ in 0..random.below(8) {
        let of = |random: &mut Random, values: &[DType], d: DType| {
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
        if tile::lookup(level, op, dtype).is_none() {
            continue;
        }
        let result = tile::result_dtype(op, dtype);
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
    let mut random = Random(1);
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

fn reduced_shape(shape: &[i64], axes: u64) -> Vec<i64> {
    let keep = |(i, n): (usize, &i64)| if axes >> i & 1 == 1 { 1 } else { *n };
    shape.iter().enumerate().map(keep).collect()
}

/// As a number, for reductions of integers modulo their width and of floats.
fn number(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F32 => f32::from_bits(bits as u32) as f64,
        DType::F64 => f64::from_bits(bits),
        DType::F16 => half::f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
        DType::I8 => bits as u8 as i8 as f64,
        DType::I16 => bits as u16 as i16 as f64,
        DType::I32 => bits as u32 as i32 as f64,
        DType::I64 => bits as i64 as f64,
        _ => bits as f64,
    }
}

fn check_reduction(level: Level, code: u32, x: &Tensor, axes: u64, out: &Tensor) {
    let shape = &x.shape;
    let n_out = out.shape.iter().product::<i64>() as usize;
    let mut lists = vec![Vec::new(); n_out];
    for i in 0..shape.iter().product::<i64>() as usize {
        let (mut rest, mut place, mut step) = (i as i64, 0, 1);
        for axis in (0..shape.len()).rev() {
            if axes >> axis & 1 == 0 {
                place += rest % shape[axis] * step;
                step *= shape[axis];
            }
            rest /= shape[axis];
        }
        lists[place as usize].push(x.bits(i, shape));
    }
    for (i, list) in lists.iter().enumerate() {
        let got = out.bits(i, &out.shape);
        let mask = u64::MAX >> (64 - 8 * x.dtype.size());
        let what = || format!("{level:?} code {code} {:?} {shape:?} axes {axes:b} at {i}", x.dtype);
        let numbers = || list.iter().map(|b| number(x.dtype, *b));
        match code {
            reduce::ALL => assert_eq!(got, numbers().all(|v| v != 0.0) as u64, "{}", what()),
            reduce::ANY => assert_eq!(got, numbers().any(|v| v != 0.0) as u64, "{}", what()),
            reduce::MIN | reduce::MAX => {
                let ties = |a: &u64, b: &u64| {
                    let (a, b) = (*a, *b);
                    if x.dtype == DType::I64 {
                        (a as i64).cmp(&(b as i64))
                    } else if x.dtype == DType::U64 {
                        a.cmp(&b)
                    } else {
                        number(x.dtype, a).total_cmp(&number(x.dtype, b))
                    }
                };
                let want = if code == reduce::MIN {
                    list.iter().min_by(|a, b| ties(a, b))
                } else {
                    list.iter().max_by(|a, b| ties(a, b))
                };
                let want = *want.expect("not empty");
                assert!(got == want || number(x.dtype, got) == number(x.dtype, want), "{}", what());
            }
            _ if x.dtype.is_int() => {
                let fold = |a: u64, b: &u64| {
                    if code == reduce::SUM { a.wrapping_add(*b) } else { a.wrapping_mul(*b) }
                };
                let want = list.iter().fold((code == reduce::PROD) as u64, fold) & mask;
                assert_eq!(got, want, "{}", what());
            }
            // Long products overflow on the way; integers and short ones stand for them.
            reduce::PROD if list.len() > 9 => {}
            _ => {
                let (want, scale) = if code == reduce::SUM {
                    (numbers().sum::<f64>(), numbers().map(f64::abs).sum::<f64>())
                } else {
                    (numbers().product::<f64>(), numbers().product::<f64>().abs())
                };
                let eps = match x.dtype {
                    DType::F16 => 1e-3,
                    DType::BF16 => 8e-3,
                    DType::F32 => 4e-6,
                    _ => 1e-13,
                };
                let got = number(x.dtype, got);
                assert!((got - want).abs() <= eps * scale + 1e-30, "{} {got} {want}", what());
            }
        }
    }
}

#[test]
fn reductions_over_every_axes_mask() {
    let mut random = Random(2);
    let shapes: &[&[i64]] = &[
        &[],
        &[1],
        &[5],
        &[40],
        &[3000],
        &[3, 5],
        &[70, 3],
        &[3, 70],
        &[150, 33],
        &[2, 1500],
        &[1500, 2],
        &[4, 5, 6],
        &[3, 70, 5],
        &[2, 3, 4, 5],
        &[17, 1, 19],
        &[1, 5, 1],
    ];
    for &level in Level::available() {
        for shape in shapes {
            for axes in 0..1u64 << shape.len() {
                for code in
                    [reduce::SUM, reduce::PROD, reduce::MIN, reduce::MAX, reduce::ALL, reduce::ANY]
                {
                    let boolean = code == reduce::ALL || code == reduce::ANY;
                    let mut dtype = DType::ALL[random.below(13)];
                    if dtype == DType::Bool && code <= reduce::PROD {
                        dtype = DType::I32;
                    }
                    let x = match random.below(2) {
                        0 => Tensor::strided(&mut random, dtype, shape, true),
                        _ => Tensor::dense(&mut random, dtype, shape),
                    };
                    let to = if boolean { DType::Bool } else { dtype };
                    let small = reduced_shape(shape, axes);
                    let out = match random.below(2) {
                        0 => Tensor::strided(&mut random, to, &small, false),
                        _ => Tensor::dense(&mut random, to, &small),
                    };
                    let source = Source {
                        outputs: vec![0],
                        reduce: Some((code, axes)),
                        ..Source::default()
                    };
                    run(level, &source, &[&x], &[&out], &[]).unwrap_or_else(|e| panic!("{e:?}"));
                    check_reduction(level, code, &x, axes, &out);
                }
            }
        }
    }
}

#[test]
fn fused_reductions_give_the_bits_of_single_ops() {
    let mut random = Random(3);
    let shapes: &[&[i64]] =
        &[&[], &[3000], &[1100, 70], &[70, 1100], &[33, 7, 65], &[3, 5, 2, 9], &[300, 1024]];
    let float = [DType::F32, DType::F64, DType::F16, DType::BF16];
    for &level in Level::available() {
        for round in 0..10 * shapes.len() {
            let shape = shapes[round % shapes.len()];
            let axes = random.next() & ((1 << shape.len()) - 1);
            let dtype = float[random.below(4)];
            let inputs: Vec<_> =
                (0..2).map(|_| Tensor::strided(&mut random, dtype, shape, true)).collect();
            let code = [reduce::SUM, reduce::PROD, reduce::MAX][random.below(3)];
            let instruction = |op, operands| Instruction { op, operands, dtype };
            let mut source = Source {
                constants: vec![dtype],
                instructions: vec![
                    instruction(TileOp::Binary(binary::ADD), [0, 2, 0]),
                    instruction(TileOp::Binary(binary::MULTIPLY), [3, 1, 0]),
                ],
                outputs: vec![4, 3],
                reduce: Some((code, axes)),
            };
            let scalars = [[Tensor::dense(&mut random, dtype, &[]).bits(0, &[]), 0]];
            let ins: Vec<_> = inputs.iter().collect();
            let small = reduced_shape(shape, axes);
            let fused = Tensor::strided(&mut random, dtype, &small, false);
            let side = Tensor::dense(&mut random, dtype, shape);
            run(level, &source, &ins, &[&fused, &side], &scalars)
                .unwrap_or_else(|e| panic!("{e:?}"));
            // The same by a program without reduction, then a reduction alone.
            source.reduce = None;
            let (value, plain) = (
                Tensor::dense(&mut random, dtype, shape),
                Tensor::strided(&mut random, dtype, shape, false),
            );
            run(level, &source, &ins, &[&value, &plain], &scalars)
                .unwrap_or_else(|e| panic!("{e:?}"));
            let alone = Tensor::dense(&mut random, dtype, &small);
            let source =
                Source { outputs: vec![0], reduce: Some((code, axes)), ..Source::default() };
            run(level, &source, &[&value], &[&alone], &[]).unwrap_or_else(|e| panic!("{e:?}"));
            let same =
                |a: u64, b: u64| a == b || number(dtype, a).is_nan() && number(dtype, b).is_nan();
            for (a, b) in fused.all_bits().into_iter().zip(alone.all_bits()) {
                assert!(
                    same(a, b),
                    "{level:?} {shape:?} axes {axes:b} {dtype:?} code {code}: {a:x} {b:x}"
                );
            }
            assert_eq!(side.all_bits(), plain.all_bits());
        }
    }
}

#[test]
fn donated_inputs() {
    let mut random = Random(4);
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
fn nan_and_complex_extremes() {
    for &level in Level::available() {
        let mut random = Random(5);
        for (shape, axes) in [(&[1500i64][..], 1u64), (&[90, 40], 1), (&[90, 40], 2)] {
            for code in [reduce::MIN, reduce::MAX] {
                for at in [0usize, 37, 1499] {
                    let mut x = Tensor::dense(&mut random, DType::F32, shape);
                    let place = x.start + at;
                    // SAFETY: within the memory.
                    unsafe { *(x.memory.as_mut_ptr() as *mut f32).add(place) = f32::NAN };
                    let out = Tensor::dense(&mut random, DType::F32, &reduced_shape(shape, axes));
                    let source = Source {
                        outputs: vec![0],
                        reduce: Some((code, axes)),
                        ..Source::default()
                    };
                    run(level, &source, &[&x], &[&out], &[]).unwrap_or_else(|e| panic!("{e:?}"));
                    let nans = out
                        .all_bits()
                        .iter()
                        .filter(|b| f32::from_bits(**b as u32).is_nan())
                        .count();
                    assert_eq!(nans, 1);
                }
            }
        }
        let mut x = Tensor::dense(&mut random, DType::C64, &[3]);
        let parts = [1.0f32, 2.0, 1.0, 5.0, 0.5, 9.0];
        for (i, part) in parts.iter().enumerate() {
            // SAFETY: within the memory.
            unsafe { *(x.memory.as_mut_ptr() as *mut f32).add(2 * x.start + i) = *part };
        }
        for (code, want) in [
            (reduce::MAX, (1.0f32, 5.0f32)),
            (reduce::MIN, (0.5, 9.0)),
            (reduce::SUM, (2.5, 16.0)),
            (reduce::PROD, (-67.5, -77.5)),
        ] {
            let out = Tensor::dense(&mut random, DType::C64, &[1]);
            let source = Source { outputs: vec![0], reduce: Some((code, 1)), ..Source::default() };
            run(level, &source, &[&x], &[&out], &[]).unwrap_or_else(|e| panic!("{e:?}"));
            let bits = out.bits(0, &[1]);
            assert_eq!(
                (f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32)),
                want,
                "{code}"
            );
        }
    }
}

#[test]
fn malformed_programs_are_refused() {
    let mut random = Random(6);
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

#[test]
fn arange_and_fill() {
    use ultramarine_abi::schema::op;
    let mut random = Random(7);
    for &level in Level::available() {
        for n in [1i64, 5, 512, 70_001] {
            for (id, dtype) in
                [(op::ARANGE, DType::F32), (op::ARANGE, DType::I32), (op::FILL, DType::I32)]
            {
                let out = Tensor::strided(&mut random, dtype, &[n], false);
                let signature = Signature { inputs: &[], outputs: &[out.desc()] };
                // SAFETY: these ops have no attributes.
                let kernel = unsafe { super::prepare_op(id, std::ptr::null(), &signature, level) };
                let Ok(kernel) = kernel else { panic!("{id} refused") };
                let float = [[1.5f64.to_bits(), 0], [0.25f64.to_bits(), 0]];
                let int = [[-7i64 as u64, 0], [3, 0]];
                let scalars = if dtype == DType::F32 { &float } else { &int };
                let scalars = if id == op::FILL { &scalars[..1] } else { &scalars[..] };
                let args = Args { inputs: &[], outputs: &[out.view()], scalars };
                // SAFETY: the output has memory for its strides.
                unsafe { kernel.run(&Context { par: Par::default(), level }, &args) }
                    .unwrap_or_else(|e| panic!("{e}"));
                for i in 0..n as usize {
                    let want = match (id, dtype) {
                        (op::FILL, _) => -7i32 as u32,
                        (_, DType::F32) => (1.5 + 0.25 * i as f32).to_bits(),
                        _ => (3 * i as i32 - 7) as u32,
                    };
                    assert_eq!(out.bits(i, &[n]) as u32, want, "{level:?} {id} {n} at {i}");
                }
            }
        }
    }
}
