//! ARG_REDUCE.

use super::{lanes::lanes, reduce::extreme, sort::compare};
use crate::compare::Expected;
use crate::dtype::Num;
use crate::tensor::Array;
use std::cmp::Ordering;
use ultramarine_abi::schema::arg_reduce;

/// ARG_REDUCE along an axis.
pub fn arg_reduce(code: u32, axis: usize, input: &Array) -> (Vec<i64>, Vec<Expected>) {
    let mut shape = input.shape.clone();
    shape[axis] = 1;
    let mut expected = Vec::new();
    lanes(input, axis, |_, lane| {
        let best = extreme(lane, code == arg_reduce::ARGMIN);
        let first = lane.iter().position(|v| {
            if best.is_nan() { v.is_nan() } else { compare(*v, best) == Ordering::Equal }
        });
        expected.push(Expected::exact(Num::Int(first.unwrap_or(0) as i128)));
    });
    (shape, expected)
}
