//! Reshapes and broadcasts whose sizes refer to axes of the operands.

use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::{batching, shapeless::shapeless};
use crate::ops::shape::axes::KeepDims;
use crate::ops::{
    Call, Cotangents, Draft, Fitted, Jvp, Op, Refit, Rules, Vjp, Vmap, attributes,
    create::fill::filled, shape::view::View,
};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, scalar::Scalar};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;

attributes! {
    /// One size of a result's shape, as recorded by a shapeless trace.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SymbolicSize {
        /// The same size for all operands.
        Fixed(size: usize),
        /// The size of an axis of an operand.
        Of(operand: u8, axis: u8),
        /// The product of the first operand's axes `from` (inclusive) to `to` (exclusive).
        Product(from: u8, to: u8),
        /// The first operand's number of elements divided by the product of the other sizes.
        Rest,
    }
}

/// The shape of a result, size by size.
pub(crate) type SymbolicShape = SmallVec<[SymbolicSize; 4]>;

impl SymbolicSize {
    /// The size of axis `axis` of the first operand.
    pub fn own(axis: usize) -> SymbolicSize {
        SymbolicSize::Of(0, axis as u8)
    }

    /// The size of axis `axis` of the first partner.
    pub fn partner(axis: usize) -> SymbolicSize {
        SymbolicSize::Of(1, axis as u8)
    }
}

attributes! {
    /// Rule by which the shape of a view follows its operands.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Form {
        /// Each size by its own rule.
        Sizes(sizes: SymbolicShape),
        /// The shape to which all operands broadcast.
        Common,
    }
}

attributes! {
    /// A reshape or broadcast of the first operand. The other operands provide only their shapes.
    #[derive(Clone, Debug)]
    pub(crate) struct Shaped {
        view: View,
        form: Form,
    }
}

impl Shaped {
    fn shape(&self, inputs: &[&[usize]]) -> Result<Shape> {
        match &self.form {
            Form::Common => (inputs.iter())
                .try_fold(Shape::new(), |shape, s| shape::broadcast_shapes(&shape, s)),
            Form::Sizes(sizes) => {
                let mut rest = None;
                let mut out = Shape::new();
                for (i, size) in sizes.iter().enumerate() {
                    out.push(match *size {
                        SymbolicSize::Fixed(n) => n,
                        SymbolicSize::Of(k, axis) => inputs[k as usize][axis as usize],
                        SymbolicSize::Product(a, b) => {
                            shape::size(&inputs[0][a as usize..b as usize])
                        }
                        SymbolicSize::Rest => {
                            rest = Some(i);
                            1
                        }
                    });
                }
                if let Some(i) = rest {
                    let known = shape::size(&out);
                    ensure!(
                        known != 0,
                        "reshape",
                        "Cannot infer the shape of an empty array. Pass all sizes instead of -1."
                    );
                    out[i] = shape::size(inputs[0]) / known;
                }
                Ok(out)
            }
        }
    }

    /// The first operand in the new shape.
    fn of(&self, a: &Array, partners: &[&Array]) -> Result<Array> {
        let mut inputs: SmallVec<[&Array; 4]> = smallvec![a];
        inputs.extend(partners.iter().copied());
        let shapes: SmallVec<[&[usize]; 4]> = inputs.iter().map(|a| a.shape()).collect();
        let shape = self.shape(&shapes)?;
        shape::check(self.name(), &shape)?;
        Array::try_of(self.clone(), &inputs, shape, a.dtype())
    }
}

