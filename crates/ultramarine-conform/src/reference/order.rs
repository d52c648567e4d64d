//! Reductions, scans, extremes, sorts, matrix products.

use super::{elementwise::logaddexp, working};
use crate::compare::Want;
use crate::dtype::{DType, Kind, Num};
use crate::tensor::{Array, each_index};
use num_complex::Complex64;
use std::cmp::Ordering;
use ultramarine_abi::schema::{arg_reduce, reduce};

/// The values of an array along an axis, for each index of the others; `f` gets the
/// lane's index (0 along the axis) and its values.
pub fn lanes(array: &Array, axis: usize, mut f: impl FnMut(&[i64], &[Num])) {
    let mut kept = array.shape.clone();
    kept[axis] = 1;
    each_index(&kept, |index| {
        let mut at = index.to_vec();
        let lane: Vec<Num> = (0..array.shape[axis])
            .map(|i| {
                at[axis] = i;
                array.at(&at)
            })
            .collect();
        f(index, &lane);
    });
}

/// A floating sum of `n` terms whose magnitudes sum to `size`: whatever the order, within
/// the errors of a careless one. Those of a few equal terms may all have one sign; of many
/// terms they are asked to cancel.
pub(super) fn sum_slack(dtype: DType, n: usize, size: f64) -> f64 {
    let terms = if n <= 4096 { n as f64 / 2.0 } else { (n as f64).sqrt() } + 3.0;
    let own = if dtype.is_complex() { 2.0 } else { 1.0 };
    if n <= 1 { 0.0 } else { own * terms * working(dtype).epsilon() * size }
}

/// A floating sum whose terms have magnitudes that sum to `size`.
pub(super) fn sum(value: Num, slack: f64, size: f64) -> Want {
    Want { at: size, ..Want::near(value, slack) }
}

/// A reduction of values.
pub fn reduced(code: u32, dtype: DType, values: &[Num]) -> Want {
    let n = values.len();
    match code {
        reduce::ALL => return Want::exact(Num::Int(values.iter().all(|v| v.truth()).into())),
        reduce::ANY => return Want::exact(Num::Int(values.iter().any(|v| v.truth()).into())),
        reduce::MIN => return Want::exact(extreme(values, true)),
        reduce::MAX => return Want::exact(extreme(values, false)),
        _ => {}
    }
    let is_sum = code == reduce::SUM;
    match dtype.kind() {
        Kind::Float | Kind::Complex => {
            let parts = values.iter().map(|v| v.complex());
            let size: f64 = parts.clone().map(|z| z.norm()).sum();
            let (value, slack, size) = if code == reduce::LOGADDEXP && dtype.is_complex() {
                // Which branch the angle is on is nowhere said.
                return Want::ANY;
            } else if code == reduce::LOGADDEXP {
                let total = values.iter().fold(f64::NEG_INFINITY, |t, v| logaddexp(t, v.real()));
                (total.into(), 8.0 * sum_slack(dtype, n, 1.0 + total.abs()), 1.0)
            } else if is_sum {
                (parts.sum::<Complex64>(), sum_slack(dtype, n, size), size)
            } else {
                let product: Complex64 = parts.product();
                (product, sum_slack(dtype, n, n as f64 * product.norm()), product.norm())
            };
            let slack = if slack.is_finite() { slack } else { 0.0 };
            let value = match dtype.kind() {
                Kind::Complex => Num::Complex(value.re, value.im),
                // Complex arithmetic would turn infinities into NaN.
                _ if is_sum => Num::Real(values.iter().map(|v| v.real()).sum()),
                _ if code == reduce::PROD => Num::Real(values.iter().map(|v| v.real()).product()),
                _ => Num::Real(value.re),
            };
            sum(value, slack, size)
        }
        _ => Want::exact(Num::Int(values.iter().fold(i128::from(!is_sum), |total, v| {
            dtype.wrap(if is_sum { total + v.int() } else { total.wrapping_mul(v.int()) })
        }))),
    }
}

fn extreme(values: &[Num], smallest: bool) -> Num {
    let mut best = values[0];
    for v in values {
        if v.is_nan() {
            return *v;
        }
        let order = compare(*v, best);
        if order == if smallest { Ordering::Less } else { Ordering::Greater } {
            best = *v;
        }
    }
    best
}

/// The order of sorts: NaN last.
pub fn compare(a: Num, b: Num) -> Ordering {
    if let (Num::Int(a), Num::Int(b)) = (a, b) {
        return a.cmp(&b);
    }
    match (a.is_nan(), b.is_nan()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        _ => {}
    }
    let (a, b) = (a.complex(), b.complex());
    let parts = |x: f64, y: f64| x.partial_cmp(&y).unwrap_or(Ordering::Equal);
    parts(a.re, b.re).then(parts(a.im, b.im))
}

