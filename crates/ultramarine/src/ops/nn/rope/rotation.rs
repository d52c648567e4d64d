//! The rotation of rope, as an operation on x and the cosines and sines of the angles.

use crate::ops::rules::builders::{bin, plus, slice_axis, times, un};
use crate::ops::rules::shapeless::{
    SymbolicShape, SymbolicSize, broadcast_by, shapeless, zeros_like,
};
use crate::ops::shape::concatenate::{concatenate, stack};
use crate::ops::{
    Call, Composite, Cotangents, Draft, Fitted, Jvp, Offers, Refit, Rules, Vjp, Vmap, attributes,
    nn::compute_dtype, rules::batching, shape::view::View,
};
use crate::{array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, shape::Shape};
use ultramarine_abi::schema::{RopeAttrs, binary, op, unary};

attributes! {
    /// Rotates pairs of elements of the last axis. The operands are x, and the cosines and sines of the angles. Their
    /// shapes equal that of x except for the last axis.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Rotation {
        /// Number of pairs. The elements after the pairs are unchanged.
        pub pairs: usize,
        /// Pairs consist of neighbours; otherwise elements of the first half are paired with those of the second.
        pub traditional: bool,
        /// Rotates by the opposite angles.
        pub inverse: bool,
    }
}

impl Rotation {
    /// Rotates `a`. Cosines and sines are in [`compute_dtype`] of its dtype; they broadcast to its shape except for the
    /// last axis.
    ///
    /// # Errors
    /// If the operation cannot be placed on a device.
    pub fn of(self, a: &Array, cos: &Array, sin: &Array) -> Result<Array> {
        let (cos, sin) = (self.spread(cos, a)?, self.spread(sin, a)?);
        self.node(a, &cos, &sin)
    }

    fn node(self, a: &Array, cos: &Array, sin: &Array) -> Result<Array> {
        Array::try_of(self, &[a, cos, sin], Shape::from_slice(a.shape()), a.dtype())
    }

    /// Cosines or sines, broadcast to all of `a` without a copy in memory.
    fn spread(self, table: &Array, a: &Array) -> Result<Array> {
        let last = a.ndim() - 1;
        let mut shape = Shape::from_slice(a.shape());
        shape[last] = self.pairs;
        if *table.shape() == *shape {
            return Ok(table.clone());
        }
        if shapeless() {
            let mut sizes: SymbolicShape = (0..last).map(SymbolicSize::partner).collect();
            sizes.push(SymbolicSize::Fixed(self.pairs));
            return broadcast_by(table, sizes, &[a]);
        }
        Array::try_of(View::Broadcast, &[table], shape, table.dtype())
    }

    fn attributes_of(self) -> Option<RopeAttrs> {
        let pairs = u32::try_from(self.pairs).ok()?;
        Some(RopeAttrs::new(pairs, self.traditional.into(), self.inverse.into()))
    }

    /// The left and the right elements of all pairs, in [`compute_dtype`] of the dtype.
    fn halves(self, a: &Array) -> Result<(Array, Array)> {
        let (axis, pairs) = (a.ndim() - 1, self.pairs);
        let (x, y) = match self.traditional {
            true => (a.along(axis, 0, 2 * pairs, 2)?, a.along(axis, 1, 2 * pairs, 2)?),
            false => (slice_axis(a, axis, 0, pairs)?, slice_axis(a, axis, pairs, pairs)?),
        };
        let dtype = compute_dtype(a.dtype());
        Ok((x.astype(dtype), y.astype(dtype)))
    }

    fn rotated(self, (x, y): (&Array, &Array), cos: &Array, sin: &Array) -> Result<(Array, Array)> {
        let (xc, ys, xs, yc) = (times(x, cos)?, times(y, sin)?, times(x, sin)?, times(y, cos)?);
        Ok(match self.inverse {
            false => (bin(binary::SUBTRACT, &xc, &ys)?, bin(binary::ADD, &xs, &yc)?),
            true => (bin(binary::ADD, &xc, &ys)?, bin(binary::SUBTRACT, &yc, &xs)?),
        })
    }

    /// The elements after the pairs, if any.
    fn rest(self, a: &Array) -> Result<Option<Array>> {
        let (axis, dims) = (a.ndim() - 1, 2 * self.pairs);
        let left = a.shape()[axis] - dims;
        (left > 0).then(|| slice_axis(a, axis, dims, left)).transpose()
    }

