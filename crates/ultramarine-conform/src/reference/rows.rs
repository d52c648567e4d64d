//! SOFTMAX, LOGSUMEXP, RMS_NORM, LAYER_NORM and ROPE: what is computed of rows.

use super::{order::sum_slack, working};
use crate::compare::Want;
use crate::dtype::{DType, Num};
use crate::tensor::{Array, each_index, row_major};

/// Reduced axes with size 1, or the others so.
fn part(shape: &[i64], axes: u64, kept: bool) -> Vec<i64> {
    let keeps = |i: usize| (axes >> i & 1 == 0) == kept;
    shape.iter().enumerate().map(|(i, n)| if keeps(i) { *n } else { 1 }).collect()
}

/// Calls `f` with each row, which goes over `axes`: its values and their places in row-major order.
fn rows(input: &Array, axes: u64, mut f: impl FnMut(&[f64], &[usize])) {
    let strides = row_major(&input.shape);
    each_index(&part(&input.shape, axes, true), |kept| {
        let (mut values, mut places) = (Vec::new(), Vec::new());
        each_index(&part(&input.shape, axes, false), |along| {
            let at: Vec<i64> = kept.iter().zip(along).map(|(a, b)| a + b).collect();
            values.push(input.at(&at).real());
            places.push(at.iter().zip(&strides).map(|(i, s)| i * s).sum::<i64>() as usize);
        });
        f(&values, &places);
    });
}

/// The largest value, NaN if there is one.
fn top(values: &[f64]) -> f64 {
    let larger = |a: f64, b: &f64| if a.is_nan() || *b <= a { a } else { *b };
    values.iter().fold(f64::NEG_INFINITY, larger)
}

/// The sum of the exponentials, and its error relative to it: of `x - m`, which is rounded, of
/// the function and of the sum. What is too small to matter has no part in it.
fn exponentials(dtype: DType, values: &[f64], top: f64) -> (f64, f64) {
    let total: f64 = values.iter().map(|x| (x - top).exp()).sum();
    let shifted = values.iter().map(|x| ((x - top).abs() * (x - top).exp()) / total);
    let shift: f64 = shifted.filter(|x| x.is_finite()).sum();
    let epsilon = working(dtype).epsilon();
    (total, sum_slack(dtype, values.len(), 1.0) + epsilon * (4.0 + shift))
}

/// SOFTMAX: one value for each of the input.
pub fn softmax(axes: u64, input: &Array) -> Vec<Want> {
    let mut wants = vec![Want::ANY; input.values.len()];
    let dtype = input.dtype;
    rows(input, axes, |values, places| {
        let top = top(values);
        let (total, error) = exponentials(dtype, values, top);
        for (x, place) in values.iter().zip(places) {
            let value = (x - top).exp() / total;
            let own = working(dtype).epsilon() * (6.0 + (x - top).abs());
            // Below the normal numbers what is small is rounded away.
            let slack = value * (error + own) + working(dtype).ulp(0.0) * 2.0;
            let slack = if slack.is_finite() { slack } else { 0.0 };
            wants[*place] = Want { at: value, ..Want::near(Num::Real(value), slack) };
        }
    });
    wants
}

/// LOGSUMEXP: the output's shape, and one value for each row.
pub fn logsumexp(axes: u64, input: &Array) -> (Vec<i64>, Vec<Want>) {
    let mut wants = Vec::new();
    let dtype = input.dtype;
    rows(input, axes, |values, _| {
        let top = top(values);
        if !top.is_finite() {
            return wants.push(Want::exact(Num::Real(top)));
        }
        let (total, error) = exponentials(dtype, values, top);
        let value = top + total.ln();
        let epsilon = working(dtype).epsilon();
        let slack = error + epsilon * (4.0 * total.ln() + top.abs() + value.abs());
        wants.push(Want { at: top.abs().max(value.abs()), ..Want::near(Num::Real(value), slack) });
    });
    (part(&input.shape, axes, true), wants)
}

/// RMS_NORM of x and a weight; LAYER_NORM of x, a weight and a bias. Of their shape.
pub fn norm(eps: f64, inputs: &[Array]) -> Vec<Want> {
    let (input, weight) = (&inputs[0], &inputs[1].values);
    let bias = inputs.get(2).map(|bias| &bias.values);
    let mut wants = vec![Want::ANY; input.values.len()];
    let epsilon = working(input.dtype).epsilon();
    rows(input, 1 << (input.shape.len() - 1), |values, places| {
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
        for (x, place) in values.iter().zip(places) {
            let (w, b) = (weight[*place].real(), bias.map_or(0.0, |b| b[*place].real()));
            let product = (x - off) / scale * w;
            let own = product.abs() * (error + 6.0 * epsilon);
            let moved = (shift + x.abs() * epsilon) / scale * w.abs() * (1.0 + error);
            let moved = if bias.is_some() { moved } else { 0.0 };
            let slack = own + moved + epsilon * (product + b).abs();
            let slack = if slack.is_finite() { slack } else { 0.0 };
            let at = product.abs().max(b.abs());
            wants[*place] = Want { at, ..Want::near(Num::Real(product + b), slack) };
        }
    });
    wants
}

/// The attributes of ROPE.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub pairs: i64,
    pub traditional: bool,
    pub inverse: bool,
}

/// ROPE of x, cosines and sines: of the shape of x.
pub fn rope(how: Turn, inputs: &[Array]) -> Vec<Want> {
    let (x, cos, sin) = (&inputs[0], &inputs[1], &inputs[2]);
    let working = working(x.dtype);
    let (pairs, last) = (how.pairs as usize, x.shape[x.shape.len() - 1] as usize);
    let mut wants: Vec<Want> = x.values.iter().map(|x| Want::exact(*x)).collect();
    // Products of float32 are exact in float64, and so are their sums but for what rounding to float32 forgets.
    let product = |a: f64, b: f64| working.round(a * b);
    for row in 0..x.values.len() / last {
        for i in 0..pairs {
            let (a, b) = if how.traditional { (2 * i, 2 * i + 1) } else { (i, pairs + i) };
            let (a, b) = (row * last + a, row * last + b);
            let (left, right) = (x.values[a].real(), x.values[b].real());
            let (c, s) = (cos.values[row * pairs + i].real(), sin.values[row * pairs + i].real());
            let s = if how.inverse { -s } else { s };
            let turned =
                [product(left, c) - product(right, s), product(left, s) + product(right, c)];
            for (place, value) in [a, b].into_iter().zip(turned) {
                wants[place] = Want::exact(Num::Real(working.round(value)));
            }
        }
    }
    wants
}
