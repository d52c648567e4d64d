//! A primitive of one's own, squareplus(x) = (x + sqrt(x^2 + b)) / 2, with a kernel and a gradient.

use ultramarine::extension::{self, CpuCall, Derivatives, Primitive, Vjp, call_one};
use ultramarine::{Array, Result, transforms::value_and_grad};

#[derive(Debug)]
struct Squareplus {
    b: f32,
}

impl Primitive for Squareplus {
    fn name(&self) -> &str {
        "squareplus"
    }

    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> extension::Result<()> {
        let b = self.b;
        call.map1(move |x: f32| (x + (x * x + b).sqrt()) / 2.0)
    }

    /// The slope is (1 + x / sqrt(x^2 + b)) / 2.
    fn vjp(&self, of: &Vjp<'_>) -> Derivatives {
        let x = &of.inputs[0];
        let root = (x.square()? + self.b)?.sqrt();
        let slope = (0.5 * (1.0 + (x / root)?)?)?;
        Ok(vec![Some((slope * of.cotangent())?)])
    }
}

fn squareplus(x: &Array, b: f32) -> Result<Array> {
    call_one(Squareplus { b }, &[x])
}

fn main() -> Result<()> {
    let x = Array::from_slice(&[-3.0f32, 0.0, 1.5], &[3])?;
    println!("squareplus: {}", squareplus(&x, 4.0)?);
    let sum = |x: &Array| squareplus(x, 4.0)?.sum(..);
    let (value, slope) = value_and_grad(sum)(&x)?;
    println!("sum {:.4}, slopes {slope}", value.item::<f32>()?);
    assert!((value.item::<f32>()? - 3.3028).abs() < 1e-3);
    let expected = Array::from_slice(&[0.08397f32, 0.5, 0.8], &[3])?;
    assert!(slope.allclose(expected, 1e-3, 1e-4, false)?.item::<bool>()?);
    Ok(())
}
