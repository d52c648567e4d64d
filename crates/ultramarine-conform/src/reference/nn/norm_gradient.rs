//! RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT by their definition, in float64, and how far results may be from it.

use super::near;
use crate::dtype::DType;
use crate::reference::{reduce::sum_slack, working};
use crate::tensor::Array;

/// The error of a few operations, in epsilons.
const EPSILONS: f64 = 8.0;

/// A computed value, and its possible distance from the exact one.
#[derive(Clone, Copy, Default)]
struct Near {
    value: f64,
    slack: f64,
}

/// The mean of values, by a sum in the dtype.
fn mean(dtype: DType, values: &[Near]) -> Near {
    let n = values.len() as f64;
    let size = values.iter().map(|x| x.value.abs()).sum::<f64>();
    let own = values.iter().map(|x| x.slack).sum::<f64>();
    let slack =
        sum_slack(dtype, values.len(), size) + own + EPSILONS * working(dtype).epsilon() * size;
    Near { value: values.iter().map(|x| x.value).sum::<f64>() / n, slack: slack / n }
}

/// Checks the gradients by x and, unless they are unwanted, by weight and bias.
pub fn check(
    eps: f64,
    centered: bool,
    parameters: bool,
    inputs: &[Array],
    outputs: &[Array],
) -> Result<f64, String> {
    let [x, weight, cotangent] = inputs else { return Err("three operands expected".into()) };
    let (n, dtype) = (x.shape[1] as usize, x.dtype);
    let (rows, epsilon) = (x.shape[0] as usize, working(dtype).epsilon());
    let real = |a: &Array, i: usize| a.values[i].real();
    let (mut by_weight, mut by_bias) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    let mut worst: f64 = 0.0;
    for row in 0..rows {
        let at = |i: usize| row * n + i;
        let exact = |value: f64| Near { value, slack: 0.0 };
        let values: Vec<Near> = (0..n).map(|i| exact(real(x, at(i)))).collect();
        let middle = if centered { mean(dtype, &values) } else { Near::default() };
        let distances: Vec<Near> = values
            .iter()
            .map(|x| Near {
                value: x.value - middle.value,
                slack: middle.slack + if centered { epsilon * x.value.abs() } else { 0.0 },
            })
            .collect();
        let squares: Vec<Near> = distances
            .iter()
            .map(|d| Near {
                value: d.value * d.value,
                slack: (2.0 * d.value.abs() + d.slack) * d.slack,
            })
            .collect();
        let variance = mean(dtype, &squares);
        let scale = 1.0 / (variance.value + eps).sqrt();
        // Relative to the scale.
        let apart = variance.slack / (variance.value + eps) + EPSILONS * epsilon;
        let normal: Vec<Near> = distances
            .iter()
            .map(|d| Near {
                value: d.value * scale,
                slack: (d.slack + d.value.abs() * apart) * scale * (1.0 + apart),
            })
            .collect();
        let product = |a: Near, b: Near| Near {
            value: a.value * b.value,
            slack: a.slack * b.value.abs()
                + b.slack * (a.value.abs() + a.slack)
                + epsilon * (a.value * b.value).abs(),
        };
        let slopes: Vec<Near> = (0..n)
            .map(|i| product(exact(real(cotangent, at(i))), exact(real(weight, i))))
            .collect();
        let direct = if centered { mean(dtype, &slopes) } else { Near::default() };
        let pairs: Vec<Near> = slopes.iter().zip(&normal).map(|(t, y)| product(*t, *y)).collect();
        let along = mean(dtype, &pairs);
        for i in 0..n {
            let turned = product(normal[i], along);
            let value = slopes[i].value - direct.value - turned.value;
            let size = slopes[i].value.abs() + direct.value.abs() + turned.value.abs();
            let inner = slopes[i].slack + direct.slack + turned.slack + EPSILONS * epsilon * size;
            let expected = value * scale;
            let slack = (inner + value.abs() * apart) * scale * (1.0 + apart)
                + dtype.epsilon() * expected.abs()
                + dtype.min_normal();
            let got = real(&outputs[0], at(i));
            worst = worst.max(near(&format!("row {row}, column {i}"), got, expected, slack)?);
            let of = exact(real(cotangent, at(i)));
            by_weight[i].push(product(of, normal[i]));
            by_bias[i].push(of);
        }
    }
    if parameters {
        let sums = [("weight", by_weight), ("bias", by_bias)];
        for ((what, sums), output) in sums.into_iter().zip(&outputs[1..]) {
            for (i, terms) in sums.iter().enumerate() {
                let of = mean(dtype, terms);
                let (expected, slack) = (of.value * rows as f64, of.slack * rows as f64);
                let slack = slack + dtype.epsilon() * expected.abs() + dtype.min_normal();
                worst = worst.max(near(&format!("{what} {i}"), real(output, i), expected, slack)?);
            }
        }
    }
    Ok(worst * EPSILONS)
}
