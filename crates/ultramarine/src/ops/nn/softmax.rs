//! Softmax and logsumexp, and their gradients.

use super::compute_dtype;
use crate::error::{Result, bail, ensure};
use crate::ops::reduce::{Reduce, axes_of, squeezed};
use crate::ops::rules::builders::{bin, like, times, un};
use crate::ops::{
    Call, Composite, Cotangents, Draft, Fitted, Jvp, Offers, Refit, Rules, Vjp, Vmap, attributes,
    draft,
    shape::axes::{Axes, KeepDims, Reduced},
};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{AxesAttrs, binary, op, reduce, unary};

impl Array {
    /// Returns the logarithm of the sum of exponentials over `axes` (`..`: all), without intermediate overflow.
    /// Integers and bool give float32.
    ///
    /// # Errors
    /// As [`Array::sum`]; [`crate::Error::Value`] for an empty array, and for axes of a 0-d one.
    pub fn logsumexp(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        let Reduced { axes, keepdims } = axes.into();
        let axes = axes.named(self.ndim());
        ensure!(self.size() != 0, "logsumexp", "Received empty array. Pass at least one element.");
        if self.ndim() == 0 && axes.as_deref().is_some_and(|a| !a.is_empty()) {
            bail!(
                "logsumexp",
                "Received non-empty axes for array with 0 dimensions. Leave the axes out, or reshape the array."
            );
        }
        let named = axes_of("logsumexp", self, axes.as_deref())?;
        let a = self.astype(self.dtype().to_inexact());
        let out = Softmax::new(true, &named, true).of(&a)?;
        if keepdims { Ok(out) } else { squeezed(&out, &named) }
    }

    /// Returns the exponentials, divided by their sum along `axes` (`..`: all). The shape is kept; integers and bool
    /// give float32. With `precise`, float16 and bfloat16 are computed in float32.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[0.0f32, 0.0, 1000.0, 1000.0], &[2, 2])?;
    /// assert_eq!(x.softmax(-1, false)?.to_vec::<f32>()?, [0.5; 4]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Array::sum`]; [`crate::Error::Value`] for axes of a 0-d array.
    pub fn softmax(&self, axes: impl Into<Axes>, precise: bool) -> Result<Array> {
        let axes = axes.into().named(self.ndim());
        if self.ndim() == 0 && axes.as_deref().is_some_and(|a| !a.is_empty()) {
            bail!(
                "softmax",
                "Received non-empty axes for array with 0 dimensions. Leave the axes out, or reshape the array."
            );
        }
        self.computable("softmax")?;
        let named = axes_of("softmax", self, axes.as_deref())?;
        let dtype = self.dtype().to_inexact();
        if self.size() == 0 {
            return Ok(self.astype(dtype));
        }
        Softmax::new(false, &named, precise).of(&self.astype(dtype))
    }
}

/// The largest elements over axes, clamped to finite numbers, to be subtracted before `exp`. If the maximum is
/// infinite, the result is the limit.
pub(super) fn shift(a: &Array, axes: &[isize]) -> Result<Array> {
    let top = a.max(KeepDims(Some(axes)))?;
    let Some(info) = crate::finfo(a.dtype()).filter(|_| a.dtype().is_floating()) else {
        return Ok(top);
    };
    let top = bin(binary::MINIMUM, &top, &like(&top, info.max))?;
    bin(binary::MAXIMUM, &top, &like(&top, info.min))
}

/// Logsumexp over axes, which are kept with size 1. It is composed in the dtype `inner`, from the operand and its
/// [`shift`].
pub(super) fn composed_logsumexp(
    a: &Array,
    top: &Array,
    axes: &[isize],
    inner: Dtype,
) -> Result<Array> {
    let top = top.astype(inner);
    let e = bin(binary::SUBTRACT, &a.astype(inner), &top)?.exp()?;
    un(unary::LOG, &e.sum(KeepDims(Some(axes)))?).add(&top)
}

attributes! {
    /// Softmax or logsumexp over axes, of an array of an inexact dtype.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Softmax {
        /// If set, computes the logarithm of the sum of exponentials, which keeps the axes with size 1; else computes
        /// softmax.
        pub logsumexp: bool,
        /// Bit `i` is set if axis `i` is reduced.
        pub axes: u64,
        /// Compositions compute float16 and bfloat16 in float32. (Kernels always do, and so does logsumexp, because its
        /// sum may exceed their range.)
        pub precise: bool,
    }
}

