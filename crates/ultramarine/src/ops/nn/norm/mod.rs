//! Norms over the last axis: [`crate::fast::rms_norm`] and [`crate::fast::layer_norm`].

pub(crate) mod gradient;

use super::compute_dtype;
use crate::backend::{Exec, Operand};
use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::builders::{bin, like, plus, times, un, with_axis};
use crate::ops::rules::shapeless::broadcast_with;
use crate::ops::shape::axes::KeepDims;
use crate::ops::{
    Anchor, Call, Composite, Cotangents, Draft, Fitted, Jvp, Offers, Refit, Rules, Vjp, Vmap,
    attributes, create::fill::broadcast_constant, rules::batching, shape::view::View,
};
use crate::{array::Array, dtype::Dtype, node::Value, scalar::Scalar, shape::Shape};
use gradient::NormGradient;
use smallvec::SmallVec;
use ultramarine_abi::schema::{NoAttrs, binary, op, unary};

/// Checks the operands of a norm; returns its dtype.
fn checked(of: &'static str, x: &Array, parameters: [(&str, Option<&Array>); 2]) -> Result<Dtype> {
    x.computable(of)?;
    let Some(last) = x.shape().last() else {
        bail!(
            of,
            "Input must have at least 1 dimension but got input with 0 dimensions. Reshape it to (1,)."
        );
    };
    for (name, parameter) in parameters {
        let Some(p) = parameter else { continue };
        p.computable(of)?;
        ensure!(
            p.ndim() == 1,
            of,
            "{name} must have 1 dimension but has {} dimensions. Reshape it.",
            p.ndim()
        );
        ensure!(
            p.size() == *last,
            of,
            "{name} must have the same size as the last dimension of x, {last}, but has {} elements. Pass one element for each feature.",
            p.size()
        );
    }
    // Without a weight, the bias does not influence the dtype.
    let [(_, weight), (_, bias)] = parameters;
    let mut dtype = x.dtype();
    if let Some(weight) = weight {
        dtype = dtype.promote(weight.dtype());
        dtype = bias.map_or(dtype, |bias| dtype.promote(bias.dtype()));
    }
    match dtype.is_floating() {
        true => Ok(dtype),
        false => Err(Error::value(
            of,
            format!(
                "Received unsupported type {}. Convert the operands with astype(float32).",
                dtype.name()
            ),
        )),
    }
}

/// Returns `x / sqrt(mean(x^2) + eps) * weight`, with the mean over the last axis. `x` is `(..., n)`, the weight `(n)`;
/// without a weight, ones are used. The result has the promoted dtype; sums of float16 and bfloat16 are computed in
/// float32.
///
/// ```
/// use ultramarine::{Array, fast::rms_norm};
/// let x = Array::from_slice(&[3.0f32, -3.0], &[1, 2])?;
/// assert_eq!(rms_norm(&x, None, 0.0)?.to_vec::<f32>()?, [1.0, -1.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] if `x` is 0-d, if the weight is not 1-d with the size of the last axis, or if
/// the promoted dtype is not floating.
pub fn rms_norm(x: &Array, weight: Option<&Array>, eps: f64) -> Result<Array> {
    let dtype = checked("rms_norm", x, [("weight", weight), ("bias", None)])?;
    LayerNorm::of(false, eps, dtype, x, [weight, None])
}

/// Returns `(x - mean) / sqrt(variance + eps) * weight + bias`, with mean and variance over the
/// last axis. `x` is `(..., n)`, weight and bias are `(n)`; without a weight the bias does not
/// change the dtype. Sums of float16 and bfloat16 are computed in float32.
///
/// # Errors
/// As [`rms_norm`]; the conditions for the weight apply to the bias too.
pub fn layer_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Result<Array> {
    let dtype = checked("layer_norm", x, [("weight", weight), ("bias", bias)])?;
    LayerNorm::of(true, eps, dtype, x, [weight, bias])
}

