//! Programs that end in a reduction: against a reference, and against their own ops
//! one by one.

use super::*;
use ultramarine_test_support::Rng;

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
    let mut random = Rng::new(2);
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
fn fused_reductions_match_single_ops_bitwise() {
    let mut random = Rng::new(3);
    let shapes: &[&[i64]] =
        &[&[], &[3000], &[1100, 70], &[70, 1100], &[33, 7, 65], &[3, 5, 2, 9], &[300, 1024]];
    let float = [DType::F32, DType::F64, DType::F16, DType::BF16];
    for &level in Level::available() {
        for round in 0..10 * shapes.len() {
            let shape = shapes[round % shapes.len()];
            let axes = random.bits() & ((1 << shape.len()) - 1);
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
fn nan_and_complex_extremes() {
    for &level in Level::available() {
        let mut random = Rng::new(5);
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
