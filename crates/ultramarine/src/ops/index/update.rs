//! Updates of views: writes to slices and diagonals.

use crate::backend::{Exec, Operand};
use crate::error::{Error, Result};
use crate::ops::create::alike::alike;
use crate::ops::nn::attention::repeats;
use crate::ops::rules::{batching, shapeless::cannot};
use crate::ops::shape::{
    concatenate::broadcast_constant, reshape::view, slice::slice_view, view::View,
};
use crate::ops::{
    Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes, create::fill,
};
use crate::placement::follow;
use crate::shape::{self, Shape};
use crate::{array::Array, dtype::Dtype, node::Value, scalar::Scalar};
use smallvec::smallvec;

impl Array {
    /// Returns the array with `update` written over `x[start:stop:step]`; positions are as in
    /// [`Array::slice`]. The update is broadcast to the slice and converted to the array's dtype.
    ///
    /// # Errors
    /// [`Error::Value`] when the update cannot be broadcast to the slice, or the lists'
    /// lengths are not the number of axes.
    pub fn slice_update(
        &self,
        update: &Array,
        start: &[isize],
        stop: &[isize],
        step: &[isize],
    ) -> Result<Array> {
        self.computable("slice_update")?;
        update.computable("slice_update")?;
        let (view, shape) = slice_view("slice_update", self.shape(), start, stop, step)?;
        let update = update.astype(self.dtype()).broadcast_to(&shape)?;
        self.written_over(update, view, &shape)
    }

    /// The array with `update` written over a slice. The update has the slice's shape and the array's dtype.
    pub(super) fn written_over(
        &self,
        update: Array,
        slice: View,
        shape: &[usize],
    ) -> Result<Array> {
        if shape.contains(&0) {
            return Ok(self.clone());
        }
        let forward =
            matches!(&slice, View::Slice { step, .. } if step.iter().all(|step| *step > 0));
        if *shape == *self.shape() && forward {
            return Ok(update);
        }
        match place_in_cache(self, &slice, shape) {
            Some((start, axis)) => self.slice_update_at(&update, &start, axis),
            None => Ok(Update(slice).apply(self, &update)),
        }
    }

    /// Returns a matrix of zeros with a 1-d array on its diagonal `k`. For a matrix it returns diagonal `k`. Positive
    /// `k` lie above the main diagonal.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1, 2], &[2])?.diag(0)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 0, 0, 2]);
    /// assert_eq!(x.diag(0)?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] for other numbers of dimensions.
    pub fn diag(&self, k: isize) -> Result<Array> {
        match self.ndim() {
            1 => {
                let n = self.size().saturating_add(k.unsigned_abs());
                shape::check("diag", &[n, n])?;
                let zeros = fill::filled(Shape::from_elem(n, 2), Scalar::from_i64(self.dtype(), 0));
                Ok(Update(View::Diagonal { offset: k, a: 0, b: 1 }).apply(&zeros, self))
            }
            2 => self.diagonal(k, 0, 1),
            n => Err(Error::value(
                "diag",
                format!("array must be 1-D or 2-D, got array with {n} dimensions. Reshape it."),
            )),
        }
    }
}

/// Largest size along the axis that counts as a step of a language model.
const MOST_STEPS: usize = 16;

/// The position of an update as an array, and its axis, if the update is a language model's step that writes to a
/// cache: along axis 2 of 4, on a device that records commands. The position changes with each step, so as an operand
/// it lets evaluations repeat.
fn place_in_cache(of: &Array, view: &View, shape: &[usize]) -> Option<(Array, isize)> {
    let View::Slice { start, step } = view else { return None };
    let whole = of.shape();
    let along = whole.len() == 4
        && [0, 1, 3].iter().all(|axis| shape[*axis] == whole[*axis])
        && shape[2] <= MOST_STEPS
        && shape[2] < whole[2]
        && step.iter().all(|s| *s == 1);
    if !along || !repeats(of) {
        return None;
    }
    let place = Scalar::from_i64(Dtype::Int32, i64::from(i32::try_from(start[2]).ok()?));
    let _home = follow(&[of]);
    Some((alike(Shape::from_slice(&[1]), place), 2))
}

attributes! {
    /// Operand 0 with operand 1 written over a view of it. The view is a slice or a diagonal, whose elements are all
    /// distinct. Operand 1 has the view's shape.
    #[derive(Clone, Debug)]
    pub(crate) struct Update(pub view: View);
}

impl Update {
    /// `base` with the viewed region replaced.
    pub fn apply(&self, base: &Array, update: &Array) -> Array {
        let update = broadcast_constant(update);
        Array::of(self.clone(), &[base, &update], Shape::from_slice(base.shape()), base.dtype())
    }
}

impl Rules for Update {
    fn name(&self) -> &'static str {
        "slice_update"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([source, update], out)) = node.of() else { return false };
        matches!(self.0, View::Slice { .. } | View::Diagonal { .. })
            && !out.1.is_storage()
            && source == out
            && self.0.admits(&Draft { inputs: &[source], outputs: &[update] })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let out = call.writable(exec, 0)?;
        let (shape, dtype) = call.descs[1];
        let part = self.0.part(&out, shape, dtype);
        exec.copy(call.operand(1), Operand { value: &part, shape, dtype })?;
        Ok(out)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let traced = [r.traced[0]];
        let part = Refit { traced: &traced, shape: r.traced[1], constants: &[], ..*r };
        let fitted = self.0.refit(&part)?;
        if fitted.shape[..] != *r.inputs[1] {
            return Err(cannot(self.name()));
        }
        let Some(view) = fitted.op.get::<View>() else { return Err(cannot(self.name())) };
        Ok(Fitted { op: Update(view.clone()).into(), ..r.first()? })
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (c, region) = (v.cotangent, Shape::from_slice(v.primals[1].shape()));
        let zeros = || fill::filled(region.clone(), Scalar::from_i64(c.dtype(), 0));
        let base = v.wanted[0].then(|| self.apply(c, &zeros()));
        let update = v.wanted[1].then(|| view(self.0.clone(), c, region.clone())).transpose()?;
        Ok(smallvec![base, update])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        if j.tangents.iter().all(Option::is_none) {
            return Ok(None);
        }
        let part = |i: usize| j.tangents[i].clone().unwrap_or_else(|| j.primals[i].zeros_like());
        Ok(Some(self.apply(&part(0), &part(1))))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let operands = batching::all_batched(v)?;
        let view = self.0.batched(&operands[0].shape()[1..], v.size);
        Ok((Update(view).apply(&operands[0], &operands[1]), Some(0)))
    }
}
