//! A network of three layers learns the sine, with Adam.

use ultramarine::{Array, Dtype, Result, random};
use ultramarine_nn::losses::{Reduction, mse_loss};
use ultramarine_nn::optimizers::{Adam, Optimizer};
use ultramarine_nn::{Layer, Linear, Module, value_and_grad};

#[derive(Module)]
struct Mlp {
    first: Linear,
    second: Linear,
    last: Linear,
}

impl Mlp {
    fn new(hidden: usize) -> Result<Mlp> {
        Ok(Mlp {
            first: Linear::new(1, hidden)?,
            second: Linear::new(hidden, hidden)?,
            last: Linear::new(hidden, 1)?,
        })
    }

    fn forward(&self, x: &Array) -> Result<Array> {
        let x = self.first.forward(x)?.tanh()?;
        let x = self.second.forward(&x)?.tanh()?;
        self.last.forward(&x)
    }
}

fn main() -> Result<()> {
    random::seed(0)?;
    let x = Array::linspace(-3.0, 3.0, 128, true, Dtype::Float32)?.reshape(&[128, 1])?;
    let y = x.sin()?;
    let mut model = Mlp::new(32)?;
    let mut optimizer = Adam::new(0.01);
    for step in 1..=300 {
        let (loss, gradients) =
            value_and_grad(&mut model, |m| mse_loss(m.forward(&x), &y, Reduction::Mean))?;
        optimizer.step(&mut model, &gradients)?;
        if step % 100 == 0 {
            println!("step {step}: loss {:.6}", loss.item::<f32>()?);
        }
    }
    let worst = (model.forward(&x)? - y)?.abs()?.max(..)?.item::<f32>()?;
    println!("largest error: {worst:.3}");
    assert!(worst < 0.1);
    Ok(())
}
