//! ROPE.

use crate::compare::Expected;
use crate::dtype::Num;
use crate::reference::working;
use crate::tensor::Array;

/// The attributes of ROPE.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    pub pairs: i64,
    pub traditional: bool,
    pub inverse: bool,
}

/// ROPE of x, cosines and sines: of the shape of x.
pub fn rope(how: Rotation, inputs: &[Array]) -> Vec<Expected> {
    let (x, cos, sin) = (&inputs[0], &inputs[1], &inputs[2]);
    let working = working(x.dtype);
    let (pairs, last) = (how.pairs as usize, x.shape[x.shape.len() - 1] as usize);
    let mut expected: Vec<Expected> = x.values.iter().map(|x| Expected::exact(*x)).collect();
    // Products of float32 are exact in float64, and so are their sums but for what rounding to float32 forgets.
    let product = |a: f64, b: f64| working.round(a * b);
    for row in 0..x.values.len() / last {
        for i in 0..pairs {
            let (a, b) = if how.traditional { (2 * i, 2 * i + 1) } else { (i, pairs + i) };
            let (a, b) = (row * last + a, row * last + b);
            let (left, right) = (x.values[a].real(), x.values[b].real());
            let (c, s) = (cos.values[row * pairs + i].real(), sin.values[row * pairs + i].real());
            let s = if how.inverse { -s } else { s };
            let rotated =
                [product(left, c) - product(right, s), product(left, s) + product(right, c)];
            for (position, value) in [a, b].into_iter().zip(rotated) {
                expected[position] = Expected::exact(Num::Real(working.round(value)));
            }
        }
    }
    expected
}
