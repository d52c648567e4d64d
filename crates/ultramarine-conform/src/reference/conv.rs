//! CONVOLVE, by its definition.

use super::reduce::{sum, sum_slack};
use crate::compare::Expected;
use crate::dtype::Num;
use crate::tensor::{Array, each_index};

/// The attributes and scalars of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    pub flip: bool,
    pub stride: [i64; 3],
    /// Zeros before the first element.
    pub low: [i64; 3],
    pub kernel_dilation: [i64; 3],
    pub input_dilation: [i64; 3],
}

impl Convolution {
    /// The element of the input that output `o` and tap `k` meet, if they meet one.
    fn meets(&self, axis: usize, o: i64, k: i64, input: i64) -> Option<i64> {
        let at = o * self.stride[axis] - self.low[axis] + k * self.kernel_dilation[axis];
        let by = self.input_dilation[axis];
        let i = at.div_euclid(by);
        (at.rem_euclid(by) == 0 && (0..input).contains(&i)).then_some(i)
    }

    /// The outputs of shape `out`. `reduced` is an epsilon of the products, as MATMUL's.
    pub fn of(&self, x: &Array, w: &Array, out: &[i64], reduced: f64) -> Vec<Expected> {
        let groups = x.shape[4] / w.shape[4];
        let filters = w.shape[0] / groups;
        let n = w.shape[1..].iter().product::<i64>() as usize + 1;
        let mut expected = Vec::new();
        each_index(out, |p| {
            let (mut total, mut size) = (0.0, 0.0);
            each_index(&w.shape[1..], |k| {
                let mut from = [p[0], 0, 0, 0, p[4] / filters * w.shape[4] + k[3]];
                let mut weight = [p[4], 0, 0, 0, k[3]];
                for axis in 0..3 {
                    let taps = w.shape[1 + axis];
                    weight[1 + axis] = if self.flip { taps - 1 - k[axis] } else { k[axis] };
                    let met = self.meets(axis, p[1 + axis], k[axis], x.shape[1 + axis]);
                    let Some(i) = met else { return };
                    from[1 + axis] = i;
                }
                let product = x.at(&from).real() * w.at(&weight).real();
                total += product;
                size += product.abs();
            });
            let slack = sum_slack(x.dtype, n, size) + reduced * size;
            expected.push(sum(Num::Real(total), slack, size));
        });
        expected
    }
}
