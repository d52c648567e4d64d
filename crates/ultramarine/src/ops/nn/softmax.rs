//! Softmax and logsumexp. [`Softmax`] is an operation of its own on devices that have a kernel for it; elsewhere it is
//! made of simpler operations, which fuse with their neighbours.

use crate::{
    array::Array,
    backend::{self, Exec},
    devices,
    dtype::Dtype,
    error::{Error, Result},
    node::Value,
    ops::{
        Call, Candidates, Cotangents, Decompose, Fitted, Jvp, Op, Refit, Rules, Vjp, Vmap,
        reduce::{Reduce, axes_of, signed, squeezed},
        rules::builders::{bin, like, un},
    },
    placement,
    shape::Shape,
};
use smallvec::smallvec;
use ultramarine_abi::schema::{AxesAttrs, binary, op, reduce, unary};

impl Array {
    /// The logarithm of the sum of exponentials over `axes` (`None`: all), computed
    /// without overflow; float32 for integers.
    ///
    /// # Errors
    /// As [`Array::sum`]; [`Error::Value`] for an empty array, and for axes of a 0-d one.
    pub fn logsumexp(&self, axes: Option<&[isize]>, keepdims: bool) -> Result<Array> {
        if self.size() == 0 {
            return Err(Error::value("logsumexp", "Received empty array."));
        }
        if self.ndim() == 0 && axes.is_some_and(|a| !a.is_empty()) {
            let text = "Received non-empty axes for array with 0 dimensions.";
            return Err(Error::value("logsumexp", text));
        }
        let named = axes_of(self, axes)?;
        let a = self.astype(self.dtype().to_inexact());
        let out = match Softmax::native(true, &a, &named)? {
            Some(own) => own,
            None => logsumexp_of_parts(&a, &signed(&named))?,
        };
        if keepdims { Ok(out) } else { squeezed(&out, &named) }
    }

    /// The exponentials over their sum along `axes` (`None`: all); float32 for
    /// integers. `precise`: 16-bit floats are computed in float32.
    ///
    /// # Errors
    /// As [`Array::sum`]; [`Error::Value`] for axes of a 0-d array.
    pub fn softmax(&self, axes: Option<&[isize]>, precise: bool) -> Result<Array> {
        if self.ndim() == 0 && axes.is_some_and(|a| !a.is_empty()) {
            let text = "Received non-empty axes for array with 0 dimensions.";
            return Err(Error::value("softmax", text));
        }
        self.computable("softmax")?;
        let named = axes_of(self, axes)?;
        let dtype = self.dtype().to_inexact();
        if self.size() == 0 {
            return Ok(self.astype(dtype));
        }
        let a = self.astype(dtype);
        // A kernel is precise in any case.
        if let Some(own) = Softmax::native(false, &a, &named)? {
            return Ok(own);
        }
        let inner = if precise && dtype.size() == 2 { Dtype::Float32 } else { dtype };
        Ok(softmax_of_parts(&a.astype(inner), &signed(&named))?.astype(dtype))
    }
}

/// The largest elements, cut off to what is finite, to subtract before `exp`. No
/// derivative flows through them, since the results do not depend on what is
/// subtracted. A maximum of either infinity then gives what the limit is.
fn shift(a: &Array, axes: &[isize]) -> Result<Array> {
    let top = a.max(Some(axes), true)?;
    let Some(info) = crate::finfo(a.dtype()).filter(|_| a.dtype().is_floating()) else {
        return Ok(top.stop_gradient());
    };
    let top = bin(binary::MINIMUM, &top, &like(&top, info.max))?;
    Ok(bin(binary::MAXIMUM, &top, &like(&top, info.min))?.stop_gradient())
}

/// Softmax over axes, of an array of a floating dtype.
fn softmax_of_parts(a: &Array, axes: &[isize]) -> Result<Array> {
    let e = bin(binary::SUBTRACT, a, &a.max(Some(axes), true)?.stop_gradient())?.exp()?;
    let sum = e.sum(Some(axes), true)?;
    bin(binary::DIVIDE, &e, &sum)
}

/// The logarithm of the sum of the exponentials over axes, which keep size 1, of an array of a floating dtype.
fn logsumexp_of_parts(a: &Array, axes: &[isize]) -> Result<Array> {
    let top = shift(a, axes)?;
    let sum = bin(binary::SUBTRACT, a, &top)?.exp()?.sum(Some(axes), true)?;
    un(unary::LOG, &sum).add(&top)
}

