//! Shapes that follow their operands. A graph that was traced shapeless is fitted to other sizes of its arguments: each
//! node is asked for its operation and shape among operands of new sizes ([`Rules::refit`]).
//!
//! While such a trace is under way ([`Shapeless`]), what would fix a size by the operands of the moment is recorded as
//! what it means: a broadcast to the shape of a partner has the partner as an operand that only lends its shape, a
//! reshape knows which sizes are its operand's ([`Extent`]), a mean counts its elements when they are known. These nodes exist
//! in traces only; fitted graphs have ordinary ones in their place. (MLX's tracing does the same with its `Broadcast`,
//! `ExpandDims`, `Flatten` and `NumberOfElements`.)

use super::{
    Call, Cotangents, Jvp, Op, Rules, Vjp, Vmap, batch,
    fill::{Fill, filled},
    view_rules::View,
};
use crate::{
    array::Array,
    backend::Exec,
    dtype::Dtype,
    error::{Error, Result},
    node::Value,
    scalar::Scalar,
    shape::{self, Shape, Show},
};
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;
use ultramarine_abi::schema::{NoAttrs, op};

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread records shapes that follow.
pub(crate) struct Shapeless {
    before: bool,
}

impl Shapeless {
    /// Starts such a trace, or (`false`) lets an ordinary one take place inside of one.
    pub fn begin(on: bool) -> Shapeless {
        Shapeless { before: ON.replace(on) }
    }
}

impl Drop for Shapeless {
    fn drop(&mut self) {
        ON.set(self.before);
    }
}

/// Whether this thread records shapes that follow.
#[inline]
pub(crate) fn shapeless() -> bool {
    ON.get()
}

/// A node that is to be fitted to operands of other sizes. Dtypes and numbers of dimensions are as traced.
pub(crate) struct Refit<'a> {
    /// The traced operation.
    pub op: &'a Op,
    /// The operands' shapes when traced.
    pub traced: &'a [&'a [usize]],
    /// Their shapes now.
    pub inputs: &'a [&'a [usize]],
    /// Values of operands that are constants.
    pub constants: &'a [Option<Scalar>],
    /// The result's shape when traced.
    pub shape: &'a [usize],
}

/// What a node is among operands of other sizes.
pub(crate) struct Fitted {
    /// The operation.
    pub op: Op,
    /// Which of the operands it keeps, in order; `None`: all.
    pub operands: Option<SmallVec<[usize; 2]>>,
    /// The result's shape.
    pub shape: Shape,
}

/// The error of an operation whose result's shape cannot be told from its operands'.
pub(crate) fn cannot(name: &str) -> Error {
    Error::value(
        "compile",
        format!("{name} cannot infer output shapes, so it cannot be compiled shapeless."),
    )
}

impl Op {
    /// The operation among operands of other sizes.
    ///
    /// # Errors
    /// [`Error::Value`] if it cannot follow, or the sizes do not fit each other.
    pub fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        match self.rules() {
            Some(rules) => rules.refit(r),
            None => Err(cannot("array")),
        }
    }
}

