//! Writes through index arrays, and the public functions for them.

use crate::error::{Error, Result};
use crate::ops::index::bounds;
use crate::ops::index::gather::{
    IndexAxes, axes_attr, batch_index, common, gather, gathered, is_gather,
};
use crate::ops::rules::builders::{bin, flat, like, move_axis, plus, un, with_axis};
use crate::ops::rules::shapeless::{self, zeros_like};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes, draft,
    rules::batching::{all_batched, batched},
};
use crate::{array::Array, backend::Exec, node::Value, shape::Shape};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{ScatterAttrs, ScatterAxisAttrs, binary, op, scatter as kind, unary};

/// Returns `source` combined with `updates` at the positions that `indices` give along `axes`, by a
/// code of [`kind`]. The updates have the shape of [`gather`]'s result and the source's dtype. The
/// indices have one shape and integer dtype. Indices out of bounds are skipped.
///
/// # Errors
/// None at present.
pub(crate) fn scatter(
    source: &Array,
    indices: &[Array],
    updates: &Array,
    axes: &[u8],
    kind: u32,
) -> Result<Array> {
    let index = indices.first().map_or(&[][..], |i| i.shape());
    debug_assert_eq!(gathered(source.shape(), index, axes)[..], *updates.shape());
    if updates.size() == 0 || source.size() == 0 {
        return Ok(source.clone());
    }
    let mut inputs: SmallVec<[&Array; 4]> = smallvec![source];
    inputs.extend(indices);
    inputs.push(updates);
    let shape = Shape::from_slice(source.shape());
    Array::try_of(Scatter { kind, axes: axes.into() }, &inputs, shape, source.dtype())
}

impl Array {
    /// Returns the array with `values` written along `axis`, by an index for each value: the
    /// reverse of [`Array::take_along_axis`]. The values are broadcast to the indices' shape and
    /// converted to the array's dtype. With `None` the indices refer to the flattened array, and
    /// the shape is kept. Values for indices out of bounds are dropped.
    ///
    /// # Errors
    /// As [`Array::take_along_axis`]; [`crate::Error::Value`] when the values cannot
    /// be broadcast.
    pub fn put_along_axis(
        &self,
        indices: &Array,
        values: &Array,
        axis: Option<isize>,
    ) -> Result<Array> {
        values.computable("put_along_axis")?;
        let Some(axis) = axis else {
            let out = flat(self)?.put_along_axis(indices, values, Some(0))?;
            return out.reshape(self.shape());
        };
        let (source, indices, axis) = self.along_axis("put_along_axis", indices, axis)?;
        let values = values.astype(self.dtype()).broadcast_to(indices.shape())?;
        source.put_axis(&indices, &values, axis, kind::SET)
    }

    /// SCATTER_AXIS for operands that agree in all axes but `axis`.
    pub(crate) fn put_axis(
        &self,
        indices: &Array,
        updates: &Array,
        axis: usize,
        kind: u32,
    ) -> Result<Array> {
        if updates.size() == 0 || self.size() == 0 {
            return Ok(self.clone());
        }
        let shape = Shape::from_slice(self.shape());
        let op = ScatterAxis { kind, axis };
        Array::try_of(op, &[self, indices, updates], shape, self.dtype())
    }

    /// `self[.., indices[.., i, ..], ..] += updates[.., i, ..]`
    pub(crate) fn scatter_add_axis(
        &self,
        indices: &Array,
        updates: &Array,
        axis: usize,
    ) -> Result<Array> {
        self.put_axis(indices, updates, axis, kind::SUM)
    }
}

attributes! {
    /// SCATTER. The operands are the source, an index array for each axis, and the updates.
    #[derive(Clone, Debug)]
    pub(crate) struct Scatter {
        /// A code of [`kind`].
        kind: u32,
        axes: IndexAxes,
    }
}

/// The operands of a scatter.
struct Parts<'a> {
    source: &'a Array,
    indices: &'a [Array],
    updates: &'a Array,
}

