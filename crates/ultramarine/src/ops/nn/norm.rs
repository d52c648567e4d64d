//! Norms of the last axis: [`crate::fast::rms_norm`] and [`crate::fast::layer_norm`]. They are operations of their own on
//! devices that have kernels for them; elsewhere they are made of simpler operations, which fuse with their neighbours.

use crate::{
    array::Array,
    backend::{self, Exec},
    devices,
    dtype::Dtype,
    error::{Error, Result},
    node::Value,
    ops::{
        Call, Candidates, Cotangents, Decompose, Fitted, Jvp, Op, Refit, Rules, Vjp, Vmap,
        rules::{
            batching,
            builders::{bin, like, plus, un},
            shapeless::{broadcast_with, shapeless},
        },
        shape::view::View,
    },
    placement,
    scalar::Scalar,
    shape::Shape,
};
use smallvec::SmallVec;
use ultramarine_abi::schema::{NoAttrs, binary, op, unary};

/// Checks the operands of a norm; returns its dtype.
fn checked(of: &'static str, x: &Array, parameters: [(&str, Option<&Array>); 2]) -> Result<Dtype> {
    x.computable(of)?;
    let Some(last) = x.shape().last() else {
        let text = "Input must have at least 1 dimension but got input with 0 dimensions.";
        return Err(Error::value(of, text));
    };
    for (name, parameter) in parameters {
        let Some(p) = parameter else { continue };
        p.computable(of)?;
        if p.ndim() != 1 {
            let text = format!("{name} must have 1 dimension but has {} dimensions.", p.ndim());
            return Err(Error::value(of, text));
        }
        if p.size() != *last {
            let text = format!(
                "{name} must have the same size as the last dimension of x, {last}, but has {} elements.",
                p.size()
            );
            return Err(Error::value(of, text));
        }
    }
    // A bias without a weight does not count.
    let [(_, weight), (_, bias)] = parameters;
    let mut dtype = x.dtype();
    if let Some(weight) = weight {
        dtype = dtype.promote(weight.dtype());
        dtype = bias.map_or(dtype, |bias| dtype.promote(bias.dtype()));
    }
    match dtype.is_floating() {
        true => Ok(dtype),
        false => Err(Error::value(of, format!("Received unsupported type {}.", dtype.name()))),
    }
}

/// `x / sqrt(mean(x^2) + eps)` along the last axis, times the weight.
///
/// # Errors
/// [`Error::Value`] when `x` has no axis, the weight is not of one dimension and that axis' size, or the dtype that they
/// promote to is not floating.
pub fn rms_norm(x: &Array, weight: Option<&Array>, eps: f64) -> Result<Array> {
    let dtype = checked("rms_norm", x, [("weight", weight), ("bias", None)])?;
    LayerNorm { centered: false, eps }.of(dtype, x, weight, None)
}

/// `(x - mean) / sqrt(variance + eps)` along the last axis, times the weight, plus the bias.
///
/// # Errors
/// As [`rms_norm`], for the bias, too.
pub fn layer_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Result<Array> {
    let dtype = checked("layer_norm", x, [("weight", weight), ("bias", bias)])?;
    LayerNorm { centered: true, eps }.of(dtype, x, weight, bias)
}

/// A norm of x and a weight and, if it is centered, a bias, all of one shape and dtype.
#[derive(Clone, Copy, Debug)]
struct LayerNorm {
    /// Distances from the mean are taken.
    centered: bool,
    eps: f64,
}

/// A parameter in the shape of x. A constant stays one element, or one row, in memory.
fn spread(parameter: &Array, x: &Array) -> Result<Array> {
    if shapeless() || parameter.shape() == x.shape() {
        return broadcast_with(parameter, x.shape(), &[x]);
    }
    Array::try_of(View::Broadcast, &[parameter], Shape::from_slice(x.shape()), x.dtype())
}

/// The dtype of the computation: float32 for halves.
fn inner(dtype: Dtype) -> Dtype {
    if dtype.size() == 2 { Dtype::Float32 } else { dtype }
}

fn times(a: &Array, b: &Array) -> Result<Array> {
    bin(binary::MULTIPLY, a, b)
}

fn mean(a: &Array) -> Result<Array> {
    a.mean(Some(&[-1]), true)
}

impl LayerNorm {
    fn of(
        self,
        dtype: Dtype,
        x: &Array,
        weight: Option<&Array>,
        bias: Option<&Array>,
    ) -> Result<Array> {
        let (weight, bias) = (weight.map(|w| w.astype(dtype)), bias.map(|b| b.astype(dtype)));
        // A half may not hold an integer.
        if !x.dtype().is_floating() || !self.is_native(&x.astype(dtype))? {
            return self.of_parts(dtype, x, weight.as_ref(), bias.as_ref());
        }
        let x = x.astype(dtype);
        let shape = Shape::from_slice(x.shape());
        let whole = |p: Option<Array>, none: f64| spread(&p.unwrap_or_else(|| like(&x, none)), &x);
        let weight = whole(weight, 1.0)?;
        match self.centered {
            true => Array::open(self, &[&x, &weight, &whole(bias, 0.0)?], shape, dtype),
            false => Array::open(self, &[&x, &weight], shape, dtype),
        }
    }

    /// True if the device where it will run has a kernel for it.
    fn is_native(self, x: &Array) -> Result<bool> {
        if backend::gpus().is_empty() || x.size() == 0 {
            return Ok(false);
        }
        let place = placement::place(&Op::open(self), &[x])?;
        let device = devices::get(place.stream.device)?;
        let desc = [(x.dtype(), x.ndim()); 3];
        let inputs = &desc[..if self.centered { 3 } else { 2 }];
        let asked = || device.offers(self.id(), &NoAttrs::new(), inputs, &desc[..1]);
        Ok(!device.is_host() && asked().unwrap_or(false))
    }

