//! Layers of neural networks: attention, cross entropy, softmax, norms, rotary embeddings.

pub mod attention;
pub mod cross_entropy;
pub mod norm;
pub mod norm_gradient;
pub mod rope;
pub mod softmax;

use crate::tensor::{Array, each_index, row_major};

/// Returns the shape with size 1 along the reduced axes if `kept`, and along the other axes if not.
fn part(shape: &[i64], axes: u64, kept: bool) -> Vec<i64> {
    let keeps = |i: usize| (axes >> i & 1 == 0) == kept;
    shape.iter().enumerate().map(|(i, n)| if keeps(i) { *n } else { 1 }).collect()
}

/// Calls `f` with each row, which goes over `axes`: its values and their row-major positions.
fn rows(input: &Array, axes: u64, mut f: impl FnMut(&[f64], &[usize])) {
    let strides = row_major(&input.shape);
    each_index(&part(&input.shape, axes, true), |kept| {
        let (mut values, mut positions) = (Vec::new(), Vec::new());
        each_index(&part(&input.shape, axes, false), |along| {
            let at: Vec<i64> = kept.iter().zip(along).map(|(a, b)| a + b).collect();
            values.push(input.at(&at).real());
            positions.push(at.iter().zip(&strides).map(|(i, s)| i * s).sum::<i64>() as usize);
        });
        f(&values, &positions);
    });
}

/// Compares a number with its expected value. Returns the error as a fraction of the allowed error.
fn near(what: &str, got: f64, expected: f64, slack: f64) -> Result<f64, String> {
    let error = (got - expected).abs();
    if error.is_nan() || error > slack {
        return Err(format!("{what}: {got}, not {expected} (within {slack:e})"));
    }
    Ok(error / slack)
}
