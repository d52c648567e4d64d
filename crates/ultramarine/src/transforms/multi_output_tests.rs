//! Tests of operations with several results, with an operation made for the tests: `x * y` and
//! `sum(x)`.

#![allow(clippy::cloned_ref_to_slice_refs, reason = "lists of one array look like lists of two")]

use super::{grad, jvp, vjp, vmap};
use crate::backend::{Exec, Operand};
use crate::error::{Error, Result, ensure};
use crate::node::Value;
use crate::ops::rules::multi_output::{
    MultiOutput, MultiOutputJvp, MultiOutputRules, MultiOutputVjp,
};
use crate::ops::{Call, Cotangents, Draft, Rules, Vmap, attributes};
use crate::{array::Array, dtype::Dtype, memory, shape::Shape, stream::new_stream};
use mock_device::BUFFERS;
use smallvec::smallvec;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_test_support::own_process;

#[path = "../../tests/integration/support/mock_device/mod.rs"]
mod mock_device;

static RUNS: AtomicUsize = AtomicUsize::new(0);

attributes! {
    /// Computes the product of two vectors, and the sum of the first. The vectors lie along `axis`.
    #[derive(Debug)]
    struct Pair {
        fails: bool,
    }
}

fn pair(x: &Array, y: &Array, fails: bool) -> Result<[Array; 2]> {
    let product = Shape::from_slice(x.shape());
    let sum = Shape::from_slice(&x.shape()[..x.ndim() - 1]);
    let results = smallvec![(product, x.dtype()), (sum, x.dtype())];
    let outputs = Array::multi_output(Pair { fails }, &[x, y], results)?;
    outputs.try_into().map_err(|_| Error::runtime("pair", "two results"))
}

impl MultiOutputRules for Pair {
    fn name(&self) -> &'static str {
        "pair"
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        true
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        if !exec.device.is_host() {
            return Err(exec.refuse(MultiOutputRules::name(self)));
        }
        RUNS.fetch_add(1, Ordering::Relaxed);
        ensure!(!self.fails, "pair", "fails.");
        let given = |i: usize| {
            let (shape, dtype) = call.descs[i];
            Array::given(call.inputs[i].clone(), Shape::from_slice(shape), dtype)
        };
        let (x, y) = (given(0).to_vec::<f32>()?, given(1).to_vec::<f32>()?);
        let n = *call.shape.last().unwrap_or(&1);
        let product: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
        let sums: Vec<f32> = x.chunks(n).map(|row| row.iter().sum()).collect();
        let made = |data: &[f32], (shape, _): &(Shape, Dtype)| -> Result<Value> {
            let made = Array::from_slice(data, shape)?;
            exec.local(&Operand { value: made.value()?, shape, dtype: Dtype::Float32 })
        };
        Ok(vec![made(&product, &results[0])?, made(&sums, &results[1])?])
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let (x, y) = (&v.primals[0], &v.primals[1]);
        let [product, sum] = v.cotangents else {
            return Err(Error::runtime("pair", "two results"));
        };
        assert_eq!(v.outputs.len(), 2);
        let of_product = product.as_ref().map(|c| c.multiply(y)).transpose()?;
        let of_sum = match sum {
            Some(c) => Some(c.expand_dims([-1])?.broadcast_to(x.shape())?),
            None => None,
        };
        let x_ = match (of_product, of_sum) {
            (Some(a), Some(b)) => Some(a.add(&b)?),
            (a, b) => a.or(b),
        };
        Ok(smallvec![x_, product.as_ref().map(|c| c.multiply(x)).transpose()?])
    }

    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        let (x, y) = (&j.primals[0], &j.primals[1]);
        let of = |t: &Option<Array>, by: &Array| t.as_ref().map(|t| t.multiply(by)).transpose();
        let product = match (of(&j.tangents[0], y)?, of(&j.tangents[1], x)?) {
            (Some(a), Some(b)) => Some(a.add(&b)?),
            (a, b) => a.or(b),
        };
        let sum = j.tangents[0].as_ref().map(|t| t.sum(-1)).transpose()?;
        Ok(vec![product, sum])
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let in_front = |i: usize| match v.axes[i] {
            Some(axis) => v.inputs[i].moveaxis(axis as isize, 0),
            None => {
                let mut shape = Shape::from_slice(v.inputs[i].shape());
                shape.insert(0, v.size);
                v.inputs[i].broadcast_to(&shape)
            }
        };
        let [product, sum] = pair(&in_front(0)?, &in_front(1)?, self.fails)?;
        Ok(vec![(product, Some(0)), (sum, Some(0))])
    }
}

