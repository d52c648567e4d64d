//! MATMUL, by its definition.

use super::reduce::{sum, sum_slack};
use crate::compare::Expected;
use crate::dtype::{Kind, Num};
use crate::tensor::{Array, each_index};
use num_complex::Complex64;

/// MATMUL. `reduced` is the precision of the products: 0, or an epsilon.
pub fn matmul(a: &Array, b: &Array, reduced: f64) -> (Vec<i64>, Vec<Expected>) {
    let dtype = a.dtype;
    let rank = a.shape.len();
    let k = a.shape[rank - 1];
    let mut shape = a.shape.clone();
    shape[rank - 1] = b.shape[rank - 1];
    let mut expected = Vec::new();
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
        expected.push(match dtype.kind() {
            Kind::Complex => sum(Num::Complex(total.re, total.im), slack, size),
            Kind::Float => sum(Num::Real(total.re), slack, size),
            _ => Expected::exact(Num::Int(whole)),
        });
    });
    (shape, expected)
}