attributes! {
    /// A norm of x, times a weight, plus a bias. The operands are x, and the weight and the bias if they are given. x
    /// has the dtype of the result or an integer dtype. Weight and bias have the result's dtype, and the shape of the
    /// last axis alone or of the result.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct LayerNorm {
        /// Set if the mean is subtracted.
        centered: bool,
        weight: bool,
        bias: bool,
        eps: f64,
    }
}

/// A parameter in the shape of x. A constant stays one element in memory, and a parameter stays one row.
fn spread(parameter: &Array, x: &Array) -> Result<Array> {
    Ok(broadcast_with(parameter, x.shape(), &[x])?.into_owned())
}

fn mean(a: &Array) -> Result<Array> {
    a.mean(KeepDims(-1))
}

/// The sum over all axes except the last.
fn sum_rows(a: &Array) -> Result<Array> {
    let axes: SmallVec<[isize; 4]> = (0..a.ndim() as isize - 1).collect();
    a.sum(&axes[..])
}

impl LayerNorm {
    fn of(
        centered: bool,
        eps: f64,
        dtype: Dtype,
        x: &Array,
        [weight, bias]: [Option<&Array>; 2],
    ) -> Result<Array> {
        // Keep an integer x as it is, because float16 or bfloat16 may not hold it.
        let x = if x.dtype().is_floating() { x.astype(dtype) } else { x.clone() };
        let mut operands: SmallVec<[Array; 3]> = SmallVec::from_elem(x.clone(), 1);
        for parameter in [weight, bias].into_iter().flatten() {
            operands.push(parameter.astype(dtype));
        }
        let rules = LayerNorm { centered, weight: weight.is_some(), bias: bias.is_some(), eps };
        rules.node(&operands, Shape::from_slice(x.shape()), dtype)
    }

    fn node(self, operands: &[Array], shape: Shape, dtype: Dtype) -> Result<Array> {
        let operands: SmallVec<[&Array; 3]> = operands.iter().collect();
        Array::try_of(self, &operands, shape, dtype)
    }

    fn id(self) -> u32 {
        if self.centered { op::LAYER_NORM } else { op::RMS_NORM }
    }

    /// The weight and the bias from a list with an entry for each operand.
    fn parameters<T>(self, all: &[T]) -> (Option<&T>, Option<&T>) {
        let weight = if self.weight { all.get(1) } else { None };
        let bias = if self.bias { all.get(1 + self.weight as usize) } else { None };
        (weight, bias)
    }

    /// The normalised values before the weight, and the factor that scaled them, both in [`compute_dtype`] of the
    /// dtype.
    fn normal(self, dtype: Dtype, x: &Array) -> Result<(Array, Array)> {
        let mut x = x.astype(compute_dtype(dtype));
        if self.centered {
            x = bin(binary::SUBTRACT, &x, &mean(&x)?)?;
        }
        let square = mean(&un(unary::SQUARE, &x))?;
        let scale = un(unary::RSQRT, &bin(binary::ADD, &square, &like(&square, self.eps))?);
        Ok((times(&x, &scale)?, scale))
    }

    /// Applies the derivative of [`Self::normal`] to a tangent or a cotangent of the same dtype; the derivative is
    /// symmetric.
    fn jacobian_product(self, (y, scale): &(Array, Array), t: &Array) -> Result<Array> {
        let mut out = bin(binary::SUBTRACT, t, &times(y, &mean(&times(t, y)?)?)?)?;
        if self.centered {
            out = bin(binary::SUBTRACT, &out, &mean(t)?)?;
        }
        times(&out, scale)
    }
}

impl Composite for LayerNorm {
    fn is_offered(&self, offers: &Offers<'_>) -> bool {
        let inputs = &[offers.output; 3][..if self.centered { 3 } else { 2 }];
        offers.inputs[0] == offers.output && offers.kernel(self.id(), &NoAttrs::new(), inputs)
    }

