//! A network of three layers learns the sine, with Adam.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::loss::mse;
use candle_nn::{AdamW, Linear, Module, Optimizer, ParamsAdamW, VarBuilder, VarMap, linear};

struct Mlp {
    first: Linear,
    second: Linear,
    last: Linear,
}

impl Mlp {
    fn new(hidden: usize, vars: VarBuilder) -> Result<Mlp> {
        Ok(Mlp {
            first: linear(1, hidden, vars.pp("first"))?,
            second: linear(hidden, hidden, vars.pp("second"))?,
            last: linear(hidden, 1, vars.pp("last"))?,
        })
    }
}

impl Module for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.first.forward(x)?.tanh()?;
        let x = self.second.forward(&x)?.tanh()?;
        self.last.forward(&x)
    }
}

fn main() -> Result<()> {
    // Random numbers of the CPU have no seed.
    let device = Device::Cpu;
    let points: Vec<f32> = (0..128).map(|i| -3.0 + 6.0 * i as f32 / 127.0).collect();
    let x = Tensor::from_vec(points, (128, 1), &device)?;
    let y = x.sin()?;
    let vars = VarMap::new();
    let model = Mlp::new(32, VarBuilder::from_varmap(&vars, DType::F32, &device))?;
    // Adam is AdamW without decay.
    let adam = ParamsAdamW { lr: 0.01, weight_decay: 0.0, ..Default::default() };
    let mut optimizer = AdamW::new(vars.all_vars(), adam)?;
    for step in 1..=300 {
        let loss = mse(&model.forward(&x)?, &y)?;
        optimizer.backward_step(&loss)?;
        if step % 100 == 0 {
            println!("step {step}: loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    let worst = (model.forward(&x)? - y)?.abs()?.max_all()?.to_scalar::<f32>()?;
    println!("largest error: {worst:.3}");
    assert!(worst < 0.1);
    Ok(())
}
