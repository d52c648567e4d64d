//! CONVOLVE and its gradients, by their definition.

use super::reduce::{sum, sum_slack};
use crate::compare::Expected;
use crate::dtype::Num;
use crate::tensor::{Array, each_index, row_major};

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
    /// Returns the input element to which output `o` applies tap `k`, if there is one.
    fn meets(&self, axis: usize, o: i64, k: i64, input: i64) -> Option<i64> {
        let at = o * self.stride[axis] - self.low[axis] + k * self.kernel_dilation[axis];
        let by = self.input_dilation[axis];
        let i = at.div_euclid(by);
        (at.rem_euclid(by) == 0 && (0..input).contains(&i)).then_some(i)
    }

    /// Computes the last of three tensors, named by their positions among input, weight and output,
    /// from the first two. `reduced` is an epsilon of the products, as for MATMUL.
    pub fn of(
        &self,
        [first, second, result]: [usize; 3],
        [a, b]: [&Array; 2],
        shapes: &[[i64; 5]; 3],
        reduced: f64,
    ) -> Vec<Expected> {
        let [xs, ws, ys] = shapes;
        let filters = ws[0] / (xs[4] / ws[4]);
        let (to, len) = (row_major(&shapes[result]), shapes[result].iter().product::<i64>());
        // For each element: the sum, the sum of magnitudes, and the number of terms.
        let mut sums = vec![(0.0, 0.0, 1); len as usize];
        each_index(ys, |p| {
            each_index(&ws[1..], |k| {
                let mut input = [p[0], 0, 0, 0, p[4] / filters * ws[4] + k[3]];
                let mut weight = [p[4], 0, 0, 0, k[3]];
                for axis in 0..3 {
                    let taps = ws[1 + axis];
                    weight[1 + axis] = if self.flip { taps - 1 - k[axis] } else { k[axis] };
                    let met = self.meets(axis, p[1 + axis], k[axis], xs[1 + axis]);
                    let Some(i) = met else { return };
                    input[1 + axis] = i;
                }
                let at = [&input[..], &weight[..], p];
                let product = a.at(at[first]).real() * b.at(at[second]).real();
                let index: i64 = at[result].iter().zip(&to).map(|(i, s)| i * s).sum();
                let (total, size, terms) = &mut sums[index as usize];
                *total += product;
                *size += product.abs();
                *terms += 1;
            });
        });
        let expected = |(total, size, terms): (f64, f64, usize)| {
            sum(Num::Real(total), sum_slack(a.dtype, terms, size) + reduced * size, size)
        };
        sums.into_iter().map(expected).collect()
    }
}