/// Softmax or logsumexp over axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    /// The logarithm of the sum of exponentials, which keeps the axes with size 1; else softmax.
    pub logsumexp: bool,
    /// Bit `i`: it goes over axis `i`.
    pub axes: u64,
}

impl Softmax {
    /// The operation on an array of a floating dtype, if the device where it will run has a kernel for it.
    ///
    /// # Errors
    /// When there is no place for the operation.
    pub fn native(logsumexp: bool, a: &Array, axes: &[usize]) -> Result<Option<Array>> {
        if backend::gpus().is_empty() || axes.is_empty() || a.size() == 0 {
            return Ok(None);
        }
        let rules = Softmax { logsumexp, axes: axes.iter().fold(0, |mask, axis| mask | 1 << axis) };
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
        if self.logsumexp { op::LOGSUMEXP } else { op::SOFTMAX }
    }

    fn attributes_of(self) -> AxesAttrs {
        AxesAttrs::new(0, self.axes)
    }

    fn shape(self, of: &[usize]) -> Shape {
        let gone = |i: usize| self.logsumexp && self.axes >> i & 1 == 1;
        of.iter().enumerate().map(|(i, n)| if gone(i) { 1 } else { *n }).collect()
    }

    fn total(self, a: &Array) -> Array {
        Reduce { code: reduce::SUM, axes: self.axes }.of(a)
    }

    /// Jacobian-vector product of softmax, whose result is `y`. The Jacobian is symmetric, so this is the vjp too.
    fn jacobian_product(self, y: &Array, t: &Array) -> Result<Array> {
        let weighted = bin(binary::MULTIPLY, t, y)?;
        bin(binary::SUBTRACT, &weighted, &bin(binary::MULTIPLY, y, &self.total(&weighted))?)
    }

    /// The derivative of logsumexp, which gave `y`, by each element.
    fn weights(x: &Array, y: &Array) -> Result<Array> {
        Ok(un(unary::EXP, &bin(binary::SUBTRACT, x, y)?))
    }
}

impl Rules for Softmax {
    fn name(&self) -> &'static str {
        if self.logsumexp { "logsumexp" } else { "softmax" }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.run(exec, self.id(), &self.attributes_of(), &[])
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        let axes: Vec<isize> =
            (0..d.inputs[0].ndim() as isize).filter(|i| self.axes >> i & 1 == 1).collect();
        candidates.add(match self.logsumexp {
            true => logsumexp_of_parts(&d.inputs[0], &axes),
            false => softmax_of_parts(&d.inputs[0], &axes),
        });
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.same(self.shape(r.inputs[0]))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let own = match self.logsumexp {
            true => {
                bin(binary::MULTIPLY, &Softmax::weights(&v.primals[0], v.output)?, v.cotangent)?
            }
            false => self.jacobian_product(v.output, v.cotangent)?,
        };
        Ok(smallvec![Some(own)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        Ok(Some(match self.logsumexp {
            true => {
                let weights = Softmax::weights(&j.primals[0], j.output)?;
                self.total(&bin(binary::MULTIPLY, &weights, t)?)
            }
            false => self.jacobian_product(j.output, t)?,
        }))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let Some(at) = v.axes[0] else { return Ok((self.of(&v.inputs[0])?, None)) };
        let low = self.axes & ((1u64 << at) - 1);
        let axes = low | (self.axes - low) << 1;
        Ok((Softmax { logsumexp: self.logsumexp, axes }.of(&v.inputs[0])?, Some(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;
    use crate::transforms;

    type Function = fn(&Array) -> Result<Array>;

    fn softmax(logsumexp: bool, a: &Array) -> Result<Array> {
        Softmax { logsumexp, axes: 0b10 }.of(a)
    }

    /// The operation, which no device has here, and what it is made of.
    const PAIRS: [(Function, Function); 2] = [
        (|a| softmax(false, a), |a| a.softmax(Some(&[1]), false)),
        (|a| softmax(true, a), |a| a.logsumexp(Some(&[1]), true)),
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
        assert!(Softmax::native(false, &x, &[1])?.is_none());
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