impl Refit<'_> {
    /// The traced operation with a result of another shape.
    pub fn same(&self, shape: Shape) -> Result<Fitted> {
        shape::check("compile", &shape)?;
        Ok(Fitted { op: self.op.clone(), operands: None, shape })
    }

    /// The traced operation with a result like its first operand.
    pub fn first(&self) -> Result<Fitted> {
        self.same(Shape::from_slice(self.inputs.first().copied().unwrap_or(self.shape)))
    }

    /// The traced operation with operands and result of one shape.
    pub fn elementwise(&self) -> Result<Fitted> {
        let first = self.inputs.first().copied().unwrap_or(self.shape);
        if let Some(other) = self.inputs.iter().find(|s| **s != first) {
            return Err(Error::value(
                "broadcast_shapes",
                format!("Shapes {} and {} cannot be broadcast.", Show(first), Show(other)),
            ));
        }
        self.first()
    }

    /// A constant in place of the node.
    fn constant(&self, value: Scalar, shape: Shape) -> Result<Fitted> {
        shape::check("compile", &shape)?;
        Ok(Fitted { op: Fill { value }.into(), operands: Some(SmallVec::new()), shape })
    }

    /// A view of the first operand in place of the node.
    fn view(&self, view: View, shape: Shape) -> Result<Fitted> {
        if let Some(value) = self.constants.first().copied().flatten() {
            return self.constant(value, shape);
        }
        shape::check("compile", &shape)?;
        Ok(Fitted { op: view.into(), operands: Some(smallvec![0]), shape })
    }

    /// Whether the operands' shapes agree but for one axis.
    pub fn agree_but(&self, axis: usize) -> Result<()> {
        let first = self.inputs[0];
        let differs = |s: &&[usize]| (0..first.len()).any(|i| i != axis && s[i] != first[i]);
        match self.inputs.iter().find(|s| differs(s)) {
            None => Ok(()),
            Some(other) => Err(Error::value(
                "compile",
                format!("Shapes {} and {} do not fit.", Show(first), Show(other)),
            )),
        }
    }
}

/// A size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Always this.
    Fixed(usize),
    /// That of an axis of an operand.
    Of(u8, u8),
    /// The product of the first operand's axes from one to another (exclusive).
    Product(u8, u8),
    /// What the others leave of the first operand's size.
    Rest,
}

/// The sizes of a result.
pub(crate) type Extents = SmallVec<[Extent; 4]>;

impl Extent {
    /// Axis `axis` of the first operand.
    pub fn own(axis: usize) -> Extent {
        Extent::Of(0, axis as u8)
    }

    /// Axis `axis` of the first partner.
    pub fn partner(axis: usize) -> Extent {
        Extent::Of(1, axis as u8)
    }
}

/// How the shape of a view follows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Size by size.
    Sizes(Extents),
    /// What all operands broadcast to.
    Common,
}

/// A reshape or broadcast of the first operand, to a shape that the others lend.
#[derive(Clone, Debug)]
struct Shaped {
    view: View,
    form: Form,
}

impl Shaped {
    fn shape(&self, inputs: &[&[usize]]) -> Result<Shape> {
        match &self.form {
            Form::Common => (inputs.iter())
                .try_fold(Shape::new(), |shape, s| shape::broadcast_shapes(&shape, s)),
            Form::Sizes(extents) => {
                let mut rest = None;
                let mut out = Shape::new();
                for (i, extent) in extents.iter().enumerate() {
                    out.push(match *extent {
                        Extent::Fixed(n) => n,
                        Extent::Of(k, axis) => inputs[k as usize][axis as usize],
                        Extent::Product(a, b) => shape::size(&inputs[0][a as usize..b as usize]),
                        Extent::Rest => {
                            rest = Some(i);
                            1
                        }
                    });
                }
                if let Some(i) = rest {
                    let known = shape::size(&out);
                    if known == 0 {
                        let text = "Cannot infer the shape of an empty array";
                        return Err(Error::value("reshape", text));
                    }
                    out[i] = shape::size(inputs[0]) / known;
                }
                Ok(out)
            }
        }
    }

    /// The first operand viewed so.
    fn of(&self, a: &Array, partners: &[&Array]) -> Result<Array> {
        let mut inputs: SmallVec<[&Array; 4]> = smallvec![a];
        inputs.extend(partners.iter().copied());
        let shapes: SmallVec<[&[usize]; 4]> = inputs.iter().map(|a| a.shape()).collect();
        let shape = self.shape(&shapes)?;
        shape::check(self.name(), &shape)?;
        Array::open(self.clone(), &inputs, shape, a.dtype())
    }
}