    fn id(self) -> u32 {
        if self.centered { op::LAYER_NORM } else { op::RMS_NORM }
    }

    /// The norm in ordinary operations.
    fn of_parts(
        self,
        dtype: Dtype,
        x: &Array,
        weight: Option<&Array>,
        bias: Option<&Array>,
    ) -> Result<Array> {
        let (y, _) = self.normal(dtype, x)?;
        let mut y = y.astype(dtype);
        if let Some(weight) = weight {
            y = times(&y, weight)?;
        }
        bias.map_or(Ok(y.clone()), |bias| y.add(bias))
    }

    /// The normalised values before the weight, and the factor that made them, both in [`inner`] of the dtype.
    fn normal(self, dtype: Dtype, x: &Array) -> Result<(Array, Array)> {
        let mut x = x.astype(inner(dtype));
        if self.centered {
            x = bin(binary::SUBTRACT, &x, &mean(&x)?)?;
        }
        let square = mean(&un(unary::SQUARE, &x))?;
        let scale = un(unary::RSQRT, &bin(binary::ADD, &square, &like(&square, self.eps))?);
        Ok((times(&x, &scale)?, scale))
    }

    /// The derivative of [`Self::normal`], which is symmetric, of a tangent or a cotangent of the same dtype.
    fn jacobian_product(self, (y, scale): &(Array, Array), t: &Array) -> Result<Array> {
        let mut out = bin(binary::SUBTRACT, t, &times(y, &mean(&times(t, y)?)?)?)?;
        if self.centered {
            out = bin(binary::SUBTRACT, &out, &mean(t)?)?;
        }
        times(&out, scale)
    }
}

impl Rules for LayerNorm {
    fn name(&self) -> &'static str {
        if self.centered { "layer_norm" } else { "rms_norm" }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let eps = Scalar::from_f64(Dtype::Float64, self.eps);
        call.run(exec, self.id(), &NoAttrs::new(), &[eps])
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        candidates.add({
            let x = &d.inputs[0];
            self.of_parts(x.dtype(), x, Some(&d.inputs[1]), d.inputs.get(2))
        });
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.same(Shape::from_slice(r.inputs[0]))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let dtype = v.cotangent.dtype();
        let (normal, t) = (self.normal(dtype, &v.primals[0])?, v.cotangent.astype(inner(dtype)));
        let of_x = || Ok(self.jacobian_product(&normal, &times(&t, &v.primals[1])?)?.astype(dtype));
        let of_weight = || Ok(times(&t, &normal.0)?.astype(dtype));
        let mut all: Cotangents = Cotangents::new();
        all.push(v.wanted[0].then(of_x).transpose()?);
        all.push(v.wanted[1].then(of_weight).transpose()?);
        if self.centered {
            all.push(v.wanted[2].then(|| v.cotangent.clone()));
        }
        Ok(all)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let dtype = j.output.dtype();
        let normal = self.normal(dtype, &j.primals[0])?;
        let up = |t: &Array| t.astype(inner(dtype));
        let of_x = |t: &Array| times(&self.jacobian_product(&normal, &up(t))?, &j.primals[1]);
        let of_weight = |t: &Array| times(&normal.0, &up(t));
        let x = j.tangents[0].as_ref().map(of_x).transpose()?;
        let weight = j.tangents[1].as_ref().map(of_weight).transpose()?;
        let bias = j.tangents.get(2).and_then(Option::as_ref).map(up);
        Ok(plus(plus(x, weight)?, bias)?.map(|t| t.astype(dtype)))
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let operands = batching::all_batched(v)?;
        let inputs: SmallVec<[&Array; 3]> = operands.iter().collect();
        Ok((Array::open(*self, &inputs, batching::batched_shape(v), v.dtype)?, Some(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;
    use crate::transforms;

    /// The operation, which no device has here, and what it is made of, of x, a weight and a bias.
    fn pair(centered: bool) -> [impl Fn(&[Array]) -> Result<Array>; 2] {
        let rules = LayerNorm { centered, eps: 1e-3 };
        [true, false].map(|own| {
            move |v: &[Array]| {
                let bias = centered.then(|| &v[2]);
                if !own {
                    return rules.of_parts(v[0].dtype(), &v[0], Some(&v[1]), bias);
                }
                let shape = Shape::from_slice(v[0].shape());
                let mut all = vec![v[0].clone(), v[1].broadcast_to(&shape)?];
                if let Some(bias) = bias {
                    all.push(bias.broadcast_to(&shape)?);
                }
                let all: Vec<&Array> = all.iter().collect();
                Array::open(rules, &all, shape, v[0].dtype())
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

    #[test]
    fn without_a_kernel_it_is_what_it_is_made_of() -> Result<()> {
        let v = operands()?;
        for centered in [false, true] {
            let [own, parts] = pair(centered);
            near(&own(&v)?, &parts(&v)?)?;
        }
        near(&rms_norm(&v[0], Some(&v[1]), 1e-3)?, &pair(false)[0](&v)?)?;
        near(&layer_norm(&v[0], Some(&v[1]), Some(&v[2]), 1e-3)?, &pair(true)[0](&v)?)
    }

    #[test]
    fn its_derivatives_are_those_of_its_parts() -> Result<()> {
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
                    transforms::vmap(
                        |v: &[Array]| Ok(vec![f(v)?]),
                        &v,
                        &axes,
                        |_| Ok(vec![Some(0)]),
                    )
                };
                near(&mapped(&own)?[0], &mapped(&parts)?[0])?;
            }
        }
        Ok(())
    }
}
