//! RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT.

use crate::cases::{Case, Check, OpUnderTest, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::nn::norm_gradient as reference;
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, ordinary};
use ultramarine_abi::schema::{NormGradientAttrs, OpId, op};

/// Rows and their sizes.
const SHAPES: [[i64; 2]; 9] =
    [[3, 5], [1, 1], [4, 1], [2, 33], [7, 100], [1, 1000], [300, 3], [70, 512], [900, 33]];

/// Larger ones, for float32.
const LONG: [[i64; 2]; 4] = [[2, 5000], [3, 8192], [1, 40_000], [5000, 6]];

/// The cases of RMS_NORM_GRADIENT, or of LAYER_NORM_GRADIENT if it is `centered`.
pub fn norm_gradient(scope: &Scope, centered: bool) -> Vec<OpUnderTest> {
    let id = if centered { op::LAYER_NORM_GRADIENT } else { op::RMS_NORM_GRADIENT };
    let rng = &mut Rng::new(49);
    let mut of = |dtype: DType| {
        let long: &[_] = if dtype == DType::F32 { &LONG } else { &[] };
        let mut cases = Vec::new();
        for (n, shape) in SHAPES.iter().chain(long).enumerate() {
            for (k, layout) in scope.layouts(n).into_iter().enumerate() {
                if layout != Layout::Broadcast || shape[0] > 1 {
                    cases.push(one(id, *shape, dtype, layout, (n + k) % 4 != 3, rng));
                }
            }
        }
        OpUnderTest::new(scope, id, None, dtype, cases)
    };
    scope.dtypes(id, None).into_iter().map(&mut of).collect()
}

fn one(
    id: OpId,
    [rows, n]: [i64; 2],
    dtype: DType,
    layout: Layout,
    parameters: bool,
    rng: &mut Rng,
) -> Case {
    let centered = id == op::LAYER_NORM_GRADIENT;
    let eps = if n % 2 == 0 { 1e-3 } else { 0.5 };
    let mut operand = |shape: &[i64], layout| {
        let values = ordinary(dtype, shape.iter().product::<i64>() as usize, rng);
        (Array::cycle(dtype, shape, &values), layout)
    };
    // A weight has only one axis, so layouts that need two axes become contiguous.
    let along = if layout == Layout::Negative { layout } else { Layout::Contiguous };
    let inputs =
        vec![operand(&[rows, n], layout), operand(&[n], along), operand(&[rows, n], layout)];
    let wanted = if parameters { "all" } else { "x alone" };
    let mut made = case(
        format!("{rows} x {n} {}, by {wanted}, epsilon {eps}", layout.name()),
        (id, words(&NormGradientAttrs::new(parameters.into()))),
        inputs,
        (dtype, vec![rows, n]),
        |_| Vec::new(),
    );
    let more = if centered { 2 } else { 1 };
    made.request.more =
        (0..more).map(|_| Placed::output(dtype, &[n], Layout::Contiguous)).collect();
    made.request.scalars = vec![DType::F64.scalar(Num::Real(eps))];
    let check: Check = Box::new(move |inputs: &[Array], outputs: &[Array]| {
        reference::check(eps, centered, parameters, inputs, outputs)
    });
    made.check = Some(check);
    made
}
