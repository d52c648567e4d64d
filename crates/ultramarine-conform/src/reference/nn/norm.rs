//! RMS_NORM and LAYER_NORM.

use super::rows;
use crate::compare::Expected;
use crate::dtype::Num;
use crate::reference::{reduce::sum_slack, working};
use crate::tensor::Array;

/// RMS_NORM of x and a weight; LAYER_NORM of x, a weight and a bias. Of their shape.
pub fn norm(eps: f64, inputs: &[Array]) -> Vec<Expected> {
    let (input, weight) = (&inputs[0], &inputs[1].values);
    let bias = inputs.get(2).map(|bias| &bias.values);
    let mut expected = vec![Expected::ANY; input.values.len()];
    let epsilon = working(input.dtype).epsilon();
    rows(input, 1 << (input.shape.len() - 1), |values, positions| {
        let mean = |f: &dyn Fn(f64) -> f64| {
            values.iter().map(|x| f(*x)).sum::<f64>() / values.len() as f64
        };
        let off = if bias.is_some() { mean(&|x| x) } else { 0.0 };
        let scale = (mean(&|x| (x - off) * (x - off)) + eps).sqrt();
        let error = sum_slack(input.dtype, values.len(), 1.0);
        // That of the mean, which every distance has.
        let shift = match bias {
            Some(_) => mean(&f64::abs) * (error + 2.0 * epsilon),
            None => 0.0,
        };
        for (x, position) in values.iter().zip(positions) {
            let (w, b) = (weight[*position].real(), bias.map_or(0.0, |b| b[*position].real()));
            let product = (x - off) / scale * w;
            let own = product.abs() * (error + 6.0 * epsilon);
            let moved = (shift + x.abs() * epsilon) / scale * w.abs() * (1.0 + error);
            let moved = if bias.is_some() { moved } else { 0.0 };
            let slack = own + moved + epsilon * (product + b).abs();
            let slack = if slack.is_finite() { slack } else { 0.0 };
            let at = product.abs().max(b.abs());
            expected[*position] = Expected { at, ..Expected::near(Num::Real(product + b), slack) };
        }
    });
    expected
}
