//! The operation of attention, and that of its gradient.

use super::super::compute_dtype;
use crate::array::Array;
use crate::backend::{DeviceState, Exec};
use crate::error::Result;
use crate::ops::rules::batching::joined;
use crate::ops::rules::builders::{bin, times, un, with_axis};
use crate::ops::rules::multi_output::{MultiOutputRules, MultiOutputVjp, Results};
use crate::ops::{Call, Cotangents, Draft, Refit, Vmap, attributes};
use crate::{dtype::Dtype, node::Value, scalar::Scalar, shape::Shape};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{AttentionAttrs, binary, op, unary};

attributes! {
    /// Attention. The operands are queries `(batch, heads, queries, size)`, keys, values, and depending on the
    /// attributes a mask `(batch, heads, queries, keys)` of bools or of the operands' dtype, sinks `(batch, heads)`,
    /// and lengths `(batch)` of int32. The results are that of attention, and the logarithms of the softmax's sums
    /// `(batch, heads, queries)`.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Attention {
        pub scale: f64,
        pub causal: bool,
        pub mask: bool,
        pub sinks: bool,
        pub lengths: bool,
    }
}

attributes! {
    /// The gradients of attention with respect to queries, keys and values. The operands are these three, a cotangent
    /// of the result, the logarithms, delta, and depending on the attributes mask and lengths. The logarithms already
    /// include the sinks.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct AttentionGradient {
        pub of: Attention,
    }
}

/// The optional operands.
#[derive(Clone, Copy)]
pub(super) struct Extra<'a> {
    pub mask: Option<&'a Array>,
    pub sinks: Option<&'a Array>,
    pub lengths: Option<&'a Array>,
}

impl Attention {
    fn extra<'a>(&self, rest: &'a [Array], sinks: bool) -> Extra<'a> {
        let mut rest = rest.iter();
        let mut next = |there: bool| if there { rest.next() } else { None };
        Extra { mask: next(self.mask), sinks: next(sinks), lengths: next(self.lengths) }
    }

    pub(super) fn parts<'a>(&self, operands: &'a [Array]) -> ([&'a Array; 3], Extra<'a>) {
        let [q, k, v, rest @ ..] = operands else { unreachable!("three operands at least") };
        ([q, k, v], self.extra(rest, self.sinks))
    }

    /// The result and the logarithms.
    pub fn of(self, operands: &[Array]) -> Result<[Array; 2]> {
        let (q, v) = (&operands[0], &operands[2]);
        let results = shapes([q.shape(), v.shape()], q.dtype());
        let operands: SmallVec<[&Array; 6]> = operands.iter().collect();
        let mut results = Array::multi_output(self, &operands, results)?.into_iter();
        match (results.next(), results.next()) {
            (Some(result), Some(logarithms)) => Ok([result, logarithms]),
            _ => unreachable!("two results"),
        }
    }

    fn attributes(
        &self,
        [q, k, v]: [&[usize]; 3],
        sinks: bool,
        deterministic: bool,
    ) -> AttentionAttrs {
        AttentionAttrs::new(
            self.mask.into(),
            sinks.into(),
            self.lengths.into(),
            self.causal.into(),
            q[3] as u32,
            v[3] as u32,
            (q[1] / k[1]) as u32,
            deterministic.into(),
        )
    }

    /// The optional operands that are present, named as in the contract's table.
    fn names(&self, sinks: bool) -> SmallVec<[&'static str; 3]> {
        let all = [(self.mask, "mask"), (sinks, "sinks"), (self.lengths, "lengths")];
        all.into_iter().filter(|(there, _)| *there).map(|(_, name)| name).collect()
    }

    /// The shapes of queries and values, if the shapes of queries, keys, values and the operands from `first` on are
    /// compatible.
    fn admitted<'a>(
        &self,
        node: &Draft<'a>,
        first: usize,
        sinks: bool,
    ) -> Option<(&'a [usize], &'a [usize])> {
        let [(q, dtype), (k, _), (v, _)] = *node.inputs.first_chunk()?;
        let ([b, h, m, d], [kb, kh, n, kd], [vb, vh, vn, e]) = (q, k, v) else { return None };
        let sizes = (kb, kd, vb, vh, vn) == (b, d, b, kh, n) && *kh > 0 && h % kh == 0;
        let small = [d, e].iter().all(|size| u32::try_from(**size).is_ok());
        let mut rest = node.inputs.get(first..)?.iter();
        let mut fits = |there: bool, shape: &[usize], dtypes: &[Dtype]| {
            !there || rest.next().is_some_and(|(s, d)| *s == shape && dtypes.contains(d))
        };
        let extra = fits(self.mask, &[*b, *h, *m, *n], &[Dtype::Bool, dtype])
            && fits(sinks, &[*b, *h], &[dtype])
            && fits(self.lengths, &[*b], &[Dtype::Int32]);
        (sizes && small && extra && rest.next().is_none()).then_some((q, v))
    }

    /// Returns true if a device has a kernel for these operands.
    pub fn is_fused(&self, device: &'static DeviceState, operands: &[Array]) -> bool {
        let [q, k, v] = [0, 1, 2].map(|i| operands[i].shape());
        let inputs: SmallVec<[_; 6]> = operands.iter().map(|a| (a.dtype(), a.ndim())).collect();
        let results = shapes([q, v], operands[0].dtype());
        let outputs = [0, 1].map(|i| (results[i].1, results[i].0.len()));
        let attributes = self.attributes([q, k, v], self.sinks, false);
        device.offers(op::ATTENTION, &attributes, &inputs, &outputs).unwrap_or(false)
    }

    fn scalars(&self) -> [Scalar; 1] {
        [Scalar::from_f64(Dtype::Float64, self.scale)]
    }

    /// The gradients with respect to the mask and the sinks, where they are wanted.
    fn others(
        &self,
        operands: &[Array],
        given: [&Array; 3],
        wanted: &[bool],
    ) -> Result<Vec<Option<Array>>> {
        let (first, extra) = self.parts(operands);
        let mut rest = wanted[3..].iter().copied();
        let mut found = Vec::new();
        if let Some(mask) = extra.mask {
            let wanted = rest.next() == Some(true) && mask.dtype() != Dtype::Bool;
            // The gradient of the mask has the size of the scores, so compute the slopes only if it is wanted.
            let slopes = wanted.then(|| self.slopes(first, &extra, given)).transpose()?;
            found.push(slopes.map(|[_, slopes]| slopes.astype(mask.dtype())));
        }
        if let Some(sinks) = extra.sinks {
            let [_, logarithms, delta] = given;
            let slope = || {
                let sink = with_axis(&sinks.astype(logarithms.dtype()), 2)?;
                let share = un(unary::EXP, &bin(binary::SUBTRACT, &sink, logarithms)?);
                let sum = times(&share, delta)?.sum(2)?;
                Ok(un(unary::NEGATIVE, &sum).astype(sinks.dtype()))
            };
            found.push((rest.next() == Some(true)).then(slope).transpose()?);
        }
        found.resize(operands.len() - 3, None);
        Ok(found)
    }
}

