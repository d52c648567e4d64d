//! Arrays put together from others: they run as copies into parts of the output.

use super::{
    Call, Cotangents, Fitted, Jvp, Op, Refit, Rules, Vjp, Vmap, batch, fill, select::where_,
    shapeless, slice::slice_view, view::out_of_bounds, view_rules::View,
};
use crate::{
    array::Array,
    backend::{Exec, Operand},
    dtype::Dtype,
    error::{Error, Result},
    node::Value,
    placement::follow,
    scalar::Scalar,
    shape::{self, Shape, Show},
};
use smallvec::{SmallVec, smallvec};

/// The arrays one after the other along an axis, in their promoted dtype.
///
/// # Errors
/// [`Error::Value`] for no array, or shapes that differ elsewhere; [`Error::Index`] for
/// the axis.
pub fn concatenate(arrays: &[Array], axis: isize) -> Result<Array> {
    const OP: &str = "concatenate";
    let Some(first) = arrays.first() else {
        return Err(Error::value(OP, "No arrays provided for concatenation"));
    };
    if arrays.len() == 1 {
        return Ok(first.clone());
    }
    let at = out_of_bounds(OP, axis, first.ndim())?;
    let mut shape = Shape::from_slice(first.shape());
    let mut dtype = first.dtype();
    for a in &arrays[1..] {
        if a.ndim() != first.ndim() {
            return Err(Error::value(
                OP,
                format!(
                    "All the input arrays must have the same number of dimensions. However, got \
                     arrays with dimensions {} and {}.",
                    first.ndim(),
                    a.ndim()
                ),
            ));
        }
        if (0..shape.len()).any(|i| i != at && shape[i] != a.shape()[i]) {
            let shapes: Vec<String> = arrays.iter().map(|a| Show(a.shape()).to_string()).collect();
            return Err(Error::value(
                OP,
                format!(
                    "All the input array dimensions must match exactly except for the \
                     concatenation axis. However, the provided shapes are {}, and the \
                     concatenation axis is {axis}.",
                    shapes.join(", ")
                ),
            ));
        }
        shape[at] = shape[at].saturating_add(a.shape()[at]);
        dtype = dtype.promote(a.dtype());
    }
    shape::check(OP, &shape)?;
    let arrays: Vec<Array> = arrays.iter().map(|a| a.promoted(dtype)).collect();
    joined(&arrays, at, shape, dtype).placed()
}

fn joined(arrays: &[Array], axis: usize, shape: Shape, dtype: Dtype) -> Array {
    let arrays: SmallVec<[Array; 8]> = arrays.iter().map(lean_constant).collect();
    let inputs: SmallVec<[&Array; 8]> = arrays.iter().collect();
    Array::of(Concatenate { axis }, &inputs, shape, dtype)
}

/// The arrays along a new axis, in their promoted dtype.
///
/// # Errors
/// [`Error::Value`] for no array, or shapes that differ; [`Error::Index`] for the axis.
pub fn stack(arrays: &[Array], axis: isize) -> Result<Array> {
    let Some(first) = arrays.first() else {
        return Err(Error::value("stack", "No arrays provided for stacking"));
    };
    if arrays.iter().any(|a| a.shape() != first.shape()) {
        return Err(Error::value("stack", "All arrays must have the same shape"));
    }
    let at = out_of_bounds("stack", axis, first.ndim() + 1)? as isize;
    let parts: Vec<Array> = arrays.iter().map(|a| a.expand_dims(&[at])).collect::<Result<_>>()?;
    concatenate(&parts, at)
}

/// How [`Array::pad`] fills what it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// With a constant.
    Constant,
    /// With the nearest element.
    Edge,
    /// Mirrored, the edge not repeated.
    Reflect,
    /// Mirrored, the edge repeated.
    Symmetric,
}

impl PadMode {
    /// The mode of that name.
    ///
    /// # Errors
    /// [`Error::Value`] for another name.
    pub fn from_name(name: &str) -> Result<PadMode> {
        Ok(match name {
            "constant" => PadMode::Constant,
            "edge" => PadMode::Edge,
            "reflect" => PadMode::Reflect,
            "symmetric" => PadMode::Symmetric,
            _ => {
                return Err(Error::Value(format!("Invalid padding mode ({name}) passed to pad")));
            }
        })
    }
}