impl Rules for Shaped {
    fn name(&self) -> &'static str {
        self.view.name()
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
                return Err(Error::Value(format!(
                    "Cannot broadcast array of shape {} into shape {}.",
                    Show(from),
                    Show(&shape)
                )));
            }
        } else if shape::size(from) != shape::size(&shape) {
            let size = shape::size(from);
            let text = format!("Cannot reshape array of size {size} into shape {}.", Show(&shape));
            return Err(Error::value("reshape", text));
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
                c.sum(Some(&summed), true)?
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
        // Where a broadcast's new axes come between the mapped one and the operand's.
        let lead = match self.view {
            View::Broadcast if mapped => ndim - own,
            _ => 0,
        };
        let at = |k: usize, axis: usize| match k {
            0 => Extent::own(axis + lead + mapped as usize),
            _ => Extent::Of(k as u8, (axis + v.axes[k].is_some_and(|m| m <= axis) as usize) as u8),
        };
        let common = |i: usize| {
            let from = |k: usize| {
                let shape = v.operands[k].shape();
                let axis = (i + shape.len()).checked_sub(ndim)?;
                (shape[axis] == v.shape[i]).then(|| at(k, axis))
            };
            (1..v.operands.len()).chain([0]).find_map(from).unwrap_or(Extent::Fixed(v.shape[i]))
        };
        let mut extents: Extents = (0..mapped as usize).map(Extent::own).collect();
        match &self.form {
            Form::Common => extents.extend((0..ndim).map(common)),
            Form::Sizes(sizes) => extents.extend(sizes.iter().map(|e| match *e {
                Extent::Of(k, axis) => at(k as usize, axis as usize),
                Extent::Product(a, b) => Extent::Product(a + mapped as u8, b + mapped as u8),
                // Of all examples together.
                other => other,
            })),
        }
        let mut a = v.inputs[0].clone();
        if let Some(axis) = v.axes[0] {
            a = batch::to_front(&a, axis)?;
        }
        if lead > 0 {
            let new = std::iter::repeat_n(Extent::Fixed(1), lead);
            let sizes =
                std::iter::once(Extent::own(0)).chain(new).chain((1..=own).map(Extent::own));
            a = reshaped(&a, sizes.collect(), &[])?;
        }
        let partners: SmallVec<[&Array; 4]> = v.inputs[1..].iter().collect();
        let view = Shaped { view: self.view.clone(), form: Form::Sizes(extents) };
        Ok((view.of(&a, &partners)?, mapped.then_some(0)))
    }
}

/// The elements of `a` under the sizes `extents`, which may name axes of `a` and of `partners`.
pub(crate) fn reshaped(a: &Array, extents: Extents, partners: &[&Array]) -> Result<Array> {
    if shapeless() {
        return Shaped { view: View::Reshape, form: Form::Sizes(extents) }.of(a, partners);
    }
    let mut shapes: SmallVec<[&[usize]; 4]> = smallvec![a.shape()];
    shapes.extend(partners.iter().map(|p| p.shape()));
    let form = Form::Sizes(extents);
    let shape = Shaped { view: View::Reshape, form }.shape(&shapes)?;
    a.reshape(&shape)
}

/// The elements of `a` in the shape of `x`.
pub(crate) fn reshaped_like(a: &Array, x: &Array) -> Result<Array> {
    if !shapeless() {
        return a.reshape(x.shape());
    }
    reshaped(a, (0..x.ndim()).map(Extent::partner).collect(), &[x])
}

/// `a` broadcast to `shape`, which is what it and `partners` broadcast to.
pub(crate) fn broadcast_with(a: &Array, shape: &[usize], partners: &[&Array]) -> Result<Array> {
    if !shapeless() || *a.shape() == *shape {
        return a.broadcast_to(shape);
    }
    Shaped { view: View::Broadcast, form: Form::Common }.of(a, partners)
}