/// The shapes of queries, keys and values.
fn first<'a>(call: &Call<'a>) -> [&'a [usize]; 3] {
    [0, 1, 2].map(|i| call.descs[i].0)
}

/// Shapes and dtypes of the results.
fn shapes([q, v]: [&[usize]; 2], dtype: Dtype) -> Results {
    let rows = Shape::from_slice(&q[..3]);
    let mut result = rows.clone();
    result.push(v[3]);
    smallvec![(result, dtype), (rows, compute_dtype(dtype))]
}

impl MultiOutputRules for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some((q, v)) = self.admitted(node, 3, self.sinks) else { return false };
        node.follows(op::ATTENTION, None, &self.names(self.sinks))
            && node.gives_all(&shapes([q, v], node.inputs[0].1))
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let attributes = self.attributes(first(call), self.sinks, exec.deterministic.get());
        call.run_multi_output(exec, op::ATTENTION, &attributes, &self.scalars(), results)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        Some(self.composed(operands))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(shapes([r.inputs[0], r.inputs[2]], before[0].1))
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let cotangents = v.all_cotangents();
        let (result, logarithms) = (&v.outputs[0], &v.outputs[1]);
        let inner = logarithms.dtype();
        let products = times(&result.astype(inner), &cotangents[0].astype(inner))?;
        let mut delta = products.sum(3)?;
        if let Some(by_logarithms) = &v.cotangents[1] {
            delta = bin(binary::SUBTRACT, &delta, by_logarithms)?;
        }
        let given = [&cotangents[0], logarithms, &delta];
        let mut found: Cotangents = smallvec![None; 3];
        if v.wanted[..3].contains(&true) {
            let (first, extra) = self.parts(v.primals);
            let rest = [extra.mask, extra.lengths].into_iter().flatten();
            let operands: Vec<Array> =
                first.into_iter().chain(given).chain(rest).cloned().collect();
            let gradients = AttentionGradient { of: *self }.results(&operands)?;
            let wanted = gradients.into_iter().zip(v.wanted);
            found = wanted.map(|(gradient, wanted)| wanted.then_some(gradient)).collect();
        }
        found.extend(self.others(v.primals, given, v.wanted)?);
        Ok(found)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        joined(v, |operands| Ok(self.of(operands)?.into()))
    }
}

impl AttentionGradient {
    /// Splits the operands: queries, keys and values; the cotangent, logarithms and delta; and the optional ones.
    pub(super) fn parts<'a>(
        &self,
        operands: &'a [Array],
    ) -> ([&'a Array; 3], [&'a Array; 3], Extra<'a>) {
        let [q, k, v, cotangent, logarithms, delta, rest @ ..] = operands else {
            unreachable!("six operands at least")
        };
        ([q, k, v], [cotangent, logarithms, delta], self.of.extra(rest, false))
    }

    /// The gradients.
    fn results(self, operands: &[Array]) -> Result<Vec<Array>> {
        let of = |a: &Array| (Shape::from_slice(a.shape()), a.dtype());
        let results = operands[..3].iter().map(of).collect();
        let operands: SmallVec<[&Array; 8]> = operands.iter().collect();
        Array::multi_output(self, &operands, results)
    }
}

impl MultiOutputRules for AttentionGradient {
    fn name(&self) -> &'static str {
        "attention_gradient"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([b, h, m, _], [_, _, _, e])) = self
            .of
            .admitted(node, 6, false)
            .and_then(|(q, v)| Some((q.as_array()?, v.as_array()?)))
        else {
            return false;
        };
        let (rows, cotangent) = ([*b, *h, *m], [*b, *h, *m, *e]);
        node.follows(op::ATTENTION_GRADIENT, None, &self.of.names(false))
            && *node.inputs[3].0 == cotangent
            && *node.inputs[4].0 == rows
            && *node.inputs[5].0 == rows
            && node.outputs == &node.inputs[..3]
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let attributes = self.of.attributes(first(call), false, exec.deterministic.get());
        let scalars = self.of.scalars();
        call.run_multi_output(exec, op::ATTENTION_GRADIENT, &attributes, &scalars, results)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        Some(self.composed(operands))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        let shapes = r.inputs.iter().zip(before);
        Ok(shapes.map(|(shape, (_, dtype))| (Shape::from_slice(shape), *dtype)).collect())
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        joined(v, |operands| self.results(operands))
    }
}