impl Softmax {
    fn new(logsumexp: bool, axes: &[usize], precise: bool) -> Softmax {
        let axes = axes.iter().fold(0, |mask, axis| mask | 1 << axis);
        Softmax { logsumexp, axes, precise: precise || logsumexp }
    }

    pub fn of(self, a: &Array) -> Result<Array> {
        Array::try_of(self, &[a], self.shape(a.shape()), a.dtype())
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

    /// The dtype in which a composition computes.
    fn inner(self, dtype: Dtype) -> Dtype {
        if self.precise { compute_dtype(dtype) } else { dtype }
    }

    /// Jacobian-vector product of softmax, whose result is `y`. The Jacobian is symmetric, so this is the vjp too, of the
    /// conjugate of `y`.
    fn jacobian_product(self, y: &Array, t: &Array) -> Result<Array> {
        let inner = self.inner(y.dtype());
        let (wide, t) = (y.astype(inner), t.astype(inner));
        let weighted = times(&t, &wide)?;
        let product = bin(binary::SUBTRACT, &weighted, &times(&wide, &self.total(&weighted))?)?;
        Ok(product.astype(y.dtype()))
    }

    /// The derivative of logsumexp with result `y` with respect to each element: softmax. In float16 and bfloat16 the
    /// result is too coarse to be subtracted.
    fn weights(self, x: &Array, y: &Array) -> Result<Array> {
        if compute_dtype(x.dtype()) != x.dtype() {
            return Softmax { logsumexp: false, ..self }.of(x);
        }
        Ok(un(unary::EXP, &bin(binary::SUBTRACT, x, y)?))
    }
}

impl Composite for Softmax {
    fn is_offered(&self, offers: &Offers<'_>) -> bool {
        let floating = offers.output.0.is_floating();
        floating && self.axes != 0 && offers.kernel(self.id(), &self.attributes_of(), offers.inputs)
    }

