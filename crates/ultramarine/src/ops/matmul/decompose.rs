//! Decompositions of matrix products.

use crate::array::Array;
use crate::error::{Result, bail};
use crate::ops::rules::builders::{bin, with_axis};
use crate::ops::rules::decomposition::{Candidates, Decompose, complex, parts, wider};
use crate::ops::{matmul::Matmul, reduce::Reduce};
use crate::shape::{self, Shape};
use ultramarine_abi::schema::{binary, reduce};

/// Largest number of products that a decomposition writes to memory.
const MAX_PRODUCTS: usize = 1 << 22;

/// Candidates for a matrix product.
pub(crate) fn candidates(of: &Matmul, d: &Decompose<'_>, candidates: &mut Candidates) {
    let [a, b] = d.inputs else { return };
    let product = |a: &Array, b: &Array| {
        Array::of(of.clone(), &[a, b], Shape::from_slice(d.shape), a.dtype())
    };
    if let Some(wide) = wider(a.dtype()) {
        candidates.add(Ok(product(&a.astype(wide), &b.astype(wide)).astype(d.dtype)));
        return;
    }
    if d.dtype.is_complex() {
        let of_parts = || {
            let ((ar, ai), (br, bi)) = (parts(a)?, parts(b)?);
            let re = bin(binary::SUBTRACT, &product(&ar, &br), &product(&ai, &bi))?;
            complex(&re, &bin(binary::ADD, &product(&ar, &bi), &product(&ai, &br))?)
        };
        candidates.add(of_parts());
    }
    candidates.add(summed(a, b, d.shape));
}

/// Computes all products, and sums them over the inner axis.
fn summed(a: &Array, b: &Array, out: &[usize]) -> Result<Array> {
    let n = a.ndim();
    let inner = a.shape()[n - 1];
    if shape::size(out).checked_mul(inner).is_none_or(|all| all > MAX_PRODUCTS) {
        bail!("matmul", "too many products to write them out");
    }
    let products = bin(binary::MULTIPLY, &with_axis(a, n)?, &with_axis(b, n - 2)?)?;
    let sum = Reduce { code: reduce::SUM, axes: 1 << (n - 1) }.of(&products);
    sum.reshape(out)
}
