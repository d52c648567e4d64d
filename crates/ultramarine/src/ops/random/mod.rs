//! The operation that makes random bits from a key. The public functions, which turn them into numbers, are in
//! [`crate::random`].

mod decompose;

use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Jvp, Rules, Vjp, Vmap, attributes, draft,
    no_derivatives, rules::builders::move_axis,
};
use crate::{array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, shape::Shape};
use ultramarine_abi::schema::{NoAttrs, op};

/// `n` random numbers of an unsigned dtype for each key: `(..., 2)` to `(..., n)`.
pub(crate) fn bits_of(keys: &Array, n: usize, dtype: Dtype) -> Result<Array> {
    let mut shape = Shape::from_slice(keys.shape());
    if let Some(last) = shape.last_mut() {
        *last = n;
    }
    Array::try_of(RandomBits, &[keys], shape, dtype)
}

attributes! {
    /// Threefry bits for the keys in the last axis.
    #[derive(Clone, Debug)]
    pub(crate) struct RandomBits;
}

impl Rules for RandomBits {
    fn name(&self) -> &'static str {
        "random_bits"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(keys, _)], (to, _))) = node.of() else { return false };
        node.follows(op::RANDOM_BITS, None, &[])
            && keys.last() == Some(&2)
            && draft::agree_but(keys.len() - 1, keys, to)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, op::RANDOM_BITS, &NoAttrs::new(), &[])
    }

    no_derivatives!();

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let n = v.shape.last().copied().unwrap_or(0);
        match v.axes[0] {
            Some(at) => Ok((bits_of(&move_axis(&v.inputs[0], at, 0)?, n, v.dtype)?, Some(0))),
            None => Ok((bits_of(&v.inputs[0], n, v.dtype)?, None)),
        }
    }
}
