//! Products of matrices that are chosen by indices, as one operation.

use super::picks::{Indices, Picks, gradient_by_second, mapped, summed, taken};
use super::transposed;
use crate::backend::Exec;
use crate::error::Result;
use crate::ops::index::bounds;
use crate::ops::rules::multi_output::{MultiOutputRules, MultiOutputVjp, Results};
use crate::ops::{Call, Cotangents, Draft, Refit, Vmap, attributes};
use crate::{array::Array, dtype::Dtype, node::Value, shape::Shape};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{GatherMatmulAttrs, op};

attributes! {
    /// Products of matrices that are chosen by indices. The operands are matrices `(b, m, k)` and `(e, k, n)` of one
    /// dtype, and indices. The result is `(items, m, n)`.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct GatherMatmul {
        pub picks: Picks,
    }
}

/// Makes the products. No size may be 0.
pub(crate) fn product(a: &Array, b: &Array, indices: &Indices) -> Result<Array> {
    let op = GatherMatmul { picks: indices.picks() };
    let operands: SmallVec<[&Array; 4]> = [a, b].into_iter().chain(indices.iter()).collect();
    let shapes: SmallVec<[&[usize]; 4]> = operands.iter().map(|a| a.shape()).collect();
    let results = smallvec![(op.shape(&shapes), a.dtype())];
    Ok(Array::multi_output(op, &operands, results)?.swap_remove(0))
}

impl GatherMatmul {
    fn shape(&self, shapes: &[&[usize]]) -> Shape {
        Shape::from_slice(&[self.picks.items(shapes), shapes[0][1], shapes[1][2]])
    }
}

impl MultiOutputRules for GatherMatmul {
    fn name(&self) -> &'static str {
        "gather_mm"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let shapes: SmallVec<[&[usize]; 4]> = node.inputs.iter().map(|(s, _)| *s).collect();
        let [&[b, m, k], &[e, l, n], ..] = shapes[..] else { return false };
        node.follows(op::GATHER_MATMUL, None, self.picks.names())
            && k == l
            && self.picks.admit(&shapes, [b, e])
            && node.gives(&[self.picks.items(&shapes), m, n], node.inputs[0].1)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        bounds::validate_picks(self.name(), exec, call, self.picks)?;
        let attributes = GatherMatmulAttrs::new(self.picks.lhs.into(), self.picks.rhs.into());
        call.run_multi_output(exec, op::GATHER_MATMUL, &attributes, &[], results)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        let indices = self.picks.of(operands);
        let product = || {
            let left = taken(&operands[0], indices.lhs.as_ref())?;
            left.matmul(&taken(&operands[1], indices.rhs.as_ref())?)
        };
        Some(product().map(|a| vec![a]))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(smallvec![(self.shape(r.inputs), before[0].1)])
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let (a, b) = (&v.primals[0], &v.primals[1]);
        let cotangent = v.all_cotangents().swap_remove(0);
        let indices = self.picks.of(v.primals);
        let by_items = Indices { lhs: None, ..indices.clone() };
        let by_first = || {
            let items = product(&cotangent, &transposed(b)?, &by_items)?;
            summed(items, indices.lhs.as_ref(), a.shape()[0])
        };
        let by_second = || gradient_by_second(a, &cotangent, &indices, b.shape()[0]);
        let mut found: Cotangents = smallvec![None; v.primals.len()];
        found[0] = v.wanted[0].then(by_first).transpose()?;
        found[1] = v.wanted[1].then(by_second).transpose()?;
        Ok(found)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let of =
            |operands: &[Array], indices: &Indices| product(&operands[0], &operands[1], indices);
        Ok(vec![mapped(v, self.picks, 1..2, of)?])
    }
}
