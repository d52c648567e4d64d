//! ATTENTION and its gradient by their definition, in float64, and how far results may be from it.

use super::near;
use crate::dtype::{DType, Num};
use crate::reference::working;
use crate::tensor::Array;

/// The attributes of an attention, and its scalar.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    pub causal: bool,
    pub scale: f64,
}

/// The operands that may be absent.
#[derive(Clone, Copy, Default)]
pub struct Extra<'a> {
    pub mask: Option<&'a Array>,
    pub sinks: Option<&'a Array>,
    pub lengths: Option<&'a Array>,
}

/// The results of one query over its keys.
struct Row {
    weights: Vec<f64>,
    masked: Vec<bool>,
    logsumexp: f64,
    /// The largest sum of magnitudes in a score. The score's error is relative to this sum.
    size: f64,
}

/// The epsilons by which a weight may be off, for scores of magnitude 0. Each unit of magnitude
/// allows 8 more.
const EPSILONS: f64 = 64.0;

fn sizes(a: &Array) -> [usize; 4] {
    [0, 1, 2, 3].map(|i| a.shape[i] as usize)
}

/// The vector of the last axis.
fn vector(a: &Array, b: usize, h: usize, i: usize) -> Vec<f64> {
    let [_, heads, rows, d] = sizes(a);
    let from = ((b * heads + h) * rows + i) * d;
    a.values[from..from + d].iter().map(|v| v.real()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(s, m), (x, y)| (s + x * y, m + (x * y).abs()))
}