/// `a` broadcast to sizes that may be its own (`Of(0, ..)`) and its partner's.
pub(crate) fn broadcast_by(a: &Array, extents: Extents, partners: &[&Array]) -> Result<Array> {
    let view = Shaped { view: View::Broadcast, form: Form::Sizes(extents) };
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
    let sizes = (0..x.ndim()).map(Extent::partner).collect();
    let form = Form::Sizes(sizes);
    let one = filled(Shape::new(), value);
    let op = Op::open(Shaped { view: View::Broadcast, form });
    Array::of(op, &[&one, x], shape, value.dtype())
}

/// Zeros in the shape of `x`.
pub(crate) fn zeros_like(x: &Array, dtype: Dtype) -> Array {
    filled_like(x, Scalar::from_i64(dtype, 0))
}

/// The sizes of a reshape that was asked for by numbers, `inferred` of them by -1.
pub(super) fn literal(to: &[usize], inferred: Option<usize>) -> Extents {
    let size = |(i, n): (usize, &usize)| match inferred == Some(i) {
        true => Extent::Rest,
        false => Extent::Fixed(*n),
    };
    to.iter().enumerate().map(size).collect()
}

/// The sizes of a reshape that rules ask for: axes that stay, and those that are made one, follow.
pub(super) fn aligned(from: &[usize], to: &[usize]) -> Extents {
    if from.contains(&0) {
        return literal(to, None);
    }
    let (mut out, mut i) = (Extents::new(), 0);
    while out.len() < to.len() {
        let start = out.len();
        match from.get(i) {
            Some(n) if *n == to[start] => {
                out.push(Extent::own(i));
                i += 1;
            }
            _ if to[start] == 1 => out.push(Extent::Fixed(1)),
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
                    out.push(Extent::Product(first as u8, i as u8));
                } else {
                    out.extend(to[start..end].iter().map(|n| Extent::Fixed(*n)));
                }
            }
            None => return literal(to, None),
        }
    }
    out
}

/// One over the number of the operand's elements over some axes, less `ddof`: a 0-d constant in fitted graphs.
#[derive(Clone, Debug)]
struct Share {
    /// Bit `i`: axis `i` counts.
    axes: u64,
    ddof: usize,
    dtype: Dtype,
}

impl Share {
    fn value(&self, of: &[usize]) -> Scalar {
        let counted = |i: &usize| self.axes >> i & 1 == 1;
        let n: usize = (0..of.len()).filter(counted).map(|i| of[i]).product();
        Scalar::from_f64(self.dtype, 1.0 / n.saturating_sub(self.ddof) as f64)
    }
}

/// One over the number of elements of `a` over `axes`, less `ddof`, 0-d.
pub(super) fn share(a: &Array, axes: &[usize], ddof: usize, dtype: Dtype) -> Array {
    let axes = axes.iter().fold(0u64, |m, a| m | 1 << a);
    let share = Share { axes, ddof, dtype };
    if !shapeless() {
        return Array::scalar(share.value(a.shape()));
    }
    Array::of(Op::open(share), &[a], Shape::new(), dtype)
}

impl Rules for Share {
    fn name(&self) -> &'static str {
        "number_of_elements"
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let value = [self.value(call.descs[0].0)];
        Call { inputs: &[], descs: &[], ..*call }.run(exec, op::FILL, &NoAttrs::new(), &value)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.constant(self.value(r.inputs[0]), Shape::new())
    }

    super::no_derivatives!();

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let Some(at) = v.axes[0] else {
            return Ok((
                Array::of(Op::open(self.clone()), &[&v.inputs[0]], Shape::new(), v.dtype),
                None,
            ));
        };
        let low = self.axes & ((1u64 << at) - 1);
        let axes = low | (self.axes - low) << 1;
        let share = Share { axes, ..self.clone() };
        Ok((Array::of(Op::open(share), &[&v.inputs[0]], Shape::new(), v.dtype), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_of_rules_follow_where_axes_align() {
        use Extent::*;
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
