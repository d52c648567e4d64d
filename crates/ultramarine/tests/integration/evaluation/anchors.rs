//! Programs that hang on an operation: a norm of what a program makes is one command with it, and the bits are those of
//! single operations.

use ultramarine::{
    Array, Dtype, Result, Scalar, eval, fast, memory, op_counts, reset_op_counts, reset_stats,
    set_fusion, stats,
};
use ultramarine_test_support::{Rng, own_process};

fn numbers(shape: &[usize], rng: &mut Rng) -> Result<Array> {
    let n = shape.iter().product();
    let values: Vec<f32> = rng.uniforms(n, -1.0, 1.0).into_iter().map(|v| v as f32).collect();
    Array::from_slice(&values, shape)
}

fn bits(arrays: &[Array]) -> Result<Vec<Vec<u64>>> {
    let all = |a: &Array| {
        let values = a.astype(Dtype::Float64).to_vec::<f64>()?;
        Ok(values.into_iter().map(f64::to_bits).collect())
    };
    arrays.iter().map(all).collect()
}

/// A block of a transformer: the sum is read by its norm, and added to what is made of that.
fn residual(x: &Array, y: &Array, weight: &Array) -> Result<[Array; 2]> {
    let sum = x.add(y)?;
    let normal = fast::rms_norm(&sum, Some(weight), 1e-5)?;
    Ok([sum, normal])
}

#[test]
fn a_residual_sum_is_written_while_its_norm_is_computed() -> Result<()> {
    own_process!();
    let rng = &mut Rng::new(1);
    let (rows, n) = (300, 96);
    let (x, y) = (numbers(&[rows, n], rng)?, numbers(&[rows, n], rng)?);
    let weight = numbers(&[n], rng)?;
    eval(&[&x, &y, &weight])?;
    reset_stats();
    reset_op_counts();
    let [sum, normal] = residual(&x, &y, &weight)?;
    let out = normal.add(&sum)?;
    drop((sum, normal));
    out.eval()?;
    let s = stats();
    assert_eq!((s.commands, s.fused, s.fused_operations), (2, 1, 2), "{s:?}");
    let tensor = (4 * rows * n) as u64;
    assert_eq!((s.bytes_read, s.bytes_written), (4 * tensor + 4 * n as u64, 3 * tensor), "{s:?}");
    let counts = op_counts();
    let count = |op: &str| counts.iter().filter(|c| c.op == op).map(|c| c.native).sum::<u64>();
    assert_eq!((count("rms_norm"), count("add")), (1, 2));
    Ok(())
}

#[test]
fn only_what_is_read_again_is_written() -> Result<()> {
    own_process!();
    let rng = &mut Rng::new(2);
    let (x, y) = (numbers(&[64, 32], rng)?, numbers(&[64, 32], rng)?);
    let (weight, bias) = (numbers(&[32], rng)?, numbers(&[32], rng)?);
    eval(&[&x, &y, &weight, &bias])?;
    let out = fast::layer_norm(&x.multiply(&y)?.exp()?, Some(&weight), Some(&bias), 1e-5)?;
    reset_stats();
    out.eval()?;
    let s = stats();
    assert_eq!((s.commands, s.bytes_written), (1, 4 * 64 * 32), "{s:?}");
    // By itself it is no program.
    let out = fast::layer_norm(&x, Some(&weight), Some(&bias), 1e-5)?;
    reset_stats();
    out.eval()?;
    assert_eq!((stats().commands, stats().fused), (1, 0));
    Ok(())
}

#[test]
fn the_sum_takes_the_memory_of_an_operand() -> Result<()> {
    own_process!();
    let bytes = 4 << 20;
    let shape = [bytes / 4 / 64, 64];
    let weight = Array::ones(&[64], Dtype::Float32)?;
    let (x, y) = (Array::full(&shape, 2.0f32)?, Array::full(&shape, 3.0f32)?);
    eval(&[&x, &y, &weight])?;
    memory::reset_peak();
    let before = memory::active();
    let [sum, normal] = residual(&x, &y, &weight)?;
    drop((x, y));
    eval(&[&sum, &normal])?;
    let more = memory::peak() - before;
    assert!(more <= bytes + (1 << 16), "{more} bytes more, {bytes} for the norm");
    assert!(sum.to_vec::<f32>()?.iter().all(|v| *v == 5.0));
    Ok(())
}

