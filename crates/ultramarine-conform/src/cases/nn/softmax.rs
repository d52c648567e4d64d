//! SOFTMAX and LOGSUMEXP.

use crate::cases::{Case, OpUnderTest, Scope, case};
use crate::compare::Expected;
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::nn::softmax as reference;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{AxesAttrs, OpId, op};

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

/// Values with clearly different `e^x`. Some cases also have NaN or infinities.
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

/// The cases of an op over axes; `make` gives the result's shape and values.
fn over_axes(
    scope: &Scope,
    family: OpId,
    make: impl Fn(u64, &Array) -> (Vec<i64>, Vec<Expected>),
) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(31);
    let mut under_test = |dtype: DType| {
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
        OpUnderTest::new(scope, family, None, dtype, cases)
    };
    scope.dtypes(family, None).into_iter().map(&mut under_test).collect()
}

/// SOFTMAX.
pub fn softmax(scope: &Scope) -> Vec<OpUnderTest> {
    over_axes(scope, op::SOFTMAX, |axes, input| {
        (input.shape.clone(), reference::softmax(axes, input))
    })
}

/// LOGSUMEXP.
pub fn logsumexp(scope: &Scope) -> Vec<OpUnderTest> {
    over_axes(scope, op::LOGSUMEXP, reference::logsumexp)
}
