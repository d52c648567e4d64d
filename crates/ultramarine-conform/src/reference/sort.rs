//! SORT, ARG_SORT, PARTITION, ARG_PARTITION, SEARCHSORTED.

use super::lanes::{by_lanes, lanes};
use crate::compare::Expected;
use crate::dtype::Num;
use crate::tensor::Array;
use std::cmp::Ordering;

/// The order of sorts, in which NaN is last.
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

/// SORT or ARG_SORT along an axis.
pub fn sort(axis: usize, indices: bool, input: &Array) -> Vec<Expected> {
    by_lanes(input, axis, Expected::ANY, |lane| {
        let mut order: Vec<usize> = (0..lane.len()).collect();
        order.sort_by(|a, b| compare(lane[*a], lane[*b]));
        order
            .into_iter()
            .map(|i| Expected::exact(if indices { Num::Int(i as i128) } else { lane[i] }))
            .collect()
    })
}

/// Checks PARTITION or ARG_PARTITION along an axis. Each lane of the output has the input lane's
/// elements in another order. The element of rank `k` is the one that SORT puts there; no element
/// before it is larger, and none after it is smaller.
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

/// Returns the elements at indices. Each index has to occur once.
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

/// SEARCHSORTED: returns how many elements of a value's sorted row come before the value.
pub fn searchsorted(right: bool, rows: &Array, values: &Array) -> Vec<Expected> {
    let length = rows.shape[rows.shape.len() - 1] as usize;
    let each = values.values.len() * length / rows.values.len();
    let count = |(i, value): (usize, &Num)| {
        let row = &rows.values[i / each * length..][..length];
        let before = |element: &Num| match compare(*element, *value) {
            Ordering::Less => true,
            Ordering::Equal => right,
            Ordering::Greater => false,
        };
        Expected::exact(Num::Int(row.partition_point(before) as i128))
    };
    values.values.iter().enumerate().map(count).collect()
}