impl Attention {
    fn row(&self, q: &Array, k: &Array, extra: Extra<'_>, [b, h, i]: [usize; 3]) -> Row {
        let [_, heads, m, _] = sizes(q);
        let [_, key_heads, n, _] = sizes(k);
        let lowest = -working(q.dtype).max_float();
        let length = extra.lengths.map_or(n as i64, |l| l.values[b].int() as i64);
        let query = vector(q, b, h, i);
        let mut size = 0.0f64;
        let (mut scores, mut masked) = (Vec::new(), Vec::new());
        for j in 0..n {
            let (product, magnitude) = dot(&query, &vector(k, b, h * key_heads / heads, j));
            size = size.max(magnitude * self.scale.abs());
            let mut score = product * self.scale;
            let end =
                if self.causal { length.min(i as i64 + length - m as i64 + 1) } else { length };
            let mut hidden = j as i64 >= end;
            if let Some(mask) = extra.mask {
                let value = mask.at(&[b as i64, h as i64, i as i64, j as i64]);
                if mask.dtype == DType::BOOL {
                    hidden |= !value.truth();
                } else {
                    score += value.real();
                    size =
                        if value.real().is_finite() { size.max(value.real().abs()) } else { size };
                    hidden |= score <= lowest;
                }
            }
            scores.push(if hidden { lowest } else { score });
            masked.push(hidden);
        }
        let sink = extra.sinks.map_or(f64::NEG_INFINITY, |s| s.values[b * heads + h].real());
        let top = scores.iter().copied().fold(sink, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let sum = weights.iter().sum::<f64>() + (sink - top).exp();
        let weights = weights.iter().map(|w| w / sum).collect();
        Row { weights, masked, logsumexp: top + sum.ln(), size }
    }

    /// Compares the results of the forward operation. Returns the largest error in epsilons.
    pub fn check(
        &self,
        [q, k, v]: [&Array; 3],
        extra: Extra<'_>,
        outputs: &[Array],
    ) -> Result<f64, String> {
        let [batches, heads, m, _] = sizes(q);
        let [_, key_heads, n, e] = sizes(v);
        let mut worst = Worst::new(q.dtype);
        for row in 0..batches * heads * m {
            let [b, h, i] = [row / m / heads, row / m % heads, row % m];
            let made = self.row(q, k, extra, [b, h, i]);
            let inner = working(q.dtype).epsilon() * (EPSILONS + 8.0 * made.size);
            let slack = inner * (1.0 + made.logsumexp.abs().min(1e3));
            let got = outputs[1].values[row].real();
            if made.masked.iter().all(|m| *m) && extra.sinks.is_none() {
                // The logarithm of the number of keys may be lost by rounding.
                let close = (got / made.logsumexp - 1.0).abs() < 1e-6;
                ensure!(close, "logarithm of a masked row {row}: {got}");
            } else {
                worst.see(&format!("logarithm of row {row}"), made.logsumexp, got, slack)?;
            }
            let mut sums = vec![(0.0, 0.0); e];
            for j in 0..n {
                for (sum, x) in sums.iter_mut().zip(vector(v, b, h * key_heads / heads, j)) {
                    *sum = (sum.0 + made.weights[j] * x, sum.1 + made.weights[j] * x.abs());
                }
            }
            for (c, (sum, size)) in sums.into_iter().enumerate() {
                let got = outputs[0].values[row * e + c].real();
                worst.see(
                    &format!("element {c} of row {row}"),
                    sum,
                    got,
                    worst.slack(inner, size),
                )?;
            }
        }
        Ok(worst.epsilons)
    }

    /// The logarithms, and delta: what the forward pass and a cotangent of the result give.
    pub fn logarithms(
        &self,
        [q, k, v]: [&Array; 3],
        extra: Extra<'_>,
        cotangent: &Array,
    ) -> [Array; 2] {
        let [batches, heads, m, _] = sizes(q);
        let [_, key_heads, n, _] = sizes(v);
        let (mut logarithms, mut deltas) = (Vec::new(), Vec::new());
        for row in 0..batches * heads * m {
            let [b, h, i] = [row / m / heads, row / m % heads, row % m];
            let made = self.row(q, k, extra, [b, h, i]);
            let ct = vector(cotangent, b, h, i);
            let delta: f64 = (0..n)
                .map(|j| made.weights[j] * dot(&ct, &vector(v, b, h * key_heads / heads, j)).0)
                .sum();
            logarithms.push(Num::Real(made.logsumexp));
            deltas.push(Num::Real(delta));
        }
        let dtype = working(q.dtype);
        [logarithms, deltas].map(|values| Array::cycle(dtype, &q.shape[..3], &values))
    }

    /// Compares the gradients. Returns the largest error in epsilons. The operands are those of the
    /// operation.
    pub fn check_gradient(
        &self,
        operands: &[Array],
        extra: Extra<'_>,
        outputs: &[Array],
    ) -> Result<f64, String> {
        let [q, k, v, cotangent, logarithms, deltas] = [0, 1, 2, 3, 4, 5].map(|i| &operands[i]);
        let [batches, heads, m, d] = sizes(q);
        let [_, key_heads, n, e] = sizes(v);
        let mut sums = [q, k, v].map(|a| vec![(0.0, 0.0); a.values.len()]);
        let mut add = |which: usize, at: usize, by: f64, size: f64, x: &[f64]| {
            for (sum, x) in sums[which][at..].iter_mut().zip(x) {
                *sum = (sum.0 + by * x, sum.1 + size * x.abs());
            }
        };
        let mut largest = 0.0f64;
        for row in 0..batches * heads * m {
            let [b, h, i] = [row / m / heads, row / m % heads, row % m];
            let made = self.row(q, k, extra, [b, h, i]);
            largest = largest.max(made.size);
            let (query, ct) = (vector(q, b, h, i), vector(cotangent, b, h, i));
            let delta = deltas.values[row].real();
            let whole = made.masked.iter().all(|m| *m);
            let logarithm = logarithms.values[row].real();
            for j in 0..n {
                let head = h * key_heads / heads;
                let key = (b * key_heads + head) * n + j;
                let (key_vector, value) = (vector(k, b, head, j), vector(v, b, head, j));
                // The sinks are in the logarithm.
                let weight = match (made.masked[j], whole && logarithm < -1e30) {
                    (_, true) => 1.0 / n as f64,
                    (true, false) => 0.0,
                    _ => (dot(&query, &key_vector).0 * self.scale
                        + self.added(extra, [b, h, i, j])
                        - logarithm)
                        .exp(),
                };
                add(2, key * e, weight, weight, &ct);
                if made.masked[j] {
                    continue;
                }
                let (product, size) = dot(&ct, &value);
                let slope = weight * (product - delta) * self.scale;
                let size = weight * (size + delta.abs()) * self.scale.abs();
                add(0, row * d, slope, size, &key_vector);
                add(1, key * d, slope, size, &query);
            }
        }
        let inner = working(q.dtype).epsilon() * (EPSILONS + 8.0 * largest);
        let mut worst = Worst::new(q.dtype);
        for (which, name) in ["queries", "keys", "values"].into_iter().enumerate() {
            for (at, (sum, size)) in sums[which].iter().enumerate() {
                let got = outputs[which].values[at].real();
                let what = format!("element {at} of the gradient by {name}");
                worst.see(&what, *sum, got, worst.slack(inner, *size))?;
            }
        }
        Ok(worst.epsilons)
    }

    /// The number that a mask adds to a score.
    fn added(&self, extra: Extra<'_>, at: [usize; 4]) -> f64 {
        let mask = extra.mask.filter(|mask| mask.dtype != DType::BOOL);
        mask.map_or(0.0, |mask| mask.at(&at.map(|i| i as i64)).real())
    }
}

/// The largest error so far, in epsilons.
struct Worst {
    dtype: DType,
    epsilons: f64,
}

impl Worst {
    fn new(dtype: DType) -> Worst {
        Worst { dtype, epsilons: 0.0 }
    }

    /// Returns the allowed error of a sum, given the relative error of its terms and the sum of
    /// their magnitudes. The weights of 16-bit floats may be rounded to 16 bits.
    fn slack(&self, inner: f64, size: f64) -> f64 {
        let rounded = if self.dtype.is_half() { 4.0 * self.dtype.epsilon() } else { 0.0 };
        (inner + rounded) * size + self.dtype.min_normal()
    }

    fn see(&mut self, what: &str, expected: f64, got: f64, slack: f64) -> Result<(), String> {
        self.epsilons = self.epsilons.max(near(what, got, expected, slack)? * EPSILONS);
        Ok(())
    }
}