fn of(data: &[f32]) -> Result<Array> {
    Array::from_slice(data, &[data.len()])
}

fn operands() -> Result<(Array, Array)> {
    Ok((of(&[1.0, 2.0, 3.0])?, of(&[4.0, 5.0, 6.0])?))
}

#[test]
fn runs_once_for_all_results() -> Result<()> {
    own_process!();
    let (x, y) = operands()?;
    let before = RUNS.load(Ordering::Relaxed);
    let [product, sum] = pair(&x, &y, false)?;
    assert_eq!(sum.item::<f32>()?, 6.0);
    assert_eq!(product.to_vec::<f32>()?, [4.0, 10.0, 18.0]);
    assert_eq!(RUNS.load(Ordering::Relaxed), before + 1);

    // Evaluate one result alone, then both together with an array that is computed from them.
    let [product, sum] = pair(&x, &y, false)?;
    drop(product);
    assert_eq!(sum.add(&sum)?.item::<f32>()?, 12.0);
    let [product, sum] = pair(&x, &y, false)?;
    assert_eq!(product.multiply(&sum)?.to_vec::<f32>()?, [24.0, 60.0, 108.0]);
    assert_eq!(RUNS.load(Ordering::Relaxed), before + 3);
    Ok(())
}

#[test]
fn memory_goes_with_the_results() -> Result<()> {
    own_process!();
    const N: usize = 1 << 16;
    let x = Array::from_slice(&vec![1.0f32; N], &[N])?;
    let start = memory::active();
    let [product, sum] = pair(&x, &x, false)?;
    crate::eval(&[product.clone(), sum.clone()])?;
    assert!(memory::active() >= start + 4 * N);
    drop(product);
    assert!(memory::active() < start + 4 * N, "the sum keeps the product's memory");
    drop(sum);

    // While a result is not computed yet, the operation keeps all its operands. Afterwards it keeps
    // none.
    let [product, sum] = pair(&x, &x, false)?;
    sum.eval()?;
    assert!(memory::active() >= start + 4 * N);
    drop(product);
    assert!(memory::active() < start + 4 * N, "a dropped result keeps its memory");
    Ok(())
}

#[test]
fn gradients_of_one_result_and_of_all() -> Result<()> {
    let (x, y) = operands()?;
    let one = of(&[1.0, 1.0, 1.0])?;
    let both = |a: &[Array]| pair(&a[0], &a[1], false).map(Vec::from);
    let scalar = Array::scalar(10.0f32);
    let (_, g) = vjp(both, &[x.clone(), y.clone()], &[one.clone(), scalar])?;
    assert_eq!(g[0].to_vec::<f32>()?, [14.0, 15.0, 16.0]);
    assert_eq!(g[1].to_vec::<f32>()?, [1.0, 2.0, 3.0]);

    let sum = |x: &Array| -> Result<Array> { Ok(pair(x, &y, false)?[1].clone()) };
    assert_eq!(grad(sum)(&x)?.to_vec::<f32>()?, [1.0; 3]);
    let product = |x: &Array| pair(&y, x, false)?[0].sum(None);
    assert_eq!(grad(product)(&x)?.to_vec::<f32>()?, [4.0, 5.0, 6.0]);
    // Use the same result twice, and the same operand twice.
    let twice = |x: &Array| -> Result<Array> {
        let [product, sum] = pair(x, x, false)?;
        product.add(&product)?.sum(None)?.multiply(&sum)
    };
    // d/dx_i 2 sum(x^2) sum(x) = 4 x_i sum(x) + 2 sum(x^2)
    assert_eq!(grad(twice)(&x)?.to_vec::<f32>()?, [52.0, 76.0, 100.0]);

    let (out, t) = jvp(both, &[x.clone(), y.clone()], &[one.clone(), one.clone()])?;
    assert_eq!(out[1].item::<f32>()?, 6.0);
    assert_eq!(t[0].to_vec::<f32>()?, [5.0, 7.0, 9.0]);
    assert_eq!(t[1].item::<f32>()?, 3.0);
    let last = |a: &[Array]| pair(&x, &a[0], false).map(Vec::from);
    let (_, t) = jvp(last, &[y], &[one])?;
    assert_eq!((t[0].to_vec::<f32>()?, t[1].item::<f32>()?), (vec![1.0, 2.0, 3.0], 0.0));
    Ok(())
}