impl Array {
    /// The array with `update` (broadcast, and converted to its dtype) written over
    /// `x[start:stop:step]`; places as in [`Array::slice`].
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
        if shape.contains(&0) {
            return Ok(self.clone());
        }
        if shape[..] == *self.shape() && step.iter().all(|s| *s > 0) {
            return Ok(update);
        }
        Ok(Update(view).apply(self, &update))
    }

    /// More elements before and after each axis: `widths` has a pair for each axis.
    /// `value` is what [`PadMode::Constant`] fills with, converted to the array's dtype.
    ///
    /// # Errors
    /// [`Error::Value`] for another number of pairs, a value that cannot be broadcast,
    /// or mirrored padding of an empty axis.
    pub fn pad(&self, widths: &[(usize, usize)], mode: PadMode, value: &Array) -> Result<Array> {
        if widths.len() != self.ndim() {
            return Err(Error::Value(format!(
                "Invalid number of padding sizes passed to pad with axes of size {}",
                self.ndim()
            )));
        }
        self.computable("pad")?;
        value.computable("pad")?;
        if widths.iter().all(|w| *w == (0, 0)) {
            return Ok(self.clone());
        }
        let shape: Shape = (self.shape().iter().zip(widths))
            .map(|(n, (low, high))| n.saturating_add(*low).saturating_add(*high))
            .collect();
        shape::check("pad", &shape)?;
        if mode != PadMode::Constant {
            let mut a = self.clone();
            for (axis, (low, high)) in widths.iter().enumerate() {
                a = a.mirrored(axis, *low, *high, mode)?;
            }
            return Ok(a);
        }
        let start: SmallVec<[isize; 8]> = widths.iter().map(|w| w.0 as isize).collect();
        let stop: SmallVec<[isize; 8]> =
            start.iter().zip(self.shape()).map(|(a, n)| a + *n as isize).collect();
        let base = value.astype(self.dtype()).broadcast_to(&shape)?;
        base.slice_update(self, &start, &stop, &SmallVec::<[isize; 8]>::from_elem(1, self.ndim()))
    }

    /// One axis padded from its own elements.
    fn mirrored(&self, axis: usize, low: usize, high: usize, mode: PadMode) -> Result<Array> {
        let n = self.shape()[axis];
        if low + high == 0 {
            return Ok(self.clone());
        }
        if n == 0 {
            if mode == PadMode::Edge {
                let mut shape = Shape::from_slice(self.shape());
                shape[axis] = low + high;
                return Array::zeros(&shape, self.dtype());
            }
            let name = if mode == PadMode::Reflect { "reflect" } else { "symmetric" };
            return Err(Error::value(
                "pad",
                format!("Cannot pad empty axis {axis} using mode '{name}'."),
            ));
        }
        // Edges, and mirrors of a single element, are that element again and again.
        if mode == PadMode::Edge || n == 1 {
            let edge = |from: usize, size: usize| {
                let mut shape = Shape::from_slice(self.shape());
                shape[axis] = size;
                self.along(axis, from, from + 1, 1)?.broadcast_to(&shape)
            };
            return concatenate(&[edge(0, low)?, self.clone(), edge(n - 1, high)?], axis as isize);
        }
        // A reflection leaves out the element that it is mirrored at.
        let skip = (mode == PadMode::Reflect) as usize;
        let period = n - skip;
        if low <= period && high <= period {
            let left = self.along(axis, skip, skip + low, -1)?;
            let right = self.along(axis, n - skip - high, n - skip, -1)?;
            return concatenate(&[left, self.clone(), right], axis as isize);
        }
        // Images of the array by turns: as it is, reversed ... A turn and its reverse
        // are a cycle, and the array begins at its `low`-th element from the end.
        let cycle = 2 * period;
        let first = (cycle - low % cycle) % cycle;
        let _home = follow(&[self]);
        let number = |i: usize| Array::scalar(i as i64);
        let stop = (first + low + n + high) as f64;
        let turn = Array::arange(first as f64, stop, 1.0, Dtype::Int64)?;
        let turn = turn.remainder(&number(cycle))?;
        let back = number(cycle + skip - 1).subtract(&turn)?;
        self.take(&where_(&turn.less(&number(n))?, &turn, &back)?, Some(axis as isize))
    }

    /// Each element `repeats` times in a row along an axis (`None`: of the flat array).
    ///
    /// # Errors
    /// [`Error::Index`] for the axis; [`Error::Value`] when the result is too large.
    pub fn repeat(&self, repeats: usize, axis: Option<isize>) -> Result<Array> {
        let Some(axis) = axis else { return self.flatten(0, -1)?.repeat(repeats, Some(0)) };
        let at = out_of_bounds("repeat", axis, self.ndim())?;
        if repeats == 1 {
            return Ok(self.clone());
        }
        let mut shape = Shape::from_slice(self.shape());
        shape.insert(at + 1, repeats);
        let mut flat = Shape::from_slice(self.shape());
        flat[at] = flat[at].saturating_mul(repeats);
        shape::check("repeat", &flat)?;
        self.expand_dims(&[at as isize + 1])?.broadcast_to(&shape)?.reshape(&flat)
    }

    /// The array repeated `reps[i]` times along axis `i`; missing axes and counts in
    /// front are 1.
    ///
    /// # Errors
    /// [`Error::Value`] when the result is too large.
    pub fn tile(&self, reps: &[usize]) -> Result<Array> {
        let ndim = self.ndim().max(reps.len());
        let (lead, missing) = (ndim - self.ndim(), ndim - reps.len());
        let (mut cut, mut wide, mut flat) = (Shape::new(), Shape::new(), Shape::new());
        for i in 0..ndim {
            let n = if i < lead { 1 } else { self.shape()[i - lead] };
            let r = if i < missing { 1 } else { reps[i - missing] };
            if r != 1 {
                cut.push(1);
                wide.push(r);
            }
            cut.push(n);
            wide.push(n);
            flat.push(n.saturating_mul(r));
        }
        shape::check("tile", &flat)?;
        self.reshape(&cut)?.broadcast_to(&wide)?.reshape(&flat)
    }

    /// The elements moved on by `shifts[i]` places along `axes[i]`, those beyond the
    /// end to the front. Without axes: of the flat array, by the sum of the shifts.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis; [`Error::Value`] for fewer shifts than axes.
    pub fn roll(&self, shifts: &[isize], axes: Option<&[isize]>) -> Result<Array> {
        let Some(axes) = axes else {
            let shift = shifts.iter().fold(0isize, |a, b| a.wrapping_add(*b));
            let flat = self.flatten(0, -1)?;
            return flat.roll(&[shift], Some(&[0]))?.reshape(self.shape());
        };
        if shifts.len() < axes.len() {
            return Err(Error::value(
                "roll",
                format!(
                    "At least one shift value per axis is required, {} provided for {} axes.",
                    shifts.len(),
                    axes.len()
                ),
            ));
        }
        let mut a = self.clone();
        for (shift, axis) in shifts.iter().zip(axes) {
            let at = shape::normalize_axis("roll", *axis, self.ndim())?;
            let n = self.shape()[at];
            let shift = if n == 0 { 0 } else { shift.rem_euclid(n as isize) as usize };
            if shift != 0 {
                let parts = [a.along(at, n - shift, n, 1)?, a.along(at, 0, n - shift, 1)?];
                a = concatenate(&parts, at as isize)?;
            }
        }
        Ok(a)
    }

    /// The Kronecker product: every element of `self` times all of `other`.
    ///
    /// # Errors
    /// [`Error::Value`] when the result is too large or has too many dimensions.
    pub fn kron(&self, other: &Array) -> Result<Array> {
        let ndim = self.ndim().max(other.ndim());
        let padded = |a: &Array| -> Shape {
            let mut shape = Shape::from_elem(1, ndim - a.ndim());
            shape.extend_from_slice(a.shape());
            shape
        };
        let (a, b) = (padded(self), padded(other));
        let pairs = |even: &dyn Fn(usize) -> usize, odd: &dyn Fn(usize) -> usize| -> Shape {
            (0..ndim).flat_map(|i| [even(i), odd(i)]).collect()
        };
        let left = self.reshape(&pairs(&|i| a[i], &|_| 1))?;
        let right = other.reshape(&pairs(&|_| 1, &|i| b[i]))?;
        let flat: Shape = (0..ndim).map(|i| a[i].saturating_mul(b[i])).collect();
        shape::check("kron", &flat)?;
        left.multiply(&right)?.reshape(&flat)
    }

    /// A 1-d array as the `k`-th diagonal of a matrix of zeros; of a matrix, that
    /// diagonal.
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
                format!("array must be 1-D or 2-D, got array with {n} dimensions."),
            )),
        }
    }
}