impl Rules for Shaped {
    fn name(&self) -> &'static str {
        self.view.name()
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let (Some((from, dtype)), [(to, own)]) = (node.inputs.first(), node.outputs) else {
            return false;
        };
        let shapes: SmallVec<[&[usize]; 4]> = node.inputs.iter().map(|(s, _)| *s).collect();
        let is_there = |size: &SymbolicSize| match *size {
            SymbolicSize::Of(k, axis) => {
                shapes.get(k as usize).is_some_and(|s| usize::from(axis) < s.len())
            }
            SymbolicSize::Product(a, b) => a <= b && usize::from(b) <= from.len(),
            SymbolicSize::Fixed(_) | SymbolicSize::Rest => true,
        };
        let named = match &self.form {
            Form::Common => true,
            Form::Sizes(sizes) => sizes.iter().all(is_there),
        };
        let view = matches!(self.view, View::Broadcast | View::Reshape);
        let of = Draft { inputs: &[(*from, *dtype)], outputs: &[(*to, *own)] };
        view && named
            && self.shape(&shapes).is_ok_and(|shape| shape[..] == **to)
            && self.view.admits(&of)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let call = Call { inputs: &call.inputs[..1], descs: &call.descs[..1], ..*call };
        self.view.eval(exec, &call)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let shape = self.shape(r.inputs)?;
        let from = r.inputs[0];
        if matches!(self.view, View::Broadcast) {
            if shape::broadcast_shapes(from, &shape)? != shape {
                return Err(Error::Value(
                    format!(
                        "Cannot broadcast array of shape {} into shape {}. Compile without `shapeless`.",
                        Show(from),
                        Show(&shape)
                    )
                    .into(),
                ));
            }
        } else if shape::size(from) != shape::size(&shape) {
            let size = shape::size(from);
            bail!(
                "reshape",
                "Cannot reshape array of size {size} into shape {}. Compile without `shapeless`.",
                Show(&shape)
            );
        }
        r.view(self.view.clone(), shape)
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let mut out = Cotangents::from_elem(None, v.primals.len());
        let (x, c) = (&v.primals[0], v.cotangent);
        if !v.wanted[0] {
            return Ok(out);
        }
        let from = x.shape();
        let c = match self.view {
            View::Broadcast => {
                let lead = c.ndim() - from.len();
                let summed: SmallVec<[isize; 8]> = (0..c.ndim())
                    .filter(|i| *i < lead || from[i - lead] != c.shape()[*i])
                    .map(|i| i as isize)
                    .collect();
                c.sum(KeepDims(&summed))?
            }
            _ => c.clone(),
        };
        out[0] = Some(reshaped_like(&c, x)?);
        Ok(out)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let partners: SmallVec<[&Array; 4]> = j.primals[1..].iter().collect();
        j.tangents[0].as_ref().map(|t| self.of(t, &partners)).transpose()
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let (mapped, ndim) = (v.axes[0].is_some(), v.shape.len());
        let own = v.operands[0].ndim();
        // A broadcast inserts its new axes between the mapped axis and the operand's own.
        let lead = match self.view {
            View::Broadcast if mapped => ndim - own,
            _ => 0,
        };
        let at = |k: usize, axis: usize| match k {
            0 => SymbolicSize::own(axis + lead + mapped as usize),
            _ => SymbolicSize::Of(
                k as u8,
                (axis + v.axes[k].is_some_and(|m| m <= axis) as usize) as u8,
            ),
        };
        let common = |i: usize| {
            let from = |k: usize| {
                let shape = v.operands[k].shape();
                let axis = (i + shape.len()).checked_sub(ndim)?;
                (shape[axis] == v.shape[i]).then(|| at(k, axis))
            };
            (1..v.operands.len())
                .chain([0])
                .find_map(from)
                .unwrap_or(SymbolicSize::Fixed(v.shape[i]))
        };
        let mut mapped_sizes: SymbolicShape = (0..mapped as usize).map(SymbolicSize::own).collect();
        match &self.form {
            Form::Common => mapped_sizes.extend((0..ndim).map(common)),
            Form::Sizes(sizes) => mapped_sizes.extend(sizes.iter().map(|e| match *e {
                SymbolicSize::Of(k, axis) => at(k as usize, axis as usize),
                SymbolicSize::Product(a, b) => {
                    SymbolicSize::Product(a + mapped as u8, b + mapped as u8)
                }
                // The sizes are those of all examples together.
                other => other,
            })),
        }
        let mut a = v.inputs[0].clone();
        if let Some(axis) = v.axes[0] {
            a = batching::to_front(&a, axis)?;
        }
        if lead > 0 {
            let new = std::iter::repeat_n(SymbolicSize::Fixed(1), lead);
            let sizes = std::iter::once(SymbolicSize::own(0))
                .chain(new)
                .chain((1..=own).map(SymbolicSize::own));
            a = reshaped(&a, sizes.collect(), &[])?;
        }
        let partners: SmallVec<[&Array; 4]> = v.inputs[1..].iter().collect();
        let view = Shaped { view: self.view.clone(), form: Form::Sizes(mapped_sizes) };
        Ok((view.of(&a, &partners)?, mapped.then_some(0)))
    }
}

/// The elements of `a` in the shape `sizes`, which may refer to axes of `a` and of `partners`.
pub(crate) fn reshaped(a: &Array, sizes: SymbolicShape, partners: &[&Array]) -> Result<Array> {
    if shapeless() {
        return Shaped { view: View::Reshape, form: Form::Sizes(sizes) }.of(a, partners);
    }
    let mut shapes: SmallVec<[&[usize]; 4]> = smallvec![a.shape()];
    shapes.extend(partners.iter().map(|p| p.shape()));
    let form = Form::Sizes(sizes);
    let shape = Shaped { view: View::Reshape, form }.shape(&shapes)?;
    a.reshape(&shape)
}

/// The elements of `a` in the shape of `x`.
pub(crate) fn reshaped_like(a: &Array, x: &Array) -> Result<Array> {
    if !shapeless() {
        return a.reshape(x.shape());
    }
    reshaped(a, (0..x.ndim()).map(SymbolicSize::partner).collect(), &[x])
}