/// REDUCE: the output keeps reduced axes with size 1.
pub fn reduce(code: u32, axes: u64, input: &Array) -> (Vec<i64>, Vec<Want>) {
    let reduced_axis = |a: usize| axes >> a & 1 == 1;
    let shape: Vec<i64> =
        input.shape.iter().enumerate().map(|(a, n)| if reduced_axis(a) { 1 } else { *n }).collect();
    let inner: Vec<i64> =
        input.shape.iter().enumerate().map(|(a, n)| if reduced_axis(a) { *n } else { 1 }).collect();
    let mut wants = Vec::new();
    each_index(&shape, |kept| {
        let mut values = Vec::new();
        each_index(&inner, |along| {
            let at: Vec<i64> = kept.iter().zip(along).map(|(a, b)| a + b).collect();
            values.push(input.at(&at));
        });
        wants.push(reduced(code, input.dtype, &values));
    });
    (shape, wants)
}

/// Puts lanes of results, which come lane by lane, into row-major order.
fn by_lanes<T: Clone>(
    array: &Array,
    axis: usize,
    empty: T,
    f: impl Fn(&[Num]) -> Vec<T>,
) -> Vec<T> {
    let mut all = vec![empty; array.values.len()];
    let strides = crate::tensor::row_major(&array.shape);
    lanes(array, axis, |index, lane| {
        let start: i64 = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        for (i, result) in f(lane).into_iter().enumerate() {
            all[(start + i as i64 * strides[axis]) as usize] = result;
        }
    });
    all
}

/// What a scan starts from.
fn neutral(code: u32, dtype: DType) -> Num {
    let infinity = |sign: f64| Num::Real(sign * f64::INFINITY);
    match (code, dtype.kind()) {
        (reduce::SUM, _) => dtype.value(Num::Int(0)),
        (reduce::PROD, _) => dtype.value(Num::Int(1)),
        (reduce::MIN, Kind::Complex) => Num::Complex(f64::INFINITY, f64::INFINITY),
        (_, Kind::Complex) => Num::Complex(f64::NEG_INFINITY, f64::NEG_INFINITY),
        (reduce::MIN, Kind::Float) => infinity(1.0),
        (reduce::MIN, _) => Num::Int(dtype.range().1),
        (_, Kind::Float) => infinity(-1.0),
        _ => Num::Int(dtype.range().0),
    }
}

/// SCAN along an axis.
pub fn scan(code: u32, axis: usize, reverse: bool, inclusive: bool, input: &Array) -> Vec<Want> {
    let dtype = input.dtype;
    by_lanes(input, axis, Want::ANY, |lane| {
        let n = lane.len();
        (0..n)
            .map(|i| {
                let own = usize::from(inclusive);
                let part = if reverse { &lane[i + 1 - own..] } else { &lane[..i + own] };
                if part.is_empty() && dtype.is_complex() && code == reduce::LOGADDEXP {
                    return Want::ANY;
                }
                if part.is_empty() {
                    return Want::exact(neutral(code, dtype));
                }
                let mut want = reduced(code, dtype, part);
                if dtype.is_half() && matches!(code, reduce::SUM | reduce::PROD) {
                    // A scan may round the running value to the dtype at each element.
                    want.slack += part.len() as f64
                        * dtype.epsilon()
                        * part
                            .iter()
                            .map(|v| v.real().abs())
                            .sum::<f64>()
                            .max(want.value.real().abs());
                }
                want
            })
            .collect()
    })
}

/// ARG_REDUCE along an axis.
pub fn arg_reduce(code: u32, axis: usize, input: &Array) -> (Vec<i64>, Vec<Want>) {
    let mut shape = input.shape.clone();
    shape[axis] = 1;
    let mut wants = Vec::new();
    lanes(input, axis, |_, lane| {
        let best = extreme(lane, code == arg_reduce::ARGMIN);
        let first = lane.iter().position(|v| {
            if best.is_nan() { v.is_nan() } else { compare(*v, best) == Ordering::Equal }
        });
        wants.push(Want::exact(Num::Int(first.unwrap_or(0) as i128)));
    });
    (shape, wants)
}

/// SORT or ARG_SORT along an axis.
pub fn sort(axis: usize, indices: bool, input: &Array) -> Vec<Want> {
    by_lanes(input, axis, Want::ANY, |lane| {
        let mut order: Vec<usize> = (0..lane.len()).collect();
        order.sort_by(|a, b| compare(lane[*a], lane[*b]));
        order
            .into_iter()
            .map(|i| Want::exact(if indices { Num::Int(i as i128) } else { lane[i] }))
            .collect()
    })
}

