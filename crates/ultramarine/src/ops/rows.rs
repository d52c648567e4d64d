//! SOFTMAX and LOGSUMEXP as operations of their own, for devices that have kernels for them. Elsewhere
//! (`statistics.rs`) they are made of others, which fuse with what stands around them.

use super::{
    Call, Cotangents, Decompose, Fitted, Jvp, Op, Refit, Rules, Vjp, Vmap, Ways,
    lean::{bin, un},
    reduce::Reduce,
    statistics,
};
use crate::{devices, 
    array::Array,
    backend::{self, Exec},
    error::Result,
    node::Value,
    placement,
    shape::Shape,
};
use smallvec::smallvec;
use ultramarine_abi::schema::{AxesAttrs, binary, op, reduce, unary};

/// Softmax or logsumexp over axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// The logarithm of the sum, which keeps the axes with size 1.
    pub sum: bool,
    /// Bit `i`: it goes over axis `i`.
    pub axes: u64,
}

impl Rows {
    /// The operation on an array of a floating dtype, if the device where it will run has a kernel for it.
    ///
    /// # Errors
    /// When there is no place for the operation.
    pub fn native(sum: bool, a: &Array, axes: &[usize]) -> Result<Option<Array>> {
        if backend::gpus().is_empty() || axes.is_empty() || a.size() == 0 {
            return Ok(None);
        }
        let rules = Rows { sum, axes: axes.iter().fold(0, |mask, axis| mask | 1 << axis) };
        let place = placement::place(&Op::open(rules), &[a])?;
        let device = devices::get(place.stream.device)?;
        let desc = [(a.dtype(), a.ndim())];
        let offered = !device.is_host()
            && a.dtype().is_floating()
            && device.offers(rules.id(), &rules.attributes_of(), &desc, &desc).unwrap_or(false);
        if offered { rules.of(a).map(Some) } else { Ok(None) }
    }

    /// The operation on an array of a floating dtype.
    pub fn of(self, a: &Array) -> Result<Array> {
        Array::open(self, &[a], self.shape(a.shape()), a.dtype())
    }

    fn id(self) -> u32 {
        if self.sum { op::LOGSUMEXP } else { op::SOFTMAX }
    }

    fn attributes_of(self) -> AxesAttrs {
        AxesAttrs::new(0, self.axes)
    }

    fn shape(self, of: &[usize]) -> Shape {
        let gone = |i: usize| self.sum && self.axes >> i & 1 == 1;
        of.iter().enumerate().map(|(i, n)| if gone(i) { 1 } else { *n }).collect()
    }

    fn total(self, a: &Array) -> Array {
        Reduce { code: reduce::SUM, axes: self.axes }.of(a)
    }

    /// What softmax, which gave `y`, does to a tangent or a cotangent: its derivative is symmetric.
    fn turned(self, y: &Array, t: &Array) -> Result<Array> {
        let weighted = bin(binary::MULTIPLY, t, y)?;
        bin(binary::SUBTRACT, &weighted, &bin(binary::MULTIPLY, y, &self.total(&weighted))?)
    }

    /// The derivative of logsumexp, which gave `y`, by each element.
    fn weights(x: &Array, y: &Array) -> Result<Array> {
        Ok(un(unary::EXP, &bin(binary::SUBTRACT, x, y)?))
    }
}

impl Rules for Rows {
    fn name(&self) -> &'static str {
        if self.sum { "logsumexp" } else { "softmax" }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, self.id(), &self.attributes_of(), &[])
    }

    fn decompose(&self, d: &Decompose<'_>, ways: &mut Ways) {
        let axes: Vec<isize> =
            (0..d.inputs[0].ndim() as isize).filter(|i| self.axes >> i & 1 == 1).collect();
        ways.add(match self.sum {
            true => statistics::logsumexp_of_parts(&d.inputs[0], &axes),
            false => statistics::softmax_of_parts(&d.inputs[0], &axes),
        });
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.same(self.shape(r.inputs[0]))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let own = match self.sum {
            true => bin(binary::MULTIPLY, &Rows::weights(&v.primals[0], v.output)?, v.cotangent)?,
            false => self.turned(v.output, v.cotangent)?,
        };
        Ok(smallvec![Some(own)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        Ok(Some(match self.sum {
            true => {
                let weights = Rows::weights(&j.primals[0], j.output)?;
                self.total(&bin(binary::MULTIPLY, &weights, t)?)
            }
            false => self.turned(j.output, t)?,
        }))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let Some(at) = v.axes[0] else { return Ok((self.of(&v.inputs[0])?, None)) };
        let low = self.axes & ((1u64 << at) - 1);
        let axes = low | (self.axes - low) << 1;
        Ok((Rows { sum: self.sum, axes }.of(&v.inputs[0])?, Some(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;
    use crate::transforms;

    type Function = fn(&Array) -> Result<Array>;

    fn rows(sum: bool, a: &Array) -> Result<Array> {
        Rows { sum, axes: 0b10 }.of(a)
    }

    /// The operation, which no device has here, and what it is made of.
    const PAIRS: [(Function, Function); 2] = [
        (|a| rows(false, a), |a| a.softmax(Some(&[1]), false)),
        (|a| rows(true, a), |a| a.logsumexp(Some(&[1]), true)),
    ];

    fn sample() -> Result<Array> {
        let values: Vec<f32> = (0..12).map(|i| (i * i % 7) as f32 / 3.0 - 1.0).collect();
        Array::from_slice(&values, &[3, 4])
    }

    #[track_caller]
    fn near(a: &Array, b: &Array) -> Result<()> {
        assert_near(a, b, 1e-6)
    }

    #[test]
    fn without_a_kernel_it_is_what_it_is_made_of() -> Result<()> {
        let x = sample()?;
        for (own, parts) in PAIRS {
            near(&own(&x)?, &parts(&x)?)?;
        }
        assert!(Rows::native(false, &x, &[1])?.is_none());
        Ok(())
    }

    #[test]
    fn its_derivatives_are_those_of_its_parts() -> Result<()> {
        let x = sample()?;
        let t = x.square()?;
        for (own, parts) in PAIRS {
            let weighted = |f: Function, x: &Array| f(x)?.multiply(&f(x)?.exp()?)?.sum(None, false);
            let slope = |f: Function| transforms::grad(|x: &Array| weighted(f, x))(&x);
            near(&slope(own)?, &slope(parts)?)?;
            let along = |f: Function| -> Result<Vec<Array>> {
                let (x, t) = ([x.clone()], [t.clone()]);
                Ok(transforms::jvp(|v: &[Array]| Ok(vec![f(&v[0])?]), &x, &t)?.1)
            };
            let (a, b) = (along(own)?, along(parts)?);
            near(&a[0], &b[0])?;
        }
        Ok(())
    }

    #[test]
    fn a_mapped_axis_lies_anywhere() -> Result<()> {
        let values: Vec<f32> = (0..24).map(|i| (i * i % 11) as f32 / 4.0).collect();
        let x = Array::from_slice(&values, &[2, 3, 4])?;
        for (own, parts) in PAIRS {
            for axis in 0..3 {
                let mapped = |f: Function| {
                    let x = [x.clone()];
                    transforms::vmap(
                        |v: &[Array]| Ok(vec![f(&v[0])?]),
                        &x,
                        &[Some(axis)],
                        |_| Ok(vec![Some(0)]),
                    )
                };
                let (a, b): (Result<Vec<Array>>, Result<Vec<Array>>) = (mapped(own), mapped(parts));
                near(&a?[0], &b?[0])?;
            }
        }
        Ok(())
    }
}