/// `a` broadcast to `shape`, the common shape of `a` and `partners`.
pub(crate) fn broadcast_with<'a>(
    a: &'a Array,
    shape: &[usize],
    partners: &[&Array],
) -> Result<Cow<'a, Array>> {
    if *a.shape() == *shape {
        return Ok(Cow::Borrowed(a));
    }
    Ok(Cow::Owned(match shapeless() {
        true => Shaped { view: View::Broadcast, form: Form::Common }.of(a, partners)?,
        false => a.broadcast_to(shape)?,
    }))
}

/// `a` broadcast to sizes that may refer to its own axes (`Of(0, ..)`) and its partner's.
pub(crate) fn broadcast_by(a: &Array, sizes: SymbolicShape, partners: &[&Array]) -> Result<Array> {
    let view = Shaped { view: View::Broadcast, form: Form::Sizes(sizes) };
    if shapeless() {
        return view.of(a, partners);
    }
    let mut shapes: SmallVec<[&[usize]; 4]> = smallvec![a.shape()];
    shapes.extend(partners.iter().map(|p| p.shape()));
    a.broadcast_to(&view.shape(&shapes)?)
}

/// `value` in the shape of `x`.
pub(crate) fn filled_like(x: &Array, value: Scalar) -> Array {
    let shape = Shape::from_slice(x.shape());
    if !shapeless() {
        return filled(shape, value);
    }
    let sizes = (0..x.ndim()).map(SymbolicSize::partner).collect();
    let form = Form::Sizes(sizes);
    let one = filled(Shape::new(), value);
    let op = Op::new(Shaped { view: View::Broadcast, form });
    Array::of(op, &[&one, x], shape, value.dtype())
}

/// Zeros in the shape of `x`.
pub(crate) fn zeros_like(x: &Array, dtype: Dtype) -> Array {
    filled_like(x, Scalar::from_i64(dtype, 0))
}

/// The sizes of a reshape that was requested with numbers; -1 stands for `inferred`.
pub(crate) fn literal(to: &[usize], inferred: Option<usize>) -> SymbolicShape {
    let size = |(i, n): (usize, &usize)| match inferred == Some(i) {
        true => SymbolicSize::Rest,
        false => SymbolicSize::Fixed(*n),
    };
    to.iter().enumerate().map(size).collect()
}

/// The sizes of a reshape that rules request: unchanged and merged axes follow the operand.
pub(crate) fn aligned(from: &[usize], to: &[usize]) -> SymbolicShape {
    if from.contains(&0) {
        return literal(to, None);
    }
    let (mut out, mut i) = (SymbolicShape::new(), 0);
    while out.len() < to.len() {
        let start = out.len();
        match from.get(i) {
            Some(n) if *n == to[start] => {
                out.push(SymbolicSize::own(i));
                i += 1;
            }
            _ if to[start] == 1 => out.push(SymbolicSize::Fixed(1)),
            Some(1) => i += 1,
            Some(_) => {
                let (mut end, first) = (start + 1, i);
                let (mut p, mut q) = (from[i], to[start]);
                i += 1;
                while p != q {
                    if p < q && i < from.len() {
                        p *= from[i];
                        i += 1;
                    } else if q < p && end < to.len() {
                        q *= to[end];
                        end += 1;
                    } else {
                        return literal(to, None);
                    }
                }
                if end == start + 1 {
                    out.push(SymbolicSize::Product(first as u8, i as u8));
                } else {
                    out.extend(to[start..end].iter().map(|n| SymbolicSize::Fixed(*n)));
                }
            }
            None => return literal(to, None),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_of_rules_follow_where_axes_align() {
        use SymbolicSize::*;
        let all = |from: &[usize], to: &[usize]| aligned(from, to).to_vec();
        assert_eq!(all(&[2, 3, 4], &[6, 4]), [Product(0, 2), Of(0, 2)]);
        assert_eq!(all(&[6, 4], &[2, 3, 4]), [Fixed(2), Fixed(3), Of(0, 1)]);
        assert_eq!(all(&[5, 4], &[5, 1, 4]), [Of(0, 0), Fixed(1), Of(0, 1)]);
        assert_eq!(all(&[5, 1, 4], &[5, 4]), [Of(0, 0), Of(0, 2)]);
        assert_eq!(all(&[5, 1], &[5]), [Of(0, 0)]);
        assert_eq!(all(&[2, 6], &[4, 3]), [Fixed(4), Fixed(3)]);
        assert_eq!(all(&[], &[1, 1]), [Fixed(1), Fixed(1)]);
        assert_eq!(all(&[3, 4], &[12]), [Product(0, 2)]);
    }
}
