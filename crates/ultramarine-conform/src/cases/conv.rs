//! CONVOLVE and its gradients.

use super::{OpUnderTest, PRECISIONS, Scope, case};
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::reference::conv::Convolution;
use crate::tensor::{Array, Layout};
use crate::values::{Rng, ordinary};
use ultramarine_abi::precision;
use ultramarine_abi::schema::{ConvolveAttrs, OpId, op};

/// Shapes of input, weight and output.
type Shapes = [[i64; 5]; 3];

const PLAIN: Convolution = Convolution {
    flip: false,
    stride: [1; 3],
    low: [0; 3],
    kernel_dilation: [1; 3],
    input_dilation: [1; 3],
};

const CASES: [(&str, Shapes, Convolution); 15] = [
    ("one axis", [[2, 1, 1, 9, 3], [4, 1, 1, 3, 3], [2, 1, 1, 7, 4]], PLAIN),
    ("one tap", [[2, 1, 3, 4, 5], [6, 1, 1, 1, 5], [2, 1, 3, 4, 6]], PLAIN),
    (
        "two axes with padding",
        [[1, 1, 5, 6, 4], [3, 1, 3, 3, 4], [1, 1, 5, 6, 3]],
        Convolution { low: [0, 1, 1], ..PLAIN },
    ),
    (
        "three axes, strides and dilation",
        [[1, 4, 5, 7, 2], [2, 2, 3, 2, 2], [1, 2, 2, 3, 2]],
        Convolution { stride: [2, 1, 2], kernel_dilation: [1, 2, 3], ..PLAIN },
    ),
    (
        "groups",
        [[2, 1, 4, 4, 6], [9, 1, 2, 2, 2], [2, 1, 3, 3, 9]],
        Convolution { flip: true, ..PLAIN },
    ),
    ("depthwise", [[1, 1, 4, 5, 37], [37, 1, 3, 2, 1], [1, 1, 2, 4, 37]], PLAIN),
    (
        "input dilation",
        [[1, 1, 3, 4, 2], [3, 1, 3, 2, 2], [1, 1, 6, 9, 3]],
        Convolution { low: [0, 1, 2], input_dilation: [1, 2, 3], flip: true, ..PLAIN },
    ),
    (
        "negative padding, and outputs behind the input",
        [[1, 1, 1, 6, 2], [2, 1, 1, 2, 2], [1, 1, 1, 8, 2]],
        Convolution { low: [0, 0, -2], ..PLAIN },
    ),
    (
        "dilations and strides that share a factor",
        [[1, 1, 1, 5, 1], [2, 1, 1, 4, 1], [1, 1, 1, 5, 2]],
        Convolution {
            stride: [1, 1, 2],
            low: [0, 0, 3],
            kernel_dilation: [1, 1, 2],
            input_dilation: [1, 1, 4],
            ..PLAIN
        },
    ),
    (
        "outputs that no tap meets",
        [[1, 1, 1, 3, 2], [1, 1, 1, 1, 2], [1, 1, 1, 7, 1]],
        Convolution { input_dilation: [1, 1, 3], ..PLAIN },
    ),
    (
        "larger",
        [[1, 1, 9, 10, 24], [20, 1, 3, 3, 24], [1, 1, 9, 10, 20]],
        Convolution { low: [0, 1, 1], ..PLAIN },
    ),
    (
        "several tiles",
        [[2, 1, 9, 9, 40], [70, 1, 3, 3, 40], [2, 1, 9, 9, 70]],
        Convolution { low: [0, 1, 1], ..PLAIN },
    ),
    (
        "planes of taps and many channels",
        [[1, 3, 9, 11, 72], [12, 2, 3, 2, 72], [1, 3, 8, 12, 12]],
        Convolution { low: [1, 1, 1], kernel_dilation: [1, 1, 2], ..PLAIN },
    ),
    (
        "whole rows of 16 bytes, with strides",
        [[2, 1, 10, 9, 16], [24, 1, 3, 3, 16], [2, 1, 5, 5, 24]],
        Convolution { stride: [1, 2, 2], low: [0, 1, 1], ..PLAIN },
    ),
    (
        "depthwise in strips",
        [[2, 1, 6, 19, 40], [40, 1, 3, 5, 1], [2, 1, 5, 19, 40]],
        Convolution { low: [0, 1, 2], ..PLAIN },
    ),
];

/// Cases of CONVOLVE or of one of its gradients.
pub fn of(id: OpId, scope: &Scope) -> Vec<OpUnderTest> {
    let rng = &mut Rng::new(20);
    // The positions of the operands and of the result among input, weight and output.
    let places = match id {
        op::CONVOLVE_INPUT => [1, 2, 0],
        op::CONVOLVE_WEIGHT => [0, 2, 1],
        _ => [0, 1, 2],
    };
    let [first, second, result] = places;
    let mut cases = |dtype: DType, precision: u32, epsilon: f64| {
        let mut cases = Vec::new();
        for (i, (what, shapes, how)) in CASES.into_iter().enumerate() {
            for layout in scope.layouts(i) {
                // Broadcasting is only tested along a batch axis.
                if layout == Layout::Broadcast && shapes[0][0] == 1 {
                    continue;
                }
                let mut array = |shape: &[i64]| {
                    let n: i64 = shape.iter().product();
                    Array::cycle(dtype, shape, &ordinary(dtype, n as usize, rng))
                };
                let (a, b) = (array(&shapes[first]), array(&shapes[second]));
                let mut made = case(
                    format!(
                        "{what}: {how:?} of {:?} and {:?} {}",
                        shapes[first],
                        shapes[second],
                        layout.name()
                    ),
                    (id, words(&ConvolveAttrs::new(how.flip.into(), precision))),
                    vec![(a, layout), (b, layout)],
                    (dtype, shapes[result].to_vec()),
                    |arrays| how.of(places, [&arrays[0], &arrays[1]], &shapes, epsilon),
                );
                let lists = [how.stride, how.low, how.kernel_dilation, how.input_dilation];
                made.request.scalars = lists
                    .iter()
                    .flatten()
                    .map(|v| DType::I64.scalar(Num::Int((*v).into())))
                    .collect();
                cases.push(made);
            }
        }
        cases
    };
    let mut all = Vec::new();
    for dtype in scope.dtypes(id, None) {
        let cases = cases(dtype, precision::HIGHEST, scope.reduced(dtype));
        all.push(OpUnderTest::new(scope, id, None, dtype, cases));
    }
    for (name, precision, epsilon) in PRECISIONS {
        let cases = cases(DType::F32, precision, epsilon);
        all.push(OpUnderTest::in_precision(id, name, cases));
    }
    all
}