#[test]
fn results_that_were_read_stay_traced() -> Result<()> {
    let (x, y) = operands()?;
    for read in 0..3 {
        let f = |x: &Array| -> Result<Array> {
            let outputs = pair(x, &y, false)?;
            match read {
                0 => outputs[0].eval()?,
                1 => outputs[1].eval()?,
                _ => crate::eval(&outputs)?,
            }
            outputs[0].sum(None)?.multiply(&outputs[1])
        };
        // sum(x * y) = 32, sum(x) = 6
        assert_eq!(grad(f)(&x)?.to_vec::<f32>()?, [56.0, 62.0, 68.0], "{read}");
    }
    Ok(())
}

#[test]
fn transforms_nest() -> Result<()> {
    let (x, y) = operands()?;
    let f = |x: &Array| -> Result<Array> {
        let [product, sum] = pair(x, &x.multiply(x)?, false)?;
        product.sum(None)?.multiply(&sum)
    };
    // s = sum(x), c = sum(x^3): gradient 3 x_i^2 s + c, and its sum's gradient.
    let slope = |x: &Array| grad(f)(x)?.sum(None);
    assert_eq!(grad(f)(&x)?.to_vec::<f32>()?, [54.0, 108.0, 198.0]);
    // sum_i (3 x_i^2 s + c): 6 x_j s + 3 sum(x^2) + 9 x_j^2
    assert_eq!(grad(slope)(&x)?.to_vec::<f32>()?, [87.0, 150.0, 231.0]);
    let forward = |x: &Array| -> Result<Array> {
        let ones = Array::ones(x.shape(), Dtype::Float32)?;
        let (_, t) = jvp(|a: &[Array]| Ok::<_, Error>(vec![f(&a[0])?]), &[x.clone()], &[ones])?;
        Ok(t[0].clone())
    };
    assert_eq!(grad(forward)(&x)?.to_vec::<f32>()?, [87.0, 150.0, 231.0]);

    let batch = crate::stack(&[x.clone(), y.clone()], 1)?;
    let rows = |g: &dyn Fn(&Array) -> Result<Array>| -> Result<Vec<f32>> {
        let run = |a: &[Array]| Ok::<_, Error>(vec![g(&a[0])?]);
        vmap(run, &[batch.clone()], [Some(1)], 0)?[0].to_vec::<f32>()
    };
    assert_eq!(rows(&f)?, [216.0, 6075.0]);
    let alone = |g: &dyn Fn(&Array) -> Result<Array>| -> Result<Vec<f32>> {
        Ok([g(&x)?.to_vec::<f32>()?, g(&y)?.to_vec::<f32>()?].concat())
    };
    assert_eq!(rows(&grad(f))?, alone(&grad(f))?);
    assert_eq!(rows(&grad(slope))?, alone(&grad(slope))?);
    // One operand is mapped, and one result is not used.
    let mixed = |a: &Array| -> Result<Array> { Ok(pair(&x, a, false)?[0].clone()) };
    assert_eq!(rows(&mixed)?, alone(&mixed)?);
    let through = |b: &Array| -> Result<Array> {
        let run = |a: &[Array]| Ok::<_, Error>(vec![f(&a[0])?]);
        vmap(run, &[b.clone()], [Some(1)], 0)?[0].sum(None)
    };
    let g = grad(through)(&batch)?.transpose()?;
    assert_eq!(g.to_vec::<f32>()?, alone(&grad(f))?);
    Ok(())
}

#[test]
fn an_error_is_every_results() -> Result<()> {
    let (x, y) = operands()?;
    let [product, sum] = pair(&x, &y, true)?;
    let after = product.add(&y)?;
    for array in [&sum, &product] {
        let error = array.eval().err().map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some("[pair] fails."));
    }
    let error = after.eval().err().map(|e| (e.to_string(), matches!(e.root(), Error::Value(_))));
    assert!(error.as_ref().is_some_and(|e| e.0.ends_with("[pair] fails.") && e.1), "{error:?}");

    // The error of an operand is passed on, too.
    let bad = pair(&x, &y, true)?[0].clone();
    let outputs = pair(&bad, &y, false)?;
    assert!(outputs[0].eval().is_err() && outputs[1].eval().is_err());
    Ok(())
}