    fn compose(&self, operands: &[Array], dtype: Dtype) -> Result<Array> {
        let mut y = self.normal(dtype, &operands[0])?.0.astype(dtype);
        let (weight, bias) = self.parameters(operands);
        if let Some(weight) = weight {
            y = times(&y, &spread(weight, &y)?)?;
        }
        bias.map_or(Ok(y.clone()), |bias| y.add(&spread(bias, &y)?))
    }
}

impl Rules for LayerNorm {
    fn name(&self) -> &'static str {
        if self.centered { "layer_norm" } else { "rms_norm" }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let ([(x, dtype), rest @ ..], [(out, to)]) = (node.inputs, node.outputs) else {
            return false;
        };
        let fits = |(shape, own): &(&[usize], Dtype)| {
            own == to && (shape == out || out.last().is_some_and(|n| **shape == [*n]))
        };
        node.is_computable()
            && to.is_floating()
            && (dtype == to || !dtype.is_inexact())
            && x == out
            && !x.is_empty()
            && rest.len() == usize::from(self.weight) + usize::from(self.bias)
            && rest.iter().all(fits)
    }

    /// Kernels always take a weight and, if the norm is centered, a bias.
    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let spread = |i: usize| {
            let (shape, _) = call.descs[i];
            let lacks = shape.len() < call.shape.len();
            lacks.then(|| View::broadcast_value(&call.inputs[i], shape, call.shape))
        };
        let spread: SmallVec<[Option<Value>; 3]> = (0..call.inputs.len()).map(spread).collect();
        let operand = |i: usize| match &spread[i] {
            Some(value) => call.output(value),
            None => call.operand(i),
        };
        let all: SmallVec<[Operand<'_>; 3]> = (0..call.inputs.len()).map(operand).collect();
        let constant =
            |v: f64| broadcast_constant(exec, Scalar::from_f64(call.dtype, v), call.shape);
        let (weight, bias) = self.parameters(&all);
        let one = if self.weight { None } else { Some(constant(1.0)?) };
        let zero = if self.bias || !self.centered { None } else { Some(constant(0.0)?) };
        let mut inputs: SmallVec<[Operand<'_>; 3]> = SmallVec::from_elem(all[0], 1);
        inputs.extend(weight.copied().or(one.as_ref().map(|v| call.output(v))));
        inputs.extend(bias.copied().or(zero.as_ref().map(|v| call.output(v))));
        let eps = Scalar::from_f64(Dtype::Float64, self.eps);
        let value = exec.alloc(call.shape, call.dtype)?;
        exec.run(self.id(), &NoAttrs::new(), &inputs, &[call.output(&value)], &[eps])?;
        Ok(value)
    }

    /// Only norms that have the kernels' operands are anchors, because a program gets no made-up operands.
    fn anchor(&self) -> Option<Anchor> {
        let whole = self.weight && self.bias == self.centered;
        let eps = Scalar::from_f64(Dtype::Float64, self.eps);
        whole.then(|| Anchor::new(self.id(), &NoAttrs::new(), &[eps]))
    }

    fn composite(&self) -> Option<&dyn Composite> {
        Some(self)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.same(Shape::from_slice(r.inputs[0]))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (dtype, x) = (v.cotangent.dtype(), &v.primals[0]);
        let mut all = Cotangents::from_elem(None, v.primals.len());
        if v.primals[1..].iter().all(|p| p.ndim() == 1) && x.dtype() == dtype && x.size() > 0 {
            let wanted = v.wanted[1..].contains(&true);
            let (weight, _) = self.parameters(v.primals);
            let found = NormGradient::of(*self, x, weight, v.cotangent, wanted)?;
            let of = [Some(0), self.weight.then_some(1), self.bias.then_some(2)];
            for (to, i) in all.iter_mut().zip(of.into_iter().flatten()) {
                *to = Some(found[i].clone());
            }
            return Ok(all);
        }
        let (normal, t) = (self.normal(dtype, x)?, v.cotangent.astype(compute_dtype(dtype)));
        let (weight, bias) = self.parameters(v.primals);
        let over_rows = |t: &Array, parameter: &Array| match parameter.ndim() < x.ndim() {
            true => sum_rows(t),
            false => Ok(t.clone()),
        };
        if v.wanted[0] {
            let t = weight.map_or(Ok(t.clone()), |weight| times(&t, &spread(weight, &t)?))?;
            all[0] = Some(self.jacobian_product(&normal, &t)?.astype(dtype));
        }
        if let Some(weight) = weight.filter(|_| v.wanted[1]) {
            all[1] = Some(over_rows(&times(&t, &normal.0)?, weight)?.astype(dtype));
        }
        if let Some(bias) = bias.filter(|_| v.wanted[v.wanted.len() - 1]) {
            let last = all.len() - 1;
            all[last] = Some(over_rows(&t, bias)?.astype(dtype));
        }
        Ok(all)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let dtype = j.output.dtype();
        let normal = self.normal(dtype, &j.primals[0])?;
        let up = |t: &Array| t.astype(compute_dtype(dtype));
        let whole = |t: &Array| spread(&up(t), &normal.0);
        let (weight, _) = self.parameters(j.primals);
        let of_x = |t: &Array| {
            let t = self.jacobian_product(&normal, &up(t))?;
            weight.map_or(Ok(t.clone()), |weight| times(&t, &spread(weight, &t)?))
        };
        let of_weight = |t: &Array| times(&normal.0, &whole(t)?);
        let (of_w, of_b) = self.parameters(j.tangents);
        let x = j.tangents[0].as_ref().map(of_x).transpose()?;
        let weight = of_w.and_then(Option::as_ref).map(of_weight).transpose()?;
        let bias = of_b.and_then(Option::as_ref).map(whole).transpose()?;
        Ok(plus(plus(x, weight)?, bias)?.map(|t| t.astype(dtype)))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        // Unmapped parameters keep the shape of the last axis.
        let shared = v.axes[1..].iter().all(Option::is_none) && v.axes[0].is_some();
        if shared && v.inputs[1..].iter().all(|p| p.ndim() == 1) {
            let mut operands: SmallVec<[Array; 3]> = v.inputs.iter().cloned().collect();
            operands[0] = batching::batched(&v.inputs[0], v.axes[0], v.size)?;
            return Ok((self.node(&operands, batching::batched_shape(v), v.dtype)?, Some(0)));
        }
        let (mut operands, shape) = (batching::all_batched(v)?, batching::batched_shape(v));
        let (x, parameters) = operands.split_at_mut(1);
        for parameter in parameters {
            while parameter.ndim() < shape.len() {
                *parameter = with_axis(parameter, 1)?;
            }
            *parameter = spread(parameter, &x[0])?;
        }
        Ok((self.node(&operands, shape, v.dtype)?, Some(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;
    use crate::transforms;

    /// The operation and its composition, as functions of x, a weight and a bias.
    fn pair(centered: bool) -> [impl Fn(&[Array]) -> Result<Array>; 2] {
        [true, false].map(|own| {
            move |v: &[Array]| match own {
                true if centered => layer_norm(&v[0], Some(&v[1]), Some(&v[2]), 1e-3),
                true => rms_norm(&v[0], Some(&v[1]), 1e-3),
                false => {
                    let rules = LayerNorm { centered, weight: true, bias: centered, eps: 1e-3 };
                    rules.compose(&v[..if centered { 3 } else { 2 }], v[1].dtype())
                }
            }
        })
    }

    fn sample(shape: &[usize]) -> Result<Array> {
        let n: usize = shape.iter().product();
        let values: Vec<f32> = (0..n).map(|i| (i * i % 7) as f32 / 3.0 - 1.0).collect();
        Array::from_slice(&values, shape)
    }

    fn operands() -> Result<Vec<Array>> {
        Ok(vec![sample(&[3, 4])?, sample(&[4])?.exp()?, sample(&[4])?.square()?])
    }

    #[track_caller]
    fn near(a: &Array, b: &Array) -> Result<()> {
        assert_near(a, b, 2e-5)
    }

    /// Kernels do not take integers, so the composition runs.
    #[test]
    fn without_a_kernel_the_composition_runs() -> Result<()> {
        let mut v = operands()?;
        v[0] = times(&v[0], &like(&v[0], 4.0))?.astype(Dtype::Int32);
        for centered in [false, true] {
            let [own, parts] = pair(centered);
            assert_eq!(own(&v)?.to_vec::<f32>()?, parts(&v)?.to_vec::<f32>()?);
        }
        Ok(())
    }

    #[test]
    fn kernel_and_composition_agree() -> Result<()> {
        let v = operands()?;
        for centered in [false, true] {
            let [own, parts] = pair(centered);
            near(&own(&v)?, &parts(&v)?)?;
        }
        Ok(())
    }

    #[test]
    fn derivatives_match_the_composition() -> Result<()> {
        let v = operands()?;
        let tangents = [v[0].square()?, v[1].square()?, v[2].exp()?];
        for centered in [false, true] {
            let [own, parts] = pair(centered);
            let n = if centered { 3 } else { 2 };
            let slopes = |f: &dyn Fn(&[Array]) -> Result<Array>| {
                let cotangent = sample(&[3, 4])?.exp()?;
                transforms::vjp(|v: &[Array]| Ok(vec![f(v)?]), &v[..n], &[cotangent])
            };
            for (a, b) in slopes(&own)?.1.iter().zip(&slopes(&parts)?.1) {
                near(a, b)?;
            }
            let along = |f: &dyn Fn(&[Array]) -> Result<Array>| {
                transforms::jvp(|v: &[Array]| Ok(vec![f(v)?]), &v[..n], &tangents[..n])
            };
            near(&along(&own)?.1[0], &along(&parts)?.1[0])?;
        }
        Ok(())
    }

    #[test]
    fn a_mapped_axis_lies_anywhere() -> Result<()> {
        let mut v = operands()?;
        v[0] = sample(&[3, 4, 5])?;
        for (axis, last) in [(0, 5), (1, 5), (2, 4)] {
            v[1] = sample(&[last])?;
            v[2] = sample(&[last])?.exp()?;
            for centered in [false, true] {
                let [own, parts] = pair(centered);
                let mapped = |f: &dyn Fn(&[Array]) -> Result<Array>| {
                    let axes = [Some(axis), None, None];
                    transforms::vmap(|v: &[Array]| Ok(vec![f(v)?]), &v, axes, 0)
                };
                near(&mapped(&own)?[0], &mapped(&parts)?[0])?;
            }
        }
        Ok(())
    }

    /// Compares the gradients of all rows with those of each row on its own. The parameters' gradients of the single
    /// rows add up.
    #[test]
    fn gradients_of_rows_add_up() -> Result<()> {
        let x = sample(&[2, 3, 4])?;
        let (weight, bias) = (sample(&[4])?.exp()?, sample(&[4])?);
        let cotangent = sample(&[2, 3, 4])?.cos()?;
        for centered in [false, true] {
            let [own, _] = pair(centered);
            let n = if centered { 3 } else { 2 };
            let slopes = |x: &Array, cotangent: &Array| {
                let operands = [x.clone(), weight.clone(), bias.clone()];
                let f = |v: &[Array]| Ok(vec![own(v)?]);
                transforms::vjp(f, &operands[..n], std::slice::from_ref(cotangent))
                    .map(|(_, all)| all)
            };
            let whole = slopes(&x, &cotangent)?;
            assert_eq!(whole[1].shape(), [4]);
            let mapped = transforms::vmap(
                |v: &[Array]| slopes(&v[0], &v[1]),
                &[x.clone(), cotangent.clone()],
                [Some(0), Some(0)],
                0,
            )?;
            near(&mapped[0], &whole[0])?;
            for (mapped, whole) in mapped[1..].iter().zip(&whole[1..]) {
                near(&mapped.sum(0)?, whole)?;
            }
        }
        Ok(())
    }
}
