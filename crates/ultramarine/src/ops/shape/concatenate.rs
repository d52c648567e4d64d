//! Concatenations: arrays copied into parts of one output.

use crate::backend::{Exec, Operand};
use crate::error::{Result, bail, ensure};
use crate::ops::rules::builders::flat;
use crate::ops::rules::{batching, shapeless::shapeless};
use crate::ops::shape::{
    axes::{Axis, one},
    reshape::out_of_bounds,
    view::View,
};
use crate::ops::{
    Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes, create::fill, draft,
};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, arrays::Arrays, dtype::Dtype, node::Value};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Joins arrays along an existing axis (`..`: along the axis of the flattened arrays). The arrays
/// agree in rank and in all other sizes. The result has their promoted dtype.
///
/// # Errors
/// [`crate::Error::Value`] for no array, or shapes that differ elsewhere; [`crate::Error::Index`] for
/// the axis.
///
/// ```
/// use ultramarine::{Array, concatenate};
/// let (x, y) = (Array::from_slice(&[1, 2], &[2])?, Array::from_slice(&[3], &[1])?);
/// assert_eq!(concatenate(&[&x, &y, &x], 0)?.to_vec::<i32>()?, [1, 2, 3, 1, 2]);
/// assert_eq!(concatenate(&[&x.reshape(&[1, 2])?, &y], ..)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn concatenate(arrays: impl Arrays, axis: impl Into<Axis>) -> Result<Array> {
    match axis.into().number() {
        Some(axis) => concatenated(&arrays.borrowed(), axis),
        None => {
            let rows: Vec<Array> =
                arrays.borrowed().into_iter().map(flat).collect::<Result<_>>()?;
            concatenated(&rows.borrowed(), 0)
        }
    }
}

