//! `x log y`, which is 0 where `x` is 0. It occurs in entropies and likelihoods.

use crate::error::{Result, ensure};
use crate::ops::rules::builders::{bin, like, plus, un};
use crate::ops::rules::{batching, shapeless::broadcast_with};
use crate::ops::{
    Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes,
    select::where_,
};
use crate::{array::Array, shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{binary, unary};

impl Array {
    /// Returns `self * ln(other)`, and 0 where `self` is 0 unless `other` is NaN. Operands are
    /// broadcast and promoted; integers and bool are computed as float32.
    ///
    /// Derivatives take the limit 0 where `self` is 0 and `other` is not positive, so the gradient of an entropy is
    /// finite where a probability is 0.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let p = Array::from_slice(&[0.0f32, 0.5, 0.5], &[3])?;
    /// let entropy = p.xlogy(&p)?.sum(None)?.negative()?;
    /// assert!((entropy.item::<f32>()? - 2.0f32.ln()).abs() < 1e-6);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for complex64, and when the shapes cannot be broadcast.
    pub fn xlogy(&self, other: &Array) -> Result<Array> {
        let promoted = self.dtype().promote(other.dtype());
        ensure!(
            !promoted.is_complex(),
            "xlogy",
            "Not supported for complex64. Take real(x), imag(x) or abs(x) first."
        );
        let dtype = promoted.to_inexact();
        let shape = shape::broadcast("xlogy", self.shape(), other.shape())?;
        let (x, y) = (self.promoted(dtype), other.promoted(dtype));
        let (x, y) = (broadcast_with(&x, &shape, &[&y])?, broadcast_with(&y, &shape, &[&x])?);
        Array::try_of(Xlogy, &[&x, &y], shape, dtype)
    }
}

attributes! {
    /// Operands: x and y, of the result's shape and dtype.
    #[derive(Clone, Debug)]
    pub(crate) struct Xlogy;
}

/// True where x is 0 and y is not positive. Derivatives take a limit there, because the factors themselves have none.
fn at_zero(x: &Array, y: &Array) -> Result<Array> {
    let zero = bin(binary::EQUAL, x, &like(x, 0.0))?;
    bin(binary::LOGICAL_AND, &zero, &bin(binary::LESS_EQUAL, y, &like(y, 0.0))?)
}

/// The derivatives with respect to x and y.
fn slopes(x: &Array, y: &Array) -> Result<(Array, Array)> {
    let limit = at_zero(x, y)?;
    // Replace numbers without a logarithm or reciprocal by 1, so that derivatives of this expression are finite.
    let safe = where_(&limit, like(y, 1.0), y)?;
    Ok((un(unary::LOG, &safe), bin(binary::DIVIDE, x, &safe)?))
}

impl Rules for Xlogy {
    fn name(&self) -> &'static str {
        "xlogy"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([x, y], out)) = node.of() else { return false };
        out.1.is_floating() && x == out && y == out
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.elementwise()
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        candidates.add((|| {
            let (x, y) = (&d.inputs[0], &d.inputs[1]);
            let product = bin(binary::MULTIPLY, x, &un(unary::LOG, y))?;
            let zero = bin(binary::EQUAL, x, &like(x, 0.0))?;
            let known = bin(binary::EQUAL, y, y)?;
            where_(&bin(binary::LOGICAL_AND, &zero, &known)?, like(x, 0.0), &product)
        })());
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (dx, dy) = slopes(&v.primals[0], &v.primals[1])?;
        Ok(smallvec![Some(v.cotangent.multiply(&dx)?), Some(v.cotangent.multiply(&dy)?)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let (dx, dy) = slopes(&j.primals[0], &j.primals[1])?;
        let part =
            |i: usize, by: &Array| j.tangents[i].as_ref().map(|t| t.multiply(by)).transpose();
        plus(part(0, &dx)?, part(1, &dy)?)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        batching::elementwise(Xlogy, v)
    }
}
