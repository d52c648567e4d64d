//! Attention and its gradient by ordinary operations, with all scores in memory.

use super::rules::{Attention, AttentionGradient, Extra};
use super::{super::compute_dtype, four};
use crate::array::Array;
use crate::error::Result;
use crate::ops::rules::builders::{bin, like, times, un};
use crate::ops::select::where_;
use crate::ops::shape::axes::KeepDims;
use crate::{dtype::Dtype, scalar::Scalar};
use ultramarine_abi::schema::{binary, unary};

/// The lowest finite number of the array's dtype. It is the score of a masked key, so that rows without any key stay
/// finite.
fn lowest(a: &Array) -> Array {
    like(a, crate::finfo(a.dtype()).map_or(f64::MIN, |info| info.min))
}

impl Attention {
    /// The scores `(batch, heads, queries, keys)`, in the dtype of the computation.
    fn scores(&self, q: &Array, k: &Array, extra: &Extra<'_>) -> Result<Array> {
        let ([b, n, t, d], [_, heads, s, _]) = (four(q), four(k));
        let inner = compute_dtype(q.dtype());
        let (q, k) = (q.astype(inner), k.astype(inner));
        // Query heads that share a key head become additional rows of one product.
        let rows = times(&q, &like(&q, self.scale))?.reshape(&[b, heads, n / heads * t, d])?;
        let scores = rows.matmul(&k.swapaxes(2, 3)?)?.reshape(&[b, n, t, s])?;
        let mut scores = match extra.mask {
            None => scores,
            Some(mask) if mask.dtype() == Dtype::Bool => where_(mask, &scores, lowest(&scores))?,
            Some(mask) => {
                let sum = bin(binary::ADD, &scores, &mask.astype(inner))?;
                bin(binary::MAXIMUM, &sum, &lowest(&scores))?
            }
        };
        if let Some(seen) = self.seen(t, s, extra)? {
            scores = where_(&seen, &scores, lowest(&scores))?;
        }
        Ok(scores)
    }

    /// The keys that queries may see according to their positions; `None`: all keys.
    fn seen(&self, t: usize, s: usize, extra: &Extra<'_>) -> Result<Option<Array>> {
        let keys = Array::arange(0.0, s as f64, 1.0, Dtype::Int64)?;
        let lengths = extra.lengths.map(|a| a.astype(Dtype::Int64).reshape(&[a.size(), 1, 1, 1]));
        let seen = match (self.causal, lengths.transpose()?) {
            (false, None) => return Ok(None),
            (false, Some(lengths)) => bin(binary::LESS, &keys, &lengths)?,
            (true, lengths) => {
                let end = |i: f64| Array::arange(i, i + t as f64, 1.0, Dtype::Int64);
                let ends = match lengths {
                    None => end(s as f64 - t as f64)?.reshape(&[t, 1])?,
                    Some(lengths) => {
                        bin(binary::ADD, &end(-(t as f64))?.reshape(&[t, 1])?, &lengths)?
                    }
                };
                bin(binary::LESS_EQUAL, &keys, &ends)?
            }
        };
        Ok(Some(seen))
    }

    /// The result and the logarithms of the softmax's sums.
    pub fn composed(&self, operands: &[Array]) -> Result<Vec<Array>> {
        let ([q, k, v], extra) = self.parts(operands);
        let ([b, n, t, _], [_, heads, s, e]) = (four(q), four(v));
        let scores = self.scores(q, k, &extra)?;
        // The shift does not influence the result, so no derivative flows through it.
        let mut top = scores.max(KeepDims(-1))?;
        let inner = scores.dtype();
        let sinks = extra.sinks.map(|a| a.astype(inner).reshape(&[b, n, 1, 1])).transpose()?;
        if let Some(sinks) = &sinks {
            top = bin(binary::MAXIMUM, &top, sinks)?;
        }
        let top = top.stop_gradient();
        let exp = |a: &Array| Ok(un(unary::EXP, &bin(binary::SUBTRACT, a, &top)?));
        let weights: Array = exp(&scores)?;
        let mut sum = weights.sum(KeepDims(-1))?;
        if let Some(sinks) = &sinks {
            sum = bin(binary::ADD, &sum, &exp(sinks)?)?;
        }
        let weights = bin(binary::DIVIDE, &weights, &sum)?;
        let rows = weights.reshape(&[b, heads, n / heads * t, s])?;
        let result = rows.matmul(v.astype(inner))?.reshape(&[b, n, t, e])?.astype(q.dtype());
        let logarithms = bin(binary::ADD, &top, &un(unary::LOG, &sum))?.reshape(&[b, n, t])?;
        Ok(vec![result, logarithms])
    }

    /// The weights of the softmax, computed from the logarithms of its sums, and the gradient with respect to the
    /// scores.
    pub(super) fn slopes(
        &self,
        operands: [&Array; 3],
        extra: &Extra<'_>,
        [cotangent, logarithms, delta]: [&Array; 3],
    ) -> Result<[Array; 2]> {
        let [q, k, v] = operands;
        let ([b, n, t, e], [_, heads, s, _]) = (four(cotangent), four(k));
        let scores = self.scores(q, k, extra)?;
        let inner = scores.dtype();
        let column = |a: &Array| a.astype(inner).reshape(&[b, n, t, 1]);
        let (logarithms, delta) = (column(logarithms)?, column(delta)?);
        let lowest = lowest(&scores);
        // Queries whose keys are all masked give all keys the same weight.
        let masked = bin(binary::LESS_EQUAL, &logarithms, &lowest)?;
        let zero = Array::scalar(Scalar::from_f64(inner, 0.0));
        let shift = where_(&masked, &zero, &logarithms)?;
        let weights = un(unary::EXP, &bin(binary::SUBTRACT, &scores, &shift)?);
        let weights = where_(&masked, like(&scores, 1.0 / s as f64), &weights)?;
        let rows = cotangent.astype(inner).reshape(&[b, heads, n / heads * t, e])?;
        let products = rows.matmul(&v.astype(inner).swapaxes(2, 3)?)?.reshape(&[b, n, t, s])?;
        let slopes = times(&weights, &bin(binary::SUBTRACT, &products, &delta)?)?;
        let seen = bin(binary::GREATER, &scores, &lowest)?;
        Ok([weights, where_(&seen, &slopes, &zero)?])
    }
}

impl AttentionGradient {
    /// The gradients with respect to queries, keys and values.
    pub fn composed(&self, operands: &[Array]) -> Result<Vec<Array>> {
        let ([q, k, v], given, extra) = self.parts(operands);
        let ([b, n, t, d], [_, heads, s, e]) = (four(q), four(v));
        let [weights, slopes] = self.of.slopes([q, k, v], &extra, given)?;
        let (inner, dtype) = (weights.dtype(), q.dtype());
        let rows = |a: &Array, last: usize| a.reshape(&[b, heads, n / heads * t, last]);
        let slopes = rows(&times(&slopes, &like(&slopes, self.of.scale))?, s)?;
        let by_queries = slopes.matmul(k.astype(inner))?.reshape(&[b, n, t, d])?;
        let by_keys = slopes.swapaxes(2, 3)?.matmul(&rows(&q.astype(inner), d)?)?;
        let cotangent = rows(&given[0].astype(inner), e)?;
        let by_values = rows(&weights, s)?.swapaxes(2, 3)?.matmul(&cotangent)?;
        Ok([by_queries, by_keys, by_values].map(|a| a.astype(dtype)).into())
    }
}
