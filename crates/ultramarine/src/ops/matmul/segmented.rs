//! Products over segments of the inner dimension, as one operation.

use crate::backend::Exec;
use crate::error::Result;
use crate::ops::rules::batching::all_batched;
use crate::ops::rules::builders::{bin, like, with_axis};
use crate::ops::rules::multi_output::{MultiOutputRules, Results};
use crate::ops::select::where_;
use crate::ops::{Call, Draft, Refit, Vmap, attributes};
use crate::{array::Array, dtype::Dtype, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{NoAttrs, binary, op};

attributes! {
    /// Products over segments of the inner dimension. The operands are matrices `(m, k)` and `(k, n)` of one dtype, and
    /// segments `(s, 2)` of int32. The result is `(s, m, n)`.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct SegmentedMatmul;
}

/// Makes the products. No size may be 0.
pub(crate) fn product(a: &Array, b: &Array, segments: &Array) -> Result<Array> {
    let operands = [a, b, segments];
    let results = smallvec![(shape(operands.map(Array::shape)), a.dtype())];
    Ok(Array::multi_output(SegmentedMatmul, &operands, results)?.swap_remove(0))
}

fn shape([a, b, segments]: [&[usize]; 3]) -> Shape {
    Shape::from_slice(&[segments[0], a[0], b[1]])
}

/// The products, computed by setting all elements outside of the segments to zero.
fn composed(a: &Array, b: &Array, segments: &Array) -> Result<Array> {
    let bound = |i: usize| segments.along(1, i, i + 1, 1);
    let place = Array::arange(0.0, b.shape()[0] as f64, 1.0, Dtype::Int32)?;
    let inside = place.greater_equal(&bound(0)?)?.logical_and(&place.less(&bound(1)?)?)?;
    // Set both sides to zero, because zero times infinity or NaN is not zero.
    let left = where_(&with_axis(&inside, 1)?, &with_axis(a, 0)?, like(a, 0.0))?;
    let right = where_(&with_axis(&inside, 2)?, &with_axis(b, 0)?, like(b, 0.0))?;
    left.matmul(&right)
}

impl MultiOutputRules for SegmentedMatmul {
    fn name(&self) -> &'static str {
        "segmented_mm"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(a, dtype), (b, _), (segments, _)], _)) = node.of() else { return false };
        let ([m, k], [l, n], [s, 2]) = (a, b, segments) else { return false };
        node.follows(op::SEGMENTED_MATMUL, None, &[]) && k == l && node.gives(&[*s, *m, *n], dtype)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        call.run_multi_output(exec, op::SEGMENTED_MATMUL, &NoAttrs::new(), &[], results)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        let [a, b, segments] = operands else { unreachable!("three operands") };
        Some(composed(a, b, segments).map(|a| vec![a]))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(smallvec![(shape([r.inputs[0], r.inputs[1], r.inputs[2]]), before[0].1)])
    }

    /// Joins the mapped matrices along the inner dimension, and shifts their segments accordingly.
    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let operands = all_batched(v)?;
        let [a, b, segments] = &operands[..] else { unreachable!("three operands") };
        let ([m, k], n, count) = ([a.shape()[1], a.shape()[2]], b.shape()[2], segments.shape()[1]);
        let a = a.transpose_axes([1, 0, 2])?.reshape(&[m, v.size * k])?;
        let b = b.reshape(&[v.size * k, n])?;
        let held = segments.clip(Some(&like(segments, 0.0)), Some(&like(segments, k as f64)))?;
        let each =
            Array::arange(0.0, v.size as f64, 1.0, Dtype::Int32)?.reshape(&[v.size, 1, 1])?;
        let starts = bin(binary::MULTIPLY, &each, &like(&each, k as f64))?;
        let segments = bin(binary::ADD, &held, &starts)?.reshape(&[v.size * count, 2])?;
        let out = product(&a, &b, &segments)?.reshape(&[v.size, count, m, n])?;
        Ok(vec![(out, Some(0))])
    }
}