/// An operand of the shape: dense, turned around, one element or row for many, or a part of another.
fn operand(shape: &[usize], dtype: Dtype, rng: &mut Rng) -> Result<Array> {
    let array = match rng.below(5) {
        0 if shape.len() > 1 => {
            let turned: Vec<usize> = shape.iter().rev().copied().collect();
            numbers(&turned, rng)?.transpose()?
        }
        1 => {
            let one = |n: &usize| if rng.below(2) == 0 { 1 } else { *n };
            let sizes: Vec<usize> = shape.iter().map(one).collect();
            numbers(&sizes, rng)?.broadcast_to(shape)?
        }
        2 => {
            let more: Vec<usize> = shape.iter().map(|n| n + 1).collect();
            let ones = vec![1; shape.len()];
            let stops: Vec<isize> = more.iter().map(|n| *n as isize).collect();
            numbers(&more, rng)?.slice(&ones, &stops, &ones)?
        }
        _ => numbers(shape, rng)?,
    };
    Ok(array.astype(dtype))
}

/// Elementwise steps, a norm of the last one, and what reads both; some results are held.
fn graph(seed: u64) -> Result<Vec<Array>> {
    let rng = &mut Rng::new(seed);
    let dtypes = [Dtype::Float32, Dtype::Bfloat16, Dtype::Float16, Dtype::Float64];
    let dtype = dtypes[rng.below(4)];
    let mut shape: Vec<usize> = (0..1 + rng.below(4)).map(|_| 1 + rng.below(9)).collect();
    let last = shape.len() - 1;
    shape[last] = [1, 7, 32, 129, 1024, 2500][rng.below(6)];
    if rng.below(16) == 0 {
        shape[rng.below(last + 1)] = 0;
    }
    let mut values: Vec<Array> =
        (0..1 + rng.below(3)).map(|_| operand(&shape, dtype, rng)).collect::<Result<_>>()?;
    values.push(Array::scalar(Scalar::from_f64(dtype, 0.75)));
    for _ in 0..1 + rng.below(6) {
        let (a, b) = (&values[rng.below(values.len())], &values[rng.below(values.len())]);
        let made = match rng.below(6) {
            0 => a.abs()?.sqrt()?,
            1 => a.tanh()?,
            2 => a.multiply(b)?,
            3 => a.subtract(b)?,
            4 => a.astype(Dtype::Float32).add(b)?.astype(dtype),
            _ => a.add(b)?,
        };
        values.push(made);
    }
    let of = values[values.len() - 1].add(&values[0])?;
    let n = shape[last];
    let weight = match rng.below(4) {
        0 => None,
        1 => Some(Array::full(&[n], Scalar::from_f64(dtype, 0.75))?),
        _ => Some(operand(&[n], dtype, rng)?),
    };
    let bias = if rng.below(3) == 0 { None } else { Some(operand(&[n], dtype, rng)?) };
    let normal = match rng.below(2) {
        0 => fast::rms_norm(&of, weight.as_ref(), 1e-5)?,
        _ => fast::layer_norm(&of, weight.as_ref(), bias.as_ref(), 1e-5)?,
    };
    let after = normal.multiply(&values[1])?.add(&of)?;
    Ok(match rng.below(4) {
        0 => vec![normal],
        1 => vec![normal, of],
        2 => vec![after],
        _ => vec![after, of, values[values.len() - 1].clone(), normal],
    })
}

#[test]
fn norms_in_programs_give_the_bits_of_single_operations() -> Result<()> {
    own_process!();
    for seed in 0..300 {
        set_fusion(false);
        let apart = bits(&graph(seed)?)?;
        set_fusion(true);
        assert_eq!(bits(&graph(seed)?)?, apart, "graph {seed}");
    }
    Ok(())
}

#[test]
fn large_tensors_give_the_same_bits() -> Result<()> {
    own_process!();
    let rng = &mut Rng::new(9);
    for (rows, n) in [(4099, 513), (3, 70_001), (1, 300_000)] {
        let (x, y) = (numbers(&[rows, n], rng)?, numbers(&[rows, n], rng)?);
        let weight = numbers(&[n], rng)?;
        let apart = {
            set_fusion(false);
            bits(&residual(&x, &y, &weight)?)?
        };
        set_fusion(true);
        assert_eq!(bits(&residual(&x, &y, &weight)?)?, apart, "{rows} x {n}");
    }
    Ok(())
}