/// A constant as one element that is broadcast: copying it reads nothing else. (As a
/// constant of its full shape it would be written out first.)
fn lean_constant(a: &Array) -> Array {
    match a.node().constant().filter(|_| !shapeless::shapeless()) {
        Some(value) if a.size() > 1 => {
            let one = fill::filled(Shape::new(), value);
            Array::of(View::Broadcast, &[&one], Shape::from_slice(a.shape()), a.dtype())
        }
        _ => a.clone(),
    }
}

impl Call<'_> {
    /// The memory of operand `i`, row-major, if nobody else needs it.
    pub(crate) fn donated(&self, exec: &Exec, i: usize) -> Option<Value> {
        let (value, (shape, dtype)) = (&self.inputs[i], self.descs[i]);
        let own = self.donatable >> i & 1 == 1
            && value.offset == 0
            && value.buffer.bytes() == shape::size(shape) * dtype.size()
            && shape::is_contiguous(shape, &value.strides);
        own.then(|| exec.donate(value))
    }

    /// A row-major array with the elements of operand `i`, to be written into: its
    /// own memory if nobody else needs it, else a copy. It has the result's shape and
    /// dtype.
    pub(crate) fn writable(&self, exec: &Exec, i: usize) -> Result<Value> {
        let (value, (shape, dtype)) = (&self.inputs[i], self.descs[i]);
        if let Some(own) = self.donated(exec, i) {
            return Ok(own);
        }
        let copy = exec.alloc(shape, dtype)?;
        let operand = |value| Operand { value, shape, dtype };
        exec.copy(operand(value), operand(&copy))?;
        Ok(copy)
    }
}