impl Scatter {
    fn parts<'a>(&self, operands: &'a [Array]) -> Parts<'a> {
        let last = operands.len() - 1;
        Parts { source: &operands[0], indices: &operands[1..last], updates: &operands[last] }
    }

    fn with(&self, source: &Array, p: &Parts<'_>, updates: &Array, kind: u32) -> Result<Array> {
        scatter(source, p.indices, updates, &self.axes, kind)
    }

    fn read(&self, from: &Array, p: &Parts<'_>) -> Result<Array> {
        gather(from, p.indices, &self.axes)
    }

    /// For MIN and MAX: 1 where an element of the source or an update equals the result, else 0.
    fn winners(&self, p: &Parts<'_>, output: &Array) -> Result<(Array, Array)> {
        let dtype = output.dtype();
        let kept = bin(binary::EQUAL, p.source, output)?.astype(dtype);
        let taken = bin(binary::EQUAL, p.updates, &self.read(output, p)?)?.astype(dtype);
        Ok((kept, taken))
    }

    /// The factors by which a PROD multiplies the source.
    fn factors(&self, p: &Parts<'_>) -> Result<Array> {
        self.with(&Array::full(p.source.shape(), like_one(p.source))?, p, p.updates, kind::PROD)
    }
}

fn like_one(a: &Array) -> crate::Scalar {
    crate::Scalar::from_i64(a.dtype(), 1)
}

fn conjugate(a: &Array) -> Array {
    if a.dtype().is_complex() { un(unary::CONJUGATE, a) } else { a.clone() }
}

/// The memory to write to: the source's memory if nothing else needs it, else new memory.
fn output(exec: &Exec, call: &Call<'_>) -> Result<Value> {
    match call.donated(exec, 0) {
        Some(value) => Ok(value),
        None => exec.alloc(call.shape, call.dtype),
    }
}

impl Rules for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let [source, indices @ .., (updates, _)] = node.inputs else { return false };
        node.follows(op::SCATTER, Some(self.kind), &[])
            && node.outputs == [*source]
            && is_gather(source.0, indices, &self.axes, updates)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let updates = call.descs[call.descs.len() - 1].0;
        let index_ndim = (updates.len() - call.shape.len()) as u32;
        let n = self.axes.len() as u32;
        let attrs = ScatterAttrs::new(self.kind, n, index_ndim, axes_attr(&self.axes));
        bounds::validate(self.name(), exec, call, &self.axes)?;
        call.run_into(exec, output(exec, call)?, op::SCATTER, &attrs, &[])
    }

    /// The derivative with respect to a product's updates divides by the update, so an update of
    /// zero gets NaN. (MLX has no rule for products.)
    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let last = r.inputs.len() - 1;
        let shape = gathered(r.inputs[0], r.inputs[1.min(last - 1)], &self.axes);
        if last > 1 && shape[..] != *r.inputs[last] {
            return Err(shapeless::cannot(self.name()));
        }
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let p = self.parts(v.primals);
        let ct = v.cotangent;
        let (source, updates) = match self.kind {
            kind::SET => {
                let zeros = zeros_like(p.updates, ct.dtype());
                (self.with(ct, &p, &zeros, kind::SET)?, self.read(ct, &p)?)
            }
            kind::SUM => (ct.clone(), self.read(ct, &p)?),
            kind::PROD => {
                let by = conjugate(&self.factors(&p)?);
                let whole = ct.multiply(conjugate(v.output))?;
                let updates = bin(binary::DIVIDE, &self.read(&whole, &p)?, &conjugate(p.updates))?;
                (ct.multiply(&by)?, updates)
            }
            _ => {
                let (kept, taken) = self.winners(&p, v.output)?;
                (ct.multiply(&kept)?, taken.multiply(&self.read(ct, &p)?)?)
            }
        };
        let mut out = Cotangents::from_elem(None, v.primals.len());
        out[0] = Some(source);
        if let Some(last) = out.last_mut() {
            *last = Some(updates);
        }
        Ok(out)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let p = self.parts(j.primals);
        let (ts, tu) = (&j.tangents[0], &j.tangents[j.tangents.len() - 1]);
        if ts.is_none() && tu.is_none() {
            return Ok(None);
        }
        let zeros = |a: &Array| -> Result<Array> { Ok(zeros_like(a, a.dtype())) };
        let or = |t: &Option<Array>, a: &Array| match t {
            Some(t) => Ok(t.clone()),
            None => zeros(a),
        };
        Ok(match self.kind {
            kind::SET | kind::SUM => {
                Some(self.with(&or(ts, p.source)?, &p, &or(tu, p.updates)?, self.kind)?)
            }
            kind::PROD => {
                let left = match ts {
                    Some(t) => Some(t.multiply(&self.factors(&p)?)?),
                    None => None,
                };
                let right = match tu {
                    Some(t) => {
                        let rates = bin(binary::DIVIDE, t, p.updates)?;
                        let sum = self.with(&zeros(p.source)?, &p, &rates, kind::SUM)?;
                        Some(sum.multiply(j.output)?)
                    }
                    None => None,
                };
                plus(left, right)?
            }
            _ => {
                let (kept, taken) = self.winners(&p, j.output)?;
                let base = kept.multiply(&or(ts, p.source)?)?;
                let updates = taken.multiply(&or(tu, p.updates)?)?;
                Some(self.with(&base, &p, &updates, kind::SUM)?)
            }
        })
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::scatter_candidates(self.kind, &self.axes, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let p = self.parts(v.inputs);
        let last = v.axes.len() - 1;
        let indexed = v.axes[1..last].iter().any(Option::is_some);
        if v.axes.iter().all(Option::is_none) {
            return Ok((scatter(p.source, p.indices, p.updates, &self.axes, self.kind)?, None));
        }
        let source = batched(p.source, v.axes[0], v.size)?;
        let mut axes: IndexAxes = self.axes.iter().map(|a| a + 1).collect();
        let ndim = p.updates.ndim() - v.axes[last].is_some() as usize - v.shape.len();
        let updates = batched(p.updates, v.axes[last], v.size)?;
        let out = if indexed {
            // The mapped axis is indexed, as the other indexed axes are.
            let mut all = p
                .indices
                .iter()
                .zip(&v.axes[1..last])
                .map(|(i, at)| batched(i, *at, v.size))
                .collect::<Result<Vec<_>>>()?;
            all.push(batch_index(all[0].shape())?);
            axes.push(0);
            let updates = with_axis(&updates, 1 + ndim)?;
            scatter(&source, &common("scatter", &all)?, &updates, &axes, self.kind)?
        } else {
            // The mapped axis is a part of each slice.
            let updates = move_axis(&updates, 0, ndim)?;
            scatter(&source, p.indices, &updates, &axes, self.kind)?
        };
        Ok((out, Some(0)))
    }
}