#[test]
fn other_streams() -> Result<()> {
    let (x, y) = operands()?;
    let other = new_stream(crate::Device::CPU)?;
    let outputs = crate::with_stream(other, || pair(&x.square()?, &y, false))?;
    assert_eq!((outputs[0].stream(), outputs[1].stream()), (other, other));
    let total = outputs[0].sum(None)?.add(&outputs[1])?;
    crate::async_eval(&[total.clone(), outputs[1].clone()])?;
    assert_eq!(total.item::<f32>()?, 78.0 + 14.0);
    assert_eq!(outputs[1].item::<f32>()?, 14.0);
    Ok(())
}

/// Tests a device with its own memory that has no kernel for the operation: the CPU runs it, and
/// all results are on the device.
#[test]
fn another_device() -> Result<()> {
    own_process!();
    // SAFETY: the mock device follows the ABI.
    let device = unsafe { crate::register(mock_device::init) }?[0];
    let gpu = crate::default_stream(device)?;
    let (x, y) = operands()?;
    let [product, sum] = crate::with_stream(gpu, || pair(&x, &y, false))?;
    let twice = crate::with_stream(gpu, || product.add(&product))?;
    assert_eq!(twice.to_vec::<f32>()?, [8.0, 20.0, 36.0]);
    assert_eq!(sum.item::<f32>()?, 6.0);
    for output in [&product, &sum] {
        assert_eq!(output.value()?.buffer.device(), device);
    }
    let count = crate::op_counts().into_iter().find(|c| c.device == device && c.op == "pair");
    assert_eq!(count.map(|c| (c.native, c.decomposed, c.cpu)), Some((0, 0, 1)));

    let f = |x: &Array| pair(x, &y, false)?[0].sum(None);
    let gradient = crate::with_stream(gpu, || grad(f)(&x))?;
    assert_eq!(gradient.to_vec::<f32>()?, [4.0, 5.0, 6.0]);

    crate::set_strict(true, &[]);
    let outputs = crate::with_stream(gpu, || pair(&x, &y, false))?;
    for output in &outputs {
        let error = output.eval().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("[pair] backend mock on gpu:0"), "{error}");
    }
    crate::set_strict(false, &[]);
    drop((product, sum, twice, gradient, outputs, x, y));
    assert_eq!(BUFFERS.load(Ordering::SeqCst), 0, "buffers of the device are left over");
    Ok(())
}

#[test]
fn rules_with_too_few_results_are_errors() -> Result<()> {
    attributes! {
        #[derive(Debug)]
        struct Bad;
    }
    impl MultiOutputRules for Bad {
        fn name(&self) -> &'static str {
            "bad"
        }
        fn admits(&self, _: &Draft<'_>) -> bool {
            true
        }
        fn eval(&self, _: &Exec, _: &Call<'_>, _: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
            Ok(Vec::new())
        }
        fn jvp(&self, _: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
            Ok(vec![None])
        }
    }
    let x = of(&[1.0])?;
    let kind = || (Shape::from_slice(&[1]), Dtype::Float32);
    let outputs = Array::multi_output(Bad, &[&x], smallvec![kind(), kind()])?;
    assert!(matches!(outputs[1].eval(), Err(Error::Runtime(_))));
    let f = |a: &[Array]| Array::multi_output(Bad, &[&a[0]], smallvec![kind(), kind()]);
    assert!(matches!(jvp(f, &[x.clone()], &[x.clone()]), Err(Error::Runtime(_))));
    // Without a rule, the error names the operation.
    let none = vjp(f, &[x.clone()], &[x.clone(), x.clone()]).err().map(|e| e.to_string());
    assert_eq!(
        none.as_deref(),
        Some(
            "[vjp] bad has no vjp rule. Define a derivative by custom_function, or use stop_gradient."
        )
    );
    assert!(Array::multi_output(Bad, &[&x], smallvec![]).is_err());

    // No array refers to the node that runs.
    let node = outputs[0].node().inputs();
    let multi = node.first().and_then(|n| n.op.get::<MultiOutput>());
    assert_eq!(multi.map(MultiOutput::len), Some(2));
    assert_eq!(multi.map(Rules::name), Some("bad"));
    Ok(())
}