fn concatenated(arrays: &[&Array], axis: isize) -> Result<Array> {
    const OP: &str = "concatenate";
    let Some(first) = arrays.first() else {
        bail!(OP, "No arrays provided for concatenation. Pass at least one.")
    };
    if arrays.len() == 1 {
        return Ok(Array::clone(first));
    }
    let at = out_of_bounds(OP, axis, first.ndim())?;
    let mut shape = Shape::from_slice(first.shape());
    let mut dtype = first.dtype();
    for a in &arrays[1..] {
        ensure!(
            a.ndim() == first.ndim(),
            OP,
            "All the input arrays must have the same number of dimensions. However, got \
             arrays with dimensions {} and {}. Reshape or expand them.",
            first.ndim(),
            a.ndim()
        );
        if (0..shape.len()).any(|i| i != at && shape[i] != a.shape()[i]) {
            let shapes: Vec<String> = arrays.iter().map(|a| Show(a.shape()).to_string()).collect();
            bail!(
                OP,
                "All the input array dimensions must match exactly except for the \
                 concatenation axis. However, the provided shapes are {}, and the \
                 concatenation axis is {axis}. Pad, slice or broadcast the other axes.",
                shapes.join(", ")
            );
        }
        shape[at] = shape[at].saturating_add(a.shape()[at]);
        dtype = dtype.promote(a.dtype());
    }
    shape::check(OP, &shape)?;
    let arrays: SmallVec<[Cow<'_, Array>; 8]> = arrays.iter().map(|a| a.promoted(dtype)).collect();
    joined(&arrays, at, shape, dtype).placed()
}

fn joined(arrays: &[impl AsRef<Array>], axis: usize, shape: Shape, dtype: Dtype) -> Array {
    let arrays: SmallVec<[Cow<'_, Array>; 8]> =
        arrays.iter().map(|a| broadcast_constant(a.as_ref())).collect();
    let inputs: SmallVec<[&Array; 8]> = arrays.iter().map(|a| &**a).collect();
    Array::of(Concatenate { axis }, &inputs, shape, dtype)
}

/// Joins arrays of one shape along a new axis: `k` arrays of shape `(m, n)` give `(k, m, n)` for
/// axis 0, `(m, n, k)` for axis -1. The result has their promoted dtype.
///
/// ```
/// use ultramarine::{Array, stack};
/// let (x, y) = (Array::from_slice(&[1, 2], &[2])?, Array::from_slice(&[3, 4], &[2])?);
/// assert_eq!(stack(&[&x, &y], 0)?.to_vec::<i32>()?, [1, 2, 3, 4]);
/// assert_eq!(stack(&[&x, &y], 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Value`] for no array, or shapes that differ; [`crate::Error::Index`] for the axis.
pub fn stack(arrays: impl Arrays, axis: impl Into<Axis>) -> Result<Array> {
    stacked(&arrays.borrowed(), one("stack", axis)?)
}

fn stacked(arrays: &[&Array], axis: isize) -> Result<Array> {
    let Some(first) = arrays.first() else {
        bail!("stack", "No arrays provided for stacking. Pass at least one.")
    };
    if let Some(other) = arrays.iter().find(|a| a.shape() != first.shape()) {
        bail!(
            "stack",
            "All arrays must have the same shape, but got {} and {}. Reshape, pad or slice them.",
            Show(first.shape()),
            Show(other.shape())
        );
    }
    let at = out_of_bounds("stack", axis, first.ndim() + 1)? as isize;
    let parts: Vec<Array> = arrays.iter().map(|a| a.expand_dims([at])).collect::<Result<_>>()?;
    concatenate(&parts, at)
}

attributes! {
    /// The operands joined along `axis`. All have the result's dtype.
    #[derive(Clone, Debug)]
    pub(crate) struct Concatenate {
        axis: usize,
    }
}

impl Rules for Concatenate {
    fn name(&self) -> &'static str {
        "concatenate"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let [(shape, dtype)] = *node.outputs else { return false };
        let fits =
            |(of, own): &(&[usize], Dtype)| *own == dtype && draft::agree_but(self.axis, of, shape);
        let mut sizes = node.inputs.iter().map(|(of, _)| of[self.axis]);
        !dtype.is_storage()
            && node.inputs.iter().all(fits)
            && sizes.try_fold(0usize, |sum, n| sum.checked_add(n)) == Some(shape[self.axis])
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let out = exec.alloc(call.shape, call.dtype)?;
        let mut at = 0;
        for (value, (shape, dtype)) in call.inputs.iter().zip(call.descs) {
            if !shape.contains(&0) {
                let skipped = at * out.strides[self.axis] as usize * dtype.size();
                let part = Value { offset: out.offset + skipped, ..out.clone() };
                exec.copy(
                    Operand { value, shape, dtype: *dtype },
                    Operand { value: &part, shape, dtype: *dtype },
                )?;
            }
            at += shape[self.axis];
        }
        Ok(out)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.agree_but(self.axis)?;
        let mut shape = Shape::from_slice(r.inputs[0]);
        shape[self.axis] = r.inputs.iter().map(|s| s[self.axis]).sum();
        r.same(shape)
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let mut at = 0;
        let mut out = Cotangents::new();
        for (x, wanted) in v.primals.iter().zip(v.wanted) {
            let n = x.shape()[self.axis];
            out.push(wanted.then(|| v.cotangent.along(self.axis, at, at + n, 1)).transpose()?);
            at += n;
        }
        Ok(out)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        if j.tangents.iter().all(Option::is_none) {
            return Ok(None);
        }
        let parts: Vec<Array> = (j.tangents.iter().zip(j.primals))
            .map(|(t, x)| t.clone().unwrap_or_else(|| x.zeros_like()))
            .collect();
        let shape = Shape::from_slice(j.output.shape());
        Ok(Some(joined(&parts, self.axis, shape, j.output.dtype())))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let parts = batching::all_batched(v)?;
        let shape = batching::batched_shape(v);
        shape::check(self.name(), &shape)?;
        Ok((joined(&parts, self.axis + 1, shape, v.dtype), Some(0)))
    }
}

/// A constant as one broadcast element, so that copying it reads no other memory. (As a constant of its full shape it
/// would be written to memory first.)
pub(crate) fn broadcast_constant(a: &Array) -> Cow<'_, Array> {
    match a.node().constant().filter(|_| !shapeless()) {
        Some(value) if a.size() > 1 => {
            let one = fill::filled(Shape::new(), value);
            let shape = Shape::from_slice(a.shape());
            Cow::Owned(Array::of(View::Broadcast, &[&one], shape, a.dtype()))
        }
        _ => Cow::Borrowed(a),
    }
}
