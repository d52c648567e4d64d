//! What fusion promises: inputs read once, outputs written once, the same bits, and
//! no memory for what nobody holds.

use ultramarine::{
    Array, Dtype, KeepDims, Result, Scalar, eval, memory, reset_stats, set_fusion, stats,
};
use ultramarine_test_support::{Rng, own_process};

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    Rng::new(seed).uniforms(n, -1.0, 1.0).into_iter().map(|v| v as f32).collect()
}

fn constant(v: f64) -> Array {
    Array::scalar(Scalar::from_f64(Dtype::Float32, v))
}

/// `0.5 * x * (1 + y * exp(x)) + row`, as one writes it.
fn formula(x: &Array, y: &Array, row: &Array) -> Result<Array> {
    let inner = y.multiply(&x.exp()?)?.add(constant(1.0))?;
    constant(0.5).multiply(x)?.multiply(&inner)?.add(row)
}

fn run(f: impl Fn() -> Result<Array>, fused: bool) -> Result<Vec<u32>> {
    set_fusion(fused);
    let bits = f()?.to_vec::<f32>()?.iter().map(|v| v.to_bits()).collect();
    set_fusion(true);
    Ok(bits)
}

#[test]
fn a_chain_reads_inputs_once_and_writes_once() -> Result<()> {
    own_process!();
    let (rows, columns) = (257, 129);
    let n = rows * columns;
    let x = Array::from_slice(&numbers(n, 1), &[rows, columns])?;
    let y = Array::from_slice(&numbers(n, 2), &[rows, columns])?;
    let row = Array::from_slice(&numbers(columns, 3), &[columns])?;
    let out = formula(&x, &y, &row)?;
    reset_stats();
    out.eval()?;
    let s = stats();
    assert_eq!(s.commands, 1, "{s:?}");
    assert_eq!(s.bytes_read as usize, 4 * (2 * n + columns));
    assert_eq!(s.bytes_written as usize, 4 * n);
    Ok(())
}

#[test]
fn a_closing_reduction_writes_only_its_result() -> Result<()> {
    own_process!();
    let n = 300 * 70;
    let x = Array::from_slice(&numbers(n, 1), &[300, 70])?;
    let out = x.multiply(&x)?.exp()?.sum(1)?;
    reset_stats();
    out.eval()?;
    let s = stats();
    assert_eq!((s.commands, s.bytes_read, s.bytes_written), (1, 4 * n as u64, 4 * 300));
    Ok(())
}

#[test]
fn fused_equals_unfused_to_the_bit() -> Result<()> {
    own_process!();
    for (rows, columns) in [(1, 1), (3, 5), (64, 64), (129, 1031), (1, 5000), (5000, 1)] {
        let n = rows * columns;
        let x = Array::from_slice(&numbers(n, 4), &[rows, columns])?;
        let t = Array::from_slice(&numbers(n, 5), &[columns, rows])?;
        let row = Array::from_slice(&numbers(columns, 6), &[columns])?;
        let f = || formula(&x, &t.transpose_axes([1, 0])?, &row);
        assert_eq!(run(f, true)?, run(f, false)?, "{rows}x{columns}");
        for axes in [&[0][..], &[1], &[0, 1]] {
            let g = || f()?.sum(KeepDims(Some(axes)));
            assert_eq!(run(g, true)?, run(g, false)?, "sum over {axes:?} of {rows}x{columns}");
        }
        let h = || {
            f()?.astype(Dtype::Bfloat16)
                .add(row.astype(Dtype::Bfloat16))
                .map(|a| a.astype(Dtype::Float32))
        };
        assert_eq!(run(h, true)?, run(h, false)?, "through bfloat16 {rows}x{columns}");
    }
    Ok(())
}

#[test]
fn held_results_are_written() -> Result<()> {
    own_process!();
    let x = Array::from_slice(&numbers(1000, 1), &[1000])?;
    let middle = x.add(&x)?;
    let end = middle.multiply(&x)?;
    reset_stats();
    end.eval()?;
    let s = stats();
    assert_eq!((s.commands, s.bytes_read, s.bytes_written), (1, 4000, 8000), "{s:?}");
    assert!(middle.is_evaluated());
    assert_eq!(middle.to_vec::<f32>()?[7], 2.0 * x.to_vec::<f32>()?[7]);
    Ok(())
}

#[test]
fn a_value_for_two_programs_is_written_by_the_first() -> Result<()> {
    own_process!();
    let n = 32 * 32;
    let x = Array::from_slice(&numbers(n, 1), &[32, 32])?;
    let f = || {
        let shared = x.tanh()?;
        let first = shared.multiply(&x)?.add(constant(1.0))?;
        // Behind a product, as in the gradient of what is in front of it.
        first.matmul(&first)?.multiply(&shared)
    };
    let want = run(f, false)?;
    let out = f()?;
    reset_stats();
    out.eval()?;
    let s = stats();
    // One for both outputs, the product, and the last.
    assert_eq!(s.commands, 3, "{s:?}");
    let read = 4 * n as u64 * (1 + 2 + 2);
    assert_eq!((s.bytes_read, s.bytes_written), (read, 4 * n as u64 * 4), "{s:?}");
    assert_eq!(run(f, true)?, want);
    Ok(())
}

