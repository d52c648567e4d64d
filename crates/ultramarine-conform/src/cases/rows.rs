//! SOFTMAX, LOGSUMEXP, RMS_NORM, LAYER_NORM and ROPE.

use super::{Case, Scope, Subject, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::{rows, working};
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{AxesAttrs, NoAttrs, OpId, RopeAttrs, op};

/// Shapes, and the axes that rows go over.
const ROWS: [(&[i64], u64); 9] = [
    (&[1000], 0b1),
    (&[5, 33], 0b10),
    (&[33, 5], 0b01),
    (&[3, 64], 0b10),
    (&[4, 7, 6], 0b101),
    (&[4, 7, 6], 0b010),
    (&[1, 9, 1], 0b111),
    (&[2, 3, 2, 5], 0b1100),
    (&[3, 4], 0),
];

/// Larger ones, for float32: rows of a few hundred elements, of thousands, and of more than fast memory holds.
const LONG_ROWS: [(&[i64], u64); 5] = [
    (&[7, 800], 0b10),
    (&[2, 6000], 0b10),
    (&[2, 40_004], 0b10),
    (&[70_001], 0b1),
    (&[900, 33], 0b01),
];

/// Values that `e^x` tells apart; in some cases NaN or infinities among them.
fn values(dtype: DType, n: usize, which: usize, rng: &mut Rng) -> Vec<Num> {
    let mut values = ordinary(dtype, n, rng);
    let rare: &[f64] = match which % 5 {
        1 => &[80.0, -80.0],
        2 => &[f64::NEG_INFINITY],
        3 => &[f64::NEG_INFINITY, f64::INFINITY],
        4 => &[f64::NAN],
        _ => &[],
    };
    for (i, x) in rare.iter().enumerate() {
        values[(3 * i + n / 2) % n] = Num::Real(dtype.round(*x));
    }
    values
}

fn of(
    scope: &Scope,
    family: OpId,
    make: impl Fn(u64, &Array) -> (Vec<i64>, Vec<crate::compare::Want>),
) -> Vec<Subject> {
    let rng = &mut Rng::new(31);
    let mut subject = |dtype: DType| {
        let long: &[_] = if dtype == DType::F32 { &LONG_ROWS } else { &[] };
        let mut cases: Vec<Case> = Vec::new();
        for (n, (shape, axes)) in ROWS.iter().chain(long).copied().enumerate() {
            for (k, layout) in scope.layouts(n).into_iter().enumerate() {
                let size: i64 = shape.iter().product();
                let values = values(dtype, size as usize, n + k, rng);
                let input = Array::cycle(dtype, shape, &values);
                let (out, _) = make(axes, &input);
                cases.push(case(
                    format!("axes {axes:#b} of {shape:?} {}", layout.name()),
                    (family, words(&AxesAttrs::new(0, axes))),
                    vec![(input, layout)],
                    (dtype, out),
                    |arrays| make(axes, &arrays[0]).1,
                ));
            }
        }
        // Rows of negative infinities alone.
        let input = Array::cycle(dtype, &[2, 5], &[Num::Real(f64::NEG_INFINITY)]);
        let (out, _) = make(0b10, &input);
        cases.push(case(
            "rows of -inf".into(),
            (family, words(&AxesAttrs::new(0, 0b10))),
            vec![(input, Layout::Contiguous)],
            (dtype, out),
            |arrays| make(0b10, &arrays[0]).1,
        ));
        Subject::new(scope, family, None, dtype, cases)
    };
    scope.dtypes(family, None).into_iter().map(&mut subject).collect()
}

/// SOFTMAX.
pub fn softmax(scope: &Scope) -> Vec<Subject> {
    of(scope, op::SOFTMAX, |axes, input| (input.shape.clone(), rows::softmax(axes, input)))
}

/// LOGSUMEXP.
pub fn logsumexp(scope: &Scope) -> Vec<Subject> {
    of(scope, op::LOGSUMEXP, rows::logsumexp)
}

/// Shapes of which the last axis is normalized.
const NORMS: [&[i64]; 8] =
    [&[1000], &[5, 33], &[33, 5], &[3, 64], &[4, 7, 6], &[6, 1], &[1, 9, 1], &[2, 3, 2, 5]];

/// Larger ones, for float32: rows as those of [`LONG_ROWS`].
const LONG_NORMS: [&[i64]; 5] = [&[7, 800], &[2, 6000], &[3, 6001], &[2, 40_004], &[900, 33]];

fn norm(scope: &Scope, family: OpId, parameters: usize) -> Vec<Subject> {
    let rng = &mut Rng::new(33);
    let mut subject = |dtype: DType| {
        let long: &[_] = if dtype == DType::F32 { &LONG_NORMS } else { &[] };
        let mut cases: Vec<Case> = Vec::new();
        for (n, shape) in NORMS.iter().chain(long).copied().enumerate() {
            let all = scope.layouts(n).into_iter().map(|layout| (layout, layout));
            let shared = (Layout::Contiguous, Layout::Broadcast);
            for (k, (layout, shares)) in all.chain([shared]).enumerate() {
                let size = shape.iter().product::<i64>() as usize;
                let eps = [1e-5, 0.5][(n + k) % 2];
                let mut values = ordinary(dtype, size, rng);
                if (n + k) % 4 == 3 {
                    values[size / 2] = Num::Real(f64::NAN);
                }
                let mut inputs = vec![(Array::cycle(dtype, shape, &values), layout)];
                for _ in 0..parameters {
                    let values = ordinary(dtype, size, rng);
                    inputs.push((Array::cycle(dtype, shape, &values), shares));
                }
                let mut made = case(
                    format!(
                        "of {shape:?} {}, parameters {}, epsilon {eps}",
                        layout.name(),
                        shares.name()
                    ),
                    (family, words(&NoAttrs::new())),
                    inputs,
                    (dtype, shape.to_vec()),
                    |arrays| rows::norm(eps, arrays),
                );
                made.request.scalars = vec![DType::F64.scalar(Num::Real(eps))];
                cases.push(made);
            }
        }
        Subject::new(scope, family, None, dtype, cases)
    };
    scope.dtypes(family, None).into_iter().map(&mut subject).collect()
}

/// RMS_NORM.
pub fn rms_norm(scope: &Scope) -> Vec<Subject> {
    norm(scope, op::RMS_NORM, 1)
}

/// LAYER_NORM.
pub fn layer_norm(scope: &Scope) -> Vec<Subject> {
    norm(scope, op::LAYER_NORM, 2)
}

/// Shapes, and how many pairs of the last axis are turned: all, some, of rows that packs fit into or not.
const ROPES: [(&[i64], i64); 11] = [
    (&[5, 64], 32),
    (&[3, 4, 6, 16], 8),
    (&[4, 6, 16], 8),
    (&[2, 3, 7], 3),
    (&[4, 5, 24], 6),
    (&[3, 2, 4, 20], 8),
    (&[1000], 500),
    (&[6, 33, 10], 5),
    (&[2, 1, 2], 1),
    (&[3, 1, 5], 1),
    (&[1, 9, 12], 6),
];

/// Larger ones, for float32.
const LONG_ROPES: [(&[i64], i64); 3] =
    [(&[8, 300, 128], 64), (&[7, 500, 40], 10), (&[6, 400, 33], 16)];

/// ROPE.
pub fn rope(scope: &Scope) -> Vec<Subject> {
    let rng = &mut Rng::new(35);
    let mut subject = |dtype: DType| {
        let long: &[_] = if dtype == DType::F32 { &LONG_ROPES } else { &[] };
        let mut cases: Vec<Case> = Vec::new();
        for (n, (shape, pairs)) in ROPES.iter().chain(long).copied().enumerate() {
            let all = scope.layouts(n).into_iter().map(|layout| (layout, layout));
            let shared = [Layout::Contiguous, Layout::Offset, Layout::Gaps]
                .map(|layout| (layout, Layout::Broadcast));
            for (k, (layout, shares)) in all.chain(shared).enumerate() {
                for traditional in [false, true] {
                    let how = rows::Turn { pairs, traditional, inverse: (n + k) % 2 == 1 };
                    cases.push(turned(dtype, shape, how, (layout, shares), rng));
                }
            }
        }
        Subject::new(scope, op::ROPE, None, dtype, cases)
    };
    scope.dtypes(op::ROPE, None).into_iter().map(&mut subject).collect()
}

fn turned(
    dtype: DType,
    shape: &[i64],
    how: rows::Turn,
    (layout, shares): (Layout, Layout),
    rng: &mut Rng,
) -> Case {
    let mut of_pairs = shape.to_vec();
    of_pairs[shape.len() - 1] = how.pairs;
    let mut array = |dtype: DType, shape: &[i64]| {
        let size = shape.iter().product::<i64>() as usize;
        Array::cycle(dtype, shape, &ordinary(dtype, size, rng))
    };
    let mut x = array(dtype, shape);
    if how.inverse {
        let middle = x.values.len() / 2;
        x.values[middle] = Num::Real(f64::NAN);
    }
    let tables = [0, 1].map(|_| (array(working(dtype), &of_pairs), shares));
    let attributes = RopeAttrs::new(how.pairs as u32, how.traditional.into(), how.inverse.into());
    case(
        format!("{how:?} of {shape:?} {}, angles {}", layout.name(), shares.name()),
        (op::ROPE, words(&attributes)),
        [(x, layout)].into_iter().chain(tables).collect(),
        (dtype, shape.to_vec()),
        |arrays| rows::rope(how, arrays),
    )
}