    fn compose(&self, operands: &[Array], dtype: Dtype) -> Result<Array> {
        let inner = self.inner(dtype);
        let a = &operands[0];
        let axes: Vec<isize> = (0..a.ndim() as isize).filter(|i| self.axes >> i & 1 == 1).collect();
        if self.logsumexp {
            return Ok(composed_logsumexp(a, &shift(a, &axes)?, &axes, inner)?.astype(dtype));
        }
        // The maximum is the same in any dtype. Computing it in the operand's dtype leaves the widened operand with a
        // single reader, into which the cast is fused.
        let top = a.max(KeepDims(&axes))?.astype(inner);
        if inner != dtype {
            // Each pass widens the operand again, in registers. Stored exponentials would take more memory than operand
            // and result.
            let e = || bin(binary::SUBTRACT, &a.astype(inner), &top)?.exp();
            let sum = e()?.sum(KeepDims(&axes))?;
            return Ok(bin(binary::DIVIDE, &e()?, &sum)?.astype(dtype));
        }
        let a = a.astype(inner);
        let e = bin(binary::SUBTRACT, &a, &top)?.exp()?;
        let sum = e.sum(KeepDims(&axes))?;
        Ok(bin(binary::DIVIDE, &e, &sum)?.astype(dtype))
    }
}

impl Rules for Softmax {
    fn name(&self) -> &'static str {
        if self.logsumexp { "logsumexp" } else { "softmax" }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, dtype)], (to, _))) = node.of() else { return false };
        node.is_computable()
            && dtype.is_inexact()
            && node.outputs[0].1 == dtype
            && (self.axes == 0 || draft::is_mask(self.axes, from.len()))
            && self.shape(from)[..] == *to
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        // The built-in kernel reads a row, or a part of one, before it overwrites it, so the result may use the
        // operand's memory.
        let out = match exec.device.has_built_in_kernels() && !self.logsumexp {
            true => call.memory(exec)?,
            false => exec.alloc(call.shape, call.dtype)?,
        };
        call.run_into(exec, out, self.id(), &self.attributes_of(), &[])
    }

    fn composite(&self) -> Option<&dyn Composite> {
        Some(self)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.same(self.shape(r.inputs[0]))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let own = match self.logsumexp {
            true => {
                let weights = self.weights(&v.primals[0], v.output)?;
                times(&weights.conjugate()?, v.cotangent)?
            }
            false => self.jacobian_product(&v.output.conjugate()?, v.cotangent)?,
        };
        Ok(smallvec![Some(own)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        Ok(Some(match self.logsumexp {
            true => {
                let weights = self.weights(&j.primals[0], j.output)?;
                self.total(&times(&weights, t)?)
            }
            false => self.jacobian_product(j.output, t)?,
        }))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let Some(at) = v.axes[0] else { return Ok((self.of(&v.inputs[0])?, None)) };
        let low = self.axes & ((1u64 << at) - 1);
        let axes = low | (self.axes - low) << 1;
        Ok((Softmax { axes, ..*self }.of(&v.inputs[0])?, Some(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;
    use crate::transforms;

    type Function = fn(&Array) -> Result<Array>;

    fn composed(logsumexp: bool, axis: usize, a: &Array) -> Result<Array> {
        Softmax::new(logsumexp, &[axis], false).compose(std::slice::from_ref(a), a.dtype())
    }

    /// The operation and its composition.
    const PAIRS: [(Function, Function); 2] = [
        (|a| a.softmax(1, false), |a| composed(false, 1, a)),
        (|a| a.logsumexp(KeepDims(1)), |a| composed(true, 1, a)),
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
    fn the_kernel_matches_the_composition() -> Result<()> {
        let x = sample()?;
        for (own, parts) in PAIRS {
            near(&own(&x)?, &parts(&x)?)?;
        }
        Ok(())
    }

    #[test]
    fn without_a_kernel_the_composition_runs() -> Result<()> {
        let x = sample()?;
        let same =
            |a: Array, b: Array| -> Result<bool> { Ok(a.to_vec::<f32>()? == b.to_vec::<f32>()?) };
        assert!(same(x.softmax(0, false)?, composed(false, 0, &x)?)?);
        assert!(same(x.logsumexp(KeepDims(0))?, composed(true, 0, &x)?)?);
        Ok(())
    }

    /// Tests several rows together, single rows, and parts of rows.
    #[test]
    fn rows_are_of_any_length_and_dtype() -> Result<()> {
        for shape in [[35, 5], [17, 32], [3, 100], [2, 40_000]] {
            let values: Vec<f64> =
                (0..shape[0] * shape[1]).map(|i| (i * i % 103) as f64 / 16.0 - 4.0).collect();
            let values = Array::from_slice(&values, &shape)?;
            for (dtype, tolerance) in [
                (Dtype::Float16, 1e-2),
                (Dtype::Bfloat16, 5e-2),
                (Dtype::Float32, 1e-5),
                (Dtype::Float64, 1e-12),
            ] {
                let x = values.astype(dtype);
                let exact = x.astype(Dtype::Float64);
                for (own, parts) in PAIRS {
                    let found = own(&x)?.astype(Dtype::Float64);
                    assert_near(&found, &parts(&exact)?, tolerance)?;
                }
                // Also tests a result that uses the memory of its operand.
                let taken = x.multiply(1.0)?.softmax(1, false)?;
                assert!(taken.array_equal(&x.softmax(1, false)?, false)?.item::<bool>()?);
            }
        }
        Ok(())
    }

    #[test]
    fn infinities_in_long_rows() -> Result<()> {
        let n = 40_000;
        let low = Array::full(&[n], f32::NEG_INFINITY)?;
        let all_nan =
            |x: &Array| -> Result<bool> { x.softmax(0, false)?.isnan()?.all(None)?.item::<bool>() };
        assert!(all_nan(&low)? && low.logsumexp(None)?.item::<f32>()? == f32::NEG_INFINITY);
        for one in [f32::INFINITY, f32::NAN] {
            let x = low.index_update(crate::index![7], one, crate::Update::Set)?;
            assert!(all_nan(&x)?);
        }
        let x = low.index_update(crate::index![7], 3.0, crate::Update::Set)?;
        assert_eq!(x.softmax(0, false)?.index(crate::index![6..9])?.to_vec::<f32>()?, [0., 1., 0.]);
        Ok(())
    }

    #[test]
    fn derivatives_match_the_composition() -> Result<()> {
        let x = sample()?;
        let t = x.square()?;
        for (own, parts) in PAIRS {
            let weighted = |f: Function, x: &Array| f(x)?.multiply(&f(x)?.exp()?)?.sum(None);
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
                    transforms::vmap(|v: &[Array]| Ok(vec![f(&v[0])?]), &x, [Some(axis)], 0)
                };
                let (a, b): (Result<Vec<Array>>, Result<Vec<Array>>) = (mapped(own), mapped(parts));
                near(&a?[0], &b?[0])?;
            }
        }
        Ok(())
    }
}