/// PARTITION or ARG_PARTITION along an axis: the lanes of the output are those of the input in
/// another order, in which the element of rank `k` is the one of SORT, with none before it that is
/// larger and none behind it that is smaller.
pub fn partition(
    axis: usize,
    k: usize,
    indices: bool,
    inputs: &[Array],
    outputs: &[Array],
) -> Result<f64, String> {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    lanes(&inputs[0], axis, |index, lane| from.push((index.to_vec(), lane.to_vec())));
    lanes(&outputs[0], axis, |_, lane| to.push(lane.to_vec()));
    for ((index, lane), got) in from.into_iter().zip(to) {
        let found = if indices { taken(&lane, &got)? } else { got };
        let wrong = |place: usize, why: &str| {
            Err(format!("along axis {axis} at {index:?}: {} at place {place} {why}", found[place]))
        };
        let sorted = in_order(&lane);
        if let Some(place) = (0..k).find(|i| compare(found[*i], found[k]).is_gt()) {
            return wrong(place, "is larger than the element of the rank");
        }
        if let Some(place) = (k + 1..found.len()).find(|i| compare(found[*i], found[k]).is_lt()) {
            return wrong(place, "is smaller than the element of the rank");
        }
        if !compare(found[k], sorted[k]).is_eq() {
            return wrong(k, &format!("has the rank of {}", sorted[k]));
        }
        let again = in_order(&found);
        if (0..sorted.len()).any(|i| !compare(again[i], sorted[i]).is_eq()) {
            return Err(format!("along axis {axis} at {index:?}: elements are lost"));
        }
    }
    Ok(0.0)
}

fn in_order(lane: &[Num]) -> Vec<Num> {
    let mut sorted = lane.to_vec();
    sorted.sort_by(|a, b| compare(*a, *b));
    sorted
}

/// The elements at indices, each of which has to be there once.
fn taken(lane: &[Num], indices: &[Num]) -> Result<Vec<Num>, String> {
    let mut left = vec![true; lane.len()];
    let take = |index: &Num| {
        let place = usize::try_from(index.int()).unwrap_or(usize::MAX);
        match left.get_mut(place) {
            Some(first) if *first => *first = false,
            Some(_) => return Err(format!("index {place} comes twice")),
            None => return Err(format!("index {place} of an axis of {}", lane.len())),
        }
        Ok(lane[place])
    };
    indices.iter().map(take).collect()
}

/// MATMUL. `reduced` is the precision of the products: 0, or an epsilon.
pub fn matmul(a: &Array, b: &Array, reduced: f64) -> (Vec<i64>, Vec<Want>) {
    let dtype = a.dtype;
    let rank = a.shape.len();
    let k = a.shape[rank - 1];
    let mut shape = a.shape.clone();
    shape[rank - 1] = b.shape[rank - 1];
    let mut wants = Vec::new();
    each_index(&shape, |index| {
        let (mut left, mut right) = (index.to_vec(), index.to_vec());
        let mut total = Complex64::new(0.0, 0.0);
        let (mut size, mut whole) = (0.0, 0i128);
        for i in 0..k {
            left[rank - 1] = i;
            right[rank - 2] = i;
            let (x, y) = (a.at(&left), b.at(&right));
            if dtype.is_int() {
                whole = dtype.wrap(whole.wrapping_add(x.int().wrapping_mul(y.int())));
            } else {
                let product = x.complex() * y.complex();
                size += product.norm();
                total += product;
            }
        }
        let slack = sum_slack(dtype, k as usize + 1, size) + reduced * size;
        wants.push(match dtype.kind() {
            Kind::Complex => sum(Num::Complex(total.re, total.im), slack, size),
            Kind::Float => sum(Num::Real(total.re), slack, size),
            _ => Want::exact(Num::Int(whole)),
        });
    });
    (shape, wants)
}

/// ARANGE.
pub fn arange(dtype: DType, n: i64, start: Num, step: Num) -> Vec<Want> {
    (0..n)
        .map(|i| match (start, step) {
            (Num::Int(a), Num::Int(b)) => Want::exact(Num::Int(dtype.wrap(a + i128::from(i) * b))),
            _ => {
                let (a, b) = (start.real(), step.real() * i as f64);
                super::want(2.0, dtype, Num::Real(a + b), a.abs().max(b.abs()).max((a + b).abs()))
            }
        })
        .collect()
}
