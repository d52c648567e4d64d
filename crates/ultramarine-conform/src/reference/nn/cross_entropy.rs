//! CROSS_ENTROPY and its gradient by their definition, in float64, and how far results may be from it.

use super::near;
use super::softmax::{exponentials, top};
use crate::dtype::Num;
use crate::reference::working;
use crate::tensor::Array;

/// The error of one operation, in epsilons.
const EPSILONS: f64 = 8.0;

/// A row's logarithm, and the slack of one that is computed.
struct Row<'a> {
    logits: &'a [f64],
    /// The class of the target.
    target: usize,
    logarithm: f64,
    slack: f64,
}

fn reals(array: &Array) -> Vec<f64> {
    array.values.iter().map(|v| v.real()).collect()
}

/// Calls `f` with each row; without targets with class 0 of each.
fn rows(
    logits: &Array,
    targets: Option<&Array>,
    mut f: impl FnMut(usize, &Row<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let classes = logits.shape[1] as usize;
    let epsilon = working(logits.dtype).epsilon();
    for (i, values) in reals(logits).chunks(classes).enumerate() {
        let target = targets.map_or(0.0, |t| t.values[i].real());
        let counted = if target < 0.0 { target + classes as f64 } else { target };
        let top = top(values);
        let (total, error) = exponentials(logits.dtype, values, top);
        let logarithm = top + total.ln();
        let slack = error + epsilon * (EPSILONS * (1.0 + total.ln()) + top.abs() + logarithm.abs());
        f(
            i,
            &Row {
                logits: values,
                target: (counted.max(0.0) as usize).min(classes - 1),
                logarithm,
                slack,
            },
        )?;
    }
    Ok(())
}

/// The logarithms, as a gradient takes them.
pub fn logarithms(logits: &Array) -> Array {
    let mut all = Vec::new();
    let _ = rows(logits, None, |_, row| {
        all.push(Num::Real(row.logarithm));
        Ok(())
    });
    Array::cycle(working(logits.dtype), &[logits.shape[0]], &all)
}

/// Checks losses and logarithms.
pub fn check(inputs: &[Array], outputs: &[Array]) -> Result<f64, String> {
    let mut worst: f64 = 0.0;
    rows(&inputs[0], Some(&inputs[1]), |i, row| {
        let (loss, logarithm) = (outputs[0].values[i].real(), outputs[1].values[i].real());
        let expected = row.logarithm - row.logits[row.target];
        let rounding = 2.0 * working(inputs[0].dtype).epsilon() * expected.abs();
        let error = near(&format!("loss {i}"), loss, expected, row.slack + rounding)?;
        let of_sum = near(&format!("logarithm {i}"), logarithm, row.logarithm, row.slack)?;
        worst = worst.max(error).max(of_sum);
        Ok(())
    })?;
    Ok(worst * EPSILONS)
}

/// Checks a gradient from the logarithms that were given.
pub fn check_gradient(inputs: &[Array], output: &Array) -> Result<f64, String> {
    let [logits, targets, logarithms, cotangent] = inputs else {
        return Err("four operands expected".into());
    };
    let (classes, dtype) = (logits.shape[1] as usize, logits.dtype);
    let mut worst: f64 = 0.0;
    rows(logits, Some(targets), |i, row| {
        let (logarithm, cotangent) = (logarithms.values[i].real(), cotangent.values[i].real());
        for (j, x) in row.logits.iter().enumerate() {
            let weight = (x - logarithm).exp();
            let own = if j == row.target { 1.0 } else { 0.0 };
            let expected = cotangent * (weight - own);
            // Of the difference, which is rounded, of the function, and of the result.
            let shift = if weight > 0.0 { x.abs() + logarithm.abs() } else { 0.0 };
            let inner = working(dtype).epsilon() * (EPSILONS + shift) * (weight + own);
            let slack =
                cotangent.abs() * inner + dtype.epsilon() * expected.abs() + dtype.min_normal();
            let got = output.values[i * classes + j].real();
            worst = worst.max(near(&format!("row {i}, class {j}"), got, expected, slack)?);
        }
        Ok(())
    })?;
    Ok(worst * EPSILONS)
}