/// Operand 0 with operand 1 written over a view of it (a slice or a diagonal, whose
/// elements are all different). Operand 1 has the view's shape.
#[derive(Clone, Debug)]
pub(crate) struct Update(pub View);

impl Update {
    /// `base` with the region replaced.
    pub fn apply(&self, base: &Array, update: &Array) -> Array {
        let update = lean_constant(update);
        Array::of(self.clone(), &[base, &update], Shape::from_slice(base.shape()), base.dtype())
    }
}

impl Rules for Update {
    fn name(&self) -> &'static str {
        "slice_update"
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
            return Err(shapeless::cannot(self.name()));
        }
        let Op::View(view) = fitted.op else { return Err(shapeless::cannot(self.name())) };
        Ok(Fitted { op: Update(view).into(), ..r.first()? })
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (c, region) = (v.cotangent, Shape::from_slice(v.primals[1].shape()));
        let zeros = || fill::filled(region.clone(), Scalar::from_i64(c.dtype(), 0));
        let base = v.wanted[0].then(|| self.apply(c, &zeros()));
        let update = v.wanted[1]
            .then(|| super::view::view(self.0.clone(), c, region.clone()))
            .transpose()?;
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
        let operands = batch::all_batched(v)?;
        let view = self.0.batched(&operands[0].shape()[1..], v.size);
        Ok((Update(view).apply(&operands[0], &operands[1]), Some(0)))
    }
}

/// Operands one after the other along `axis`; all of the result's dtype.
#[derive(Clone, Debug)]
pub(crate) struct Concatenate {
    axis: usize,
}

impl Rules for Concatenate {
    fn name(&self) -> &'static str {
        "concatenate"
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
        let parts = batch::all_batched(v)?;
        let shape = batch::batched_shape(v);
        shape::check(self.name(), &shape)?;
        Ok((joined(&parts, self.axis + 1, shape, v.dtype), Some(0)))
    }
}
