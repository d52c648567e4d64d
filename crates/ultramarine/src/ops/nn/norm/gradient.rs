//! The gradient of a norm, as an operation.

use super::{LayerNorm, spread};
use crate::array::Array;
use crate::backend::{Exec, Operand};
use crate::error::Result;
use crate::ops::create::fill::broadcast_constant;
use crate::ops::nn::compute_dtype;
use crate::ops::rules::batching;
use crate::ops::rules::builders::times;
use crate::ops::rules::multi_output::{MultiOutputRules, Results};
use crate::ops::{Call, Draft, Refit, Vmap, attributes};
use crate::{dtype::Dtype, node::Value, scalar::Scalar, shape::Shape};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{NormGradientAttrs, op};

attributes! {
    /// The gradient of a norm of rows. The operands are x and a cotangent `(rows, n)`, and a weight `(n)` if there is
    /// one. The results are the gradients with respect to x `(rows, n)`, weight `(n)` and, if the norm is centered,
    /// bias `(n)`.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct NormGradient {
        norm: LayerNorm,
        /// Set if the gradients with respect to weight and bias are wanted.
        parameters: bool,
    }
}

impl NormGradient {
    /// The gradients with respect to x, weight and bias, in their shapes.
    pub fn of(
        norm: LayerNorm,
        x: &Array,
        weight: Option<&Array>,
        cotangent: &Array,
        parameters: bool,
    ) -> Result<Vec<Array>> {
        let n = x.shape()[x.ndim() - 1];
        let rows = [x.size() / n, n];
        let operands = [x.reshape(&rows)?, cotangent.reshape(&rows)?];
        let mut operands: SmallVec<[&Array; 3]> = operands.iter().collect();
        operands.extend(weight);
        let rules = NormGradient { norm, parameters };
        let results = rules.results(&rows, x.dtype());
        let mut results = Array::multi_output(rules, &operands, results)?;
        results[0] = results[0].reshape(x.shape())?;
        Ok(results)
    }

    fn results(self, rows: &[usize], dtype: Dtype) -> Results {
        let n = Shape::from_slice(&rows[1..]);
        let mut all: Results = smallvec![(Shape::from_slice(rows), dtype), (n.clone(), dtype)];
        if self.norm.centered {
            all.push((n, dtype));
        }
        all
    }

    /// The same gradients, computed by ordinary operations. Rows may follow any leading axes, and each row may have a
    /// weight of its own.
    fn composed(self, operands: &[Array]) -> Result<Vec<Array>> {
        let (x, dtype) = (&operands[0], operands[0].dtype());
        let normal = self.norm.normal(dtype, x)?;
        let cotangent = operands[1].astype(compute_dtype(dtype));
        let t = match operands.get(2) {
            Some(weight) if weight.ndim() > 1 => times(&cotangent, &weight.expand_dims(-2)?)?,
            Some(weight) => times(&cotangent, &spread(weight, &cotangent)?)?,
            None => cotangent.clone(),
        };
        let by_x = self.norm.jacobian_product(&normal, &t)?.astype(dtype);
        let by_weight = times(&cotangent, &normal.0)?.sum(-2)?.astype(dtype);
        let mut all = vec![by_x, by_weight];
        if self.norm.centered {
            all.push(cotangent.sum(-2)?.astype(dtype));
        }
        Ok(all)
    }
}

impl MultiOutputRules for NormGradient {
    fn name(&self) -> &'static str {
        if self.norm.centered { "layer_norm_gradient" } else { "rms_norm_gradient" }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let [(x @ [_, n], dtype), cotangent, rest @ ..] = node.inputs else { return false };
        let weight: &[(&[usize], Dtype)] = &[(&[*n], *dtype)];
        node.is_computable()
            && dtype.is_floating()
            && *n > 0
            && *cotangent == (*x, *dtype)
            && rest == &weight[..usize::from(self.norm.weight)]
            && node.gives_all(&self.results(x, *dtype))
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let values = results.iter().map(|(s, d)| exec.alloc(s, *d)).collect::<Result<Vec<_>>>()?;
        let [x, cotangent] = [0, 1].map(|i| call.operand(i));
        let n = &x.shape[1..];
        let one = match self.norm.weight {
            true => None,
            false => Some(broadcast_constant(exec, Scalar::from_f64(call.dtype, 1.0), n)?),
        };
        let weight = match &one {
            Some(value) => Operand { value, shape: n, dtype: call.dtype },
            None => call.operand(2),
        };
        let outputs: SmallVec<[Operand<'_>; 3]> = values
            .iter()
            .zip(results)
            .map(|(value, (shape, dtype))| Operand { value, shape, dtype: *dtype })
            .collect();
        let attrs = NormGradientAttrs::new(self.parameters.into());
        let eps = Scalar::from_f64(Dtype::Float64, self.norm.eps);
        let id = if self.norm.centered { op::LAYER_NORM_GRADIENT } else { op::RMS_NORM_GRADIENT };
        exec.run(id, &attrs, &[x, weight, cotangent], &outputs, &[eps])?;
        drop(outputs);
        Ok(values)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        Some(self.composed(operands))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(self.results(r.inputs[0], before[0].1))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let operands = batching::all_batched(v)?;
        Ok(self.composed(&operands)?.into_iter().map(|a| (a, Some(0))).collect())
    }
}
