//! Operations that are one node on every device, and run as their composition where there is no kernel for them.

use ultramarine::fast::{layer_norm, rms_norm};
use ultramarine::transforms::{grad, value_and_grad};
use ultramarine::{Array, Dtype, Result, eval, op_counts, reset_op_counts, set_fusion, stats};
use ultramarine_test_support::own_process;

fn sample(shape: &[usize]) -> Array {
    let values: Vec<f32> =
        (0..shape.iter().product::<usize>()).map(|i| (i * i % 23) as f32 / 5.0 - 2.0).collect();
    Array::from_slice(&values, shape).unwrap()
}

/// Name, native runs and decomposed runs of each operation.
fn counts() -> Vec<(&'static str, u64, u64)> {
    let all = op_counts().into_iter();
    let mut all: Vec<_> = all.map(|c| (c.op, c.native, c.decomposed)).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_composition_counts_as_one_operation() -> Result<()> {
    own_process!();
    let x = sample(&[3, 8]);
    for fusion in [false, true] {
        set_fusion(fusion);
        reset_op_counts();
        eval(&[
            x.softmax(0, false)?,
            x.logsumexp(0)?,
            rms_norm(&x, None, 1e-5)?,
            layer_norm(&x, None, None, 1e-5)?,
        ])?;
        let counts = counts();
        for name in ["softmax", "logsumexp"] {
            assert!(counts.contains(&(name, 0, 1)), "{name} of {counts:?}");
        }
        for name in ["rms_norm", "layer_norm"] {
            assert!(counts.contains(&(name, 1, 0)), "{name} of {counts:?}");
        }
        assert!(
            counts.iter().all(|c| !["exp", "max", "sum", "divide"].contains(&c.0)),
            "{counts:?}"
        );
    }
    Ok(())
}

/// The last operation of a composition fuses with the operations that read it, the first ones with what they read.
#[test]
fn parts_fuse_with_their_neighbours() -> Result<()> {
    own_process!();
    let x = sample(&[64, 64]);
    let commands = |f: &dyn Fn() -> Result<Array>| -> Result<u64> {
        let before = stats().commands;
        f()?.eval()?;
        Ok(stats().commands - before)
    };
    let alone = commands(&|| x.softmax(0, false))?;
    let more = commands(&|| &(&x.exp()?.softmax(0, false)? * 3.0)? + 1.0)?;
    assert!(more <= alone + 1, "{more} commands, {alone} for softmax alone");
    let last = commands(&|| x.softmax(0, false)?.square())?;
    assert_eq!(last, alone, "the last part fuses with what reads it");
    Ok(())
}

/// Operands that a trace retains, a result that is read twice, and one that is evaluated inside of the traced function.
#[test]
fn traced_nodes_stay_what_they_are() -> Result<()> {
    let x = sample(&[4, 6]);
    let loss = |x: &Array| {
        let y = x.square()?.softmax(1, false)?;
        let z = rms_norm(&y, None, 1e-3)?;
        z.multiply(&y)?.multiply(x)?.sum(None)
    };
    let (value, slope) = value_and_grad(loss)(&x)?;
    assert_eq!(value.item::<f32>()?, loss(&x)?.item::<f32>()?);
    assert_eq!(slope.to_vec::<f32>()?, grad(loss)(&x)?.to_vec::<f32>()?);
    let h = 1e-2f32;
    for i in 0..24 {
        let moved = |by: f32| -> Result<f64> {
            let mut v = x.to_vec::<f32>()?;
            v[i] += by;
            Ok(f64::from(loss(&Array::from_slice(&v, &[4, 6])?)?.item::<f32>()?))
        };
        let central = (moved(h)? - moved(-h)?) / (2.0 * f64::from(h));
        let own = f64::from(slope.to_vec::<f32>()?[i]);
        assert!((central - own).abs() < 2e-2 * (1.0 + own.abs()), "{i}: {central} {own}");
    }
    Ok(())
}

#[test]
fn no_elements_and_no_axes() -> Result<()> {
    let empty = Array::zeros(&[0, 3], Dtype::Float32)?;
    assert!(rms_norm(&empty, None, 1e-5)?.to_vec::<f32>()?.is_empty());
    assert!(empty.softmax(1, true)?.to_vec::<f32>()?.is_empty());
    let one = sample(&[]);
    assert_eq!(one.softmax(None, false)?.to_vec::<f32>()?, [1.0]);
    assert_eq!(one.logsumexp(None)?.to_vec::<f32>()?, one.to_vec::<f32>()?);
    // Over no axis each element is all there is.
    assert_eq!(sample(&[2]).softmax([0; 0], false)?.to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}