#[test]
fn small_results_come_last() -> Result<()> {
    own_process!();
    let x = Array::from_slice(&numbers(64 * 64, 1), &[64, 64])?;
    let rows: Vec<Array> =
        (0..6).map(|i| Array::from_slice(&numbers(64, i), &[64])).collect::<Result<_>>()?;
    let f = || {
        let (mut product, mut updated) = (x.clone(), Vec::new());
        for row in &rows {
            product = product.matmul(&x)?;
            // A view of the product, which a program that waits would keep.
            let (own, part) =
                (row.exp()?.multiply(row)?, product.slice(&[0, 0], &[1, 64], &[1, 1])?);
            updated.extend([own, part.add(row)?.tanh()?]);
        }
        updated.push(product);
        Ok::<_, ultramarine::Error>(updated)
    };
    set_fusion(false);
    let want = f()?;
    eval(&want)?;
    set_fusion(true);
    let got = f()?;
    eval(&got)?;
    for (got, want) in got.iter().zip(&want) {
        assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn a_shared_intermediate_of_an_unevaluated_array_survives() -> Result<()> {
    let x = Array::from_slice(&numbers(100, 1), &[100])?;
    let shared = x.add(&x)?;
    let (a, b) = (shared.exp()?, shared.multiply(&x)?);
    drop(shared);
    a.eval()?;
    let want: Vec<f32> = x.to_vec::<f32>()?.iter().map(|v| (v + v) * v).collect();
    assert_eq!(b.to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn softmax_writes_exp_while_it_is_summed() -> Result<()> {
    own_process!();
    let x = Array::from_slice(&numbers(64 * 50, 1), &[64, 50])?;
    let e = x.exp()?;
    let sum = e.sum(KeepDims(1))?;
    let out = e.multiply(&sum)?;
    drop(e);
    reset_stats();
    eval(&[out])?;
    assert_eq!(stats().commands, 2, "{:?}", stats());
    Ok(())
}

#[test]
fn long_chains_peak_at_three_buffers() -> Result<()> {
    own_process!();
    let bytes = 16 << 20;
    let x = Array::ones(&[bytes / 4], Dtype::Float32)?;
    x.eval()?;
    let y = Array::from_slice(&[0.5f32], &[1])?;
    for fused in [true, false] {
        set_fusion(fused);
        memory::reset_peak();
        let before = memory::active();
        let mut z = x.clone();
        for _ in 0..100 {
            z = z.multiply(&y)?.add(&x)?;
        }
        z.eval()?;
        let peak = memory::peak() - before;
        assert!(peak <= 2 * bytes + (1 << 20), "fused {fused}: {peak} bytes beside the input");
        set_fusion(true);
    }
    Ok(())
}

#[test]
fn constants_alone_can_be_reduced() -> Result<()> {
    let two = Array::full(&[3, 4], 2.0f32)?;
    assert_eq!(two.sum([0, 1])?.item::<f32>()?, 24.0);
    assert_eq!(two.exp()?.multiply(&two)?.sum(1)?.to_vec::<f32>()?.len(), 3);
    let nothing = Array::zeros(&[0, 4], Dtype::Float32)?;
    assert_eq!(nothing.exp()?.sum(0)?.to_vec::<f32>()?, [0.0; 4]);
    Ok(())
}

#[test]
fn a_constant_operand_is_not_written_out() -> Result<()> {
    own_process!();
    let x = Array::from_slice(&numbers(1000, 1), &[10, 100])?;
    let y = x.add(constant(1.0))?;
    reset_stats();
    y.eval()?;
    let s = stats();
    assert_eq!((s.commands, s.bytes_read, s.bytes_written), (1, 4000, 4000), "{s:?}");
    Ok(())
}

#[test]
fn outputs_larger_than_the_caches_are_bitwise_identical() -> Result<()> {
    own_process!();
    // Odd sizes: streamed stores have unaligned starts and ends, in every row.
    let (rows, columns) = (2237, 2503);
    let (a, b) = (numbers(rows * columns, 1), numbers(rows * columns, 2));
    let x = Array::from_slice(&a, &[rows, columns])?;
    let y = Array::from_slice(&b, &[rows, columns])?;
    let products = || constant(4.0).multiply(&x)?.add(&constant(2.0).multiply(&y)?);
    let want: Vec<u32> = a.iter().zip(&b).map(|(x, y)| (4.0 * x + 2.0 * y).to_bits()).collect();
    assert_eq!(run(products, true)?, want);
    assert_eq!(run(products, false)?, want);
    let row = Array::from_slice(&numbers(columns, 3), &[columns])?;
    let f = || formula(&x, &y, &row);
    assert_eq!(run(f, true)?, run(f, false)?);
    let want: Vec<u32> = a.iter().zip(&b).map(|(x, y)| (x - y).to_bits()).collect();
    assert_eq!(run(|| x.subtract(&y), true)?, want);
    Ok(())
}