    /// Joins the pairs and the elements after them.
    fn joined(
        self,
        left: &Array,
        right: &Array,
        rest: impl FnOnce() -> Result<Option<Array>>,
    ) -> Result<Array> {
        let mut parts = match self.traditional {
            true => vec![stack(&[left.clone(), right.clone()], -1)?.flatten(-2, -1)?],
            false => vec![left.clone(), right.clone()],
        };
        parts.extend(rest()?);
        concatenate(&parts, -1)
    }
}

impl Composite for Rotation {
    fn is_offered(&self, offers: &Offers<'_>) -> bool {
        let attributes = self.attributes_of();
        attributes.is_some_and(|attributes| offers.kernel(op::ROPE, &attributes, offers.inputs))
    }

    fn compose(&self, operands: &[Array], dtype: Dtype) -> Result<Array> {
        let (a, cos, sin) = (&operands[0], &operands[1], &operands[2]);
        let (x, y) = self.halves(a)?;
        let (left, right) = self.rotated((&x, &y), cos, sin)?;
        self.joined(&left.astype(dtype), &right.astype(dtype), || self.rest(a))
    }
}

impl Rules for Rotation {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([x, cos, sin], out)) = node.of() else { return false };
        let (Some((n, rows)), Some((pairs, of_rows))) = (x.0.split_last(), cos.0.split_last())
        else {
            return false;
        };
        node.follows(op::ROPE, None, &[])
            && cos.1 == compute_dtype(x.1)
            && x == out
            && cos == sin
            && (rows, *pairs) == (of_rows, self.pairs)
            && (1..=n / 2).contains(pairs)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        match self.attributes_of() {
            Some(attributes) => call.run(exec, op::ROPE, &attributes, &[]),
            None => Err(exec.refuse(self.name())),
        }
    }

    fn composite(&self) -> Option<&dyn Composite> {
        Some(self)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (cos, sin) = (&v.primals[1], &v.primals[2]);
        let back = Rotation { inverse: !self.inverse, ..*self };
        let of_x = v.wanted[0].then(|| back.node(v.cotangent, cos, sin)).transpose()?;
        let mut all: Cotangents = Cotangents::from_iter([of_x, None, None]);
        if v.wanted[1] || v.wanted[2] {
            let ((x, y), (l, r)) = (self.halves(&v.primals[0])?, self.halves(v.cotangent)?);
            if v.wanted[1] {
                all[1] = Some(bin(binary::ADD, &times(&l, &x)?, &times(&r, &y)?)?);
            }
            if v.wanted[2] {
                let (up, down) = (times(&r, &x)?, times(&l, &y)?);
                let (up, down) = if self.inverse { (down, up) } else { (up, down) };
                all[2] = Some(bin(binary::SUBTRACT, &up, &down)?);
            }
        }
        Ok(all)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let of = |i: usize| j.tangents[i].as_ref();
        let (cos, sin) = (&j.primals[1], &j.primals[2]);
        let of_x = of(0).map(|t| self.node(t, cos, sin)).transpose()?;
        if of(1).is_none() && of(2).is_none() {
            return Ok(of_x);
        }
        // Tangents of cosines and sines act on the pairs only; the elements after them get no such tangent.
        let a = &j.primals[0];
        let (x, y) = self.halves(a)?;
        let sin = of(2).map(|t| if self.inverse { un(unary::NEGATIVE, t) } else { t.clone() });
        let product = |a: &Array, t: Option<&Array>| t.map(|t| times(a, t)).transpose();
        let minus = product(&y, sin.as_ref())?.map(|t| un(unary::NEGATIVE, &t));
        let left = plus(product(&x, of(1))?, minus)?;
        let right = plus(product(&x, sin.as_ref())?, product(&y, of(1))?)?;
        let (Some(left), Some(right)) = (left, right) else { return Ok(of_x) };
        let rest = || Ok(self.rest(a)?.map(|rest| zeros_like(&rest, a.dtype())));
        let of_angles = self.joined(&left.astype(a.dtype()), &right.astype(a.dtype()), rest)?;
        plus(of_x, Some(of_angles))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let operands = batching::all_batched(v)?;
        Ok((self.node(&operands[0], &operands[1], &operands[2])?, Some(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;
    use crate::transforms;

    const ALL: [Rotation; 4] = [
        Rotation { pairs: 2, traditional: false, inverse: false },
        Rotation { pairs: 2, traditional: true, inverse: false },
        Rotation { pairs: 1, traditional: false, inverse: true },
        Rotation { pairs: 2, traditional: true, inverse: true },
    ];

    fn sample(shape: &[usize]) -> Result<Array> {
        let n: usize = shape.iter().product();
        let values: Vec<f32> = (0..n).map(|i| (i * i % 7) as f32 / 3.0 - 1.0).collect();
        Array::from_slice(&values, shape)
    }

    /// x, and cosines and sines for all axes except the first.
    fn operands(rotation: Rotation) -> Result<Vec<Array>> {
        let angles = sample(&[3, rotation.pairs])?;
        Ok(vec![sample(&[2, 3, 5])?, angles.exp()?, angles.square()?])
    }

    type Function = Box<dyn Fn(&[Array]) -> Result<Vec<Array>>>;

    /// The operation and its composition.
    fn alternatives(rotation: Rotation) -> [Function; 2] {
        let own = move |v: &[Array]| Ok(vec![rotation.of(&v[0], &v[1], &v[2])?]);
        let parts = move |v: &[Array]| Ok(vec![rotation.compose(v, v[0].dtype())?]);
        [Box::new(own), Box::new(parts)]
    }

    #[track_caller]
    fn near(a: &[Array], b: &[Array]) -> Result<()> {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert_near(a, b, 1e-5)?;
        }
        Ok(())
    }

    #[test]
    fn without_a_kernel_the_composition_runs() -> Result<()> {
        for rotation in ALL {
            let (v, [own, parts]) = (operands(rotation)?, alternatives(rotation));
            near(&own(&v)?, &parts(&v)?)?;
        }
        Ok(())
    }

    /// Rotates back by the same angles. If the operands are cosines and sines of angles, the result is the input.
    #[test]
    fn the_inverse_rotates_back() -> Result<()> {
        for rotation in ALL {
            let (v, angles) = (operands(rotation)?, sample(&[3, rotation.pairs])?);
            let back = Rotation { inverse: !rotation.inverse, ..rotation };
            let (cos, sin) = (angles.cos()?, angles.sin()?);
            let there = rotation.of(&v[0], &cos, &sin)?;
            assert_ne!(there.to_vec::<f32>()?, v[0].to_vec::<f32>()?);
            near(&[back.of(&there, &cos, &sin)?], &v[..1])?;
        }
        Ok(())
    }

    #[test]
    fn derivatives_match_the_composition() -> Result<()> {
        for rotation in ALL {
            let (v, [own, parts]) = (operands(rotation)?, alternatives(rotation));
            let cotangent = || Ok::<_, crate::error::Error>([sample(&[2, 3, 5])?.exp()?]);
            let slopes = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>| {
                Ok::<_, crate::error::Error>(transforms::vjp(f, &v, &cotangent()?)?.1)
            };
            near(&slopes(&own)?, &slopes(&parts)?)?;
            // Tests each operand alone, and all together.
            for which in [0b001, 0b010, 0b100, 0b111] {
                let moving: Vec<usize> = (0..3).filter(|i| which >> i & 1 == 1).collect();
                let at: Vec<Array> = moving.iter().map(|i| v[*i].clone()).collect();
                let tangents = at.iter().map(Array::square).collect::<Result<Vec<_>>>()?;
                let along = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>| {
                    let of = |w: &[Array]| {
                        let mut v = v.clone();
                        for (i, w) in moving.iter().zip(w) {
                            v[*i] = w.clone();
                        }
                        f(&v)
                    };
                    Ok::<_, crate::error::Error>(transforms::jvp(of, &at, &tangents)?.1)
                };
                near(&along(&own)?, &along(&parts)?)?;
            }
        }
        Ok(())
    }

    #[test]
    fn every_operand_may_be_mapped() -> Result<()> {
        for rotation in ALL {
            let (v, [own, parts]) = (operands(rotation)?, alternatives(rotation));
            let six = |shape: &[usize], axis: usize| {
                let mut shape = shape.to_vec();
                shape.insert(axis, 6);
                sample(&shape)
            };
            for axes in [
                [Some(0), None, None],
                [Some(2), None, None],
                [Some(3), Some(1), None],
                [None, Some(0), Some(2)],
                [None, None, Some(1)],
            ] {
                let mut mapped = v.clone();
                for (a, axis) in mapped.iter_mut().zip(axes) {
                    if let Some(axis) = axis {
                        *a = six(a.shape(), axis as usize)?;
                    }
                }
                let result = |f: &dyn Fn(&[Array]) -> Result<Vec<Array>>| {
                    transforms::vmap(f, &mapped, axes, 0)
                };
                near(&result(&own)?, &result(&parts)?)?;
            }
        }
        Ok(())
    }
}