attributes! {
    /// SCATTER_AXIS. The operands are the source, the indices and the updates.
    #[derive(Clone, Debug)]
    pub(crate) struct ScatterAxis {
        /// SET or SUM of [`kind`].
        pub kind: u32,
        pub axis: usize,
    }
}

impl Rules for ScatterAxis {
    fn name(&self) -> &'static str {
        "put_along_axis"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([source, (indices, _), (updates, _)], out)) = node.of() else { return false };
        node.follows(op::SCATTER_AXIS, Some(self.kind), &[])
            && source == out
            && draft::agree_but(self.axis, source.0, indices)
            && indices == updates
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let attrs = ScatterAxisAttrs::new(self.kind, self.axis as u32);
        bounds::validate(self.name(), exec, call, &[self.axis as u8])?;
        call.run_into(exec, output(exec, call)?, op::SCATTER_AXIS, &attrs, &[])
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.agree_but(self.axis)?;
        if r.inputs[1] != r.inputs[2] {
            return Err(shapeless::cannot(self.name()));
        }
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (indices, ct) = (&v.primals[1], v.cotangent);
        let source = match self.kind {
            kind::SET => {
                let zeros = like(ct, 0.0).broadcast_to(indices.shape())?;
                ct.put_axis(indices, &zeros, self.axis, kind::SET)?
            }
            _ => ct.clone(),
        };
        Ok(smallvec![Some(source), None, Some(ct.gather_axis(indices, self.axis))])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let (ts, tu) = (&j.tangents[0], &j.tangents[2]);
        if ts.is_none() && tu.is_none() {
            return Ok(None);
        }
        let or = |t: &Option<Array>, a: &Array| match t {
            Some(t) => Ok(t.clone()),
            None => Ok::<_, Error>(zeros_like(a, a.dtype())),
        };
        let (source, updates) = (or(ts, &j.primals[0])?, or(tu, &j.primals[2])?);
        source.put_axis(&j.primals[1], &updates, self.axis, self.kind).map(Some)
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::scatter_axis_candidates(self, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let operands = all_batched(v)?;
        let (indices, updates) = (&operands[1], &operands[2]);
        Ok((operands[0].put_axis(indices, updates, self.axis + 1, self.kind)?, Some(0)))
    }
}
