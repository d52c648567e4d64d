//! The operation of cross entropy, and the operation of its gradient.

use super::compose::weights;
use crate::array::Array;
use crate::backend::Exec;
use crate::error::Result;
use crate::ops::index::bounds;
use crate::ops::nn::compute_dtype;
use crate::ops::rules::batching::joined;
use crate::ops::rules::builders::{bin, times, with_axis};
use crate::ops::rules::multi_output::{MultiOutputRules, MultiOutputVjp, Results};
use crate::ops::{Call, Cotangents, Draft, Refit, Vmap, attributes};
use crate::{dtype::Dtype, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, binary, op};

attributes! {
    /// Cross entropy. The operands are logits `(rows, classes)`, with at least one class, and targets `(rows)` of
    /// int32. The results are the losses and the logarithms of the sums of exponentials, `(rows)`, in float32 (float64
    /// for float64).
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct CrossEntropy;
}

attributes! {
    /// The gradient of a cross entropy with respect to its logits. The operands are the logits, the targets, the
    /// logarithms and a cotangent of the losses.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct CrossEntropyGradient;
}

impl CrossEntropy {
    /// Losses and logarithms.
    pub fn of(self, operands: &[Array; 2]) -> Result<[Array; 2]> {
        let [logits, targets] = operands;
        let results = shapes(logits.shape(), compute_dtype(logits.dtype()));
        let mut results = Array::multi_output(self, &[logits, targets], results)?.into_iter();
        match (results.next(), results.next()) {
            (Some(losses), Some(logarithms)) => Ok([losses, logarithms]),
            _ => unreachable!("two results"),
        }
    }
}

/// Shapes and dtypes of losses and logarithms.
fn shapes(logits: &[usize], dtype: Dtype) -> Results {
    let rows = Shape::from_slice(&logits[..1]);
    smallvec![(rows.clone(), dtype), (rows, dtype)]
}

impl MultiOutputRules for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let [(&[rows, classes], dtype), (&[n], _)] = *node.inputs else { return false };
        node.follows(op::CROSS_ENTROPY, None, &[])
            && rows == n
            && classes > 0
            && node.gives_all(&shapes(&[rows], compute_dtype(dtype)))
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        bounds::validate(self.name(), exec, call, &[1])?;
        call.run_multi_output(exec, op::CROSS_ENTROPY, &NoAttrs::new(), &[], results)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        Some(self.composed(operands))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(shapes(r.inputs[0], before[0].1))
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let ([logits, targets], logarithms) = ([&v.primals[0], &v.primals[1]], &v.outputs[1]);
        let of_losses = v.cotangents[0]
            .as_ref()
            .map(|cotangent| CrossEntropyGradient.of([logits, targets, logarithms, cotangent]));
        // Only the gradient's own gradient has a cotangent for the logarithms.
        let of_logarithms = v.cotangents[1].as_ref().map(|cotangent| {
            let slopes = times(&weights(logits, logarithms)?, &with_axis(cotangent, 1)?)?;
            Ok(slopes.astype(logits.dtype()))
        });
        let found = match (of_losses.transpose()?, of_logarithms.transpose()?) {
            (Some(a), Some(b)) => Some(bin(binary::ADD, &a, &b)?),
            (a, b) => a.or(b),
        };
        Ok(smallvec![found, None])
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        joined(v, |operands| Ok(self.of(&[operands[0].clone(), operands[1].clone()])?.into()))
    }
}

impl CrossEntropyGradient {
    /// The gradient.
    fn of(self, operands: [&Array; 4]) -> Result<Array> {
        let logits = operands[0];
        let results = smallvec![(Shape::from_slice(logits.shape()), logits.dtype())];
        Ok(Array::multi_output(self, &operands, results)?.swap_remove(0))
    }
}

impl MultiOutputRules for CrossEntropyGradient {
    fn name(&self) -> &'static str {
        "cross_entropy_gradient"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let [logits @ (&[rows, classes], _), ref lines @ ..] = *node.inputs else { return false };
        node.follows(op::CROSS_ENTROPY_GRADIENT, None, &[])
            && classes > 0
            && lines.iter().all(|(shape, _)| **shape == [rows])
            && node.outputs == [logits]
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        call.run_multi_output(exec, op::CROSS_ENTROPY_GRADIENT, &NoAttrs::new(), &[], results)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        Some(self.composed(operands))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(smallvec![(Shape::from_slice(r.inputs[0]), before[0].1)])
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        joined(v, |operands| Ok(vec![self.of([0, 1, 2, 3].map(|i| &operands[i]))?]))
    }
}
