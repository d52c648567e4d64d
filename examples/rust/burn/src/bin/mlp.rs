//! A network of three layers learns the sine, with Adam.

use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;

#[derive(Module, Debug)]
struct Mlp {
    first: Linear,
    second: Linear,
    last: Linear,
}

impl Mlp {
    fn new(hidden: usize, device: &Device) -> Mlp {
        Mlp {
            first: LinearConfig::new(1, hidden).init(device),
            second: LinearConfig::new(hidden, hidden).init(device),
            last: LinearConfig::new(hidden, 1).init(device),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.first.forward(x).tanh();
        let x = self.second.forward(x).tanh();
        self.last.forward(x)
    }
}

fn main() {
    let device = Device::flex().autodiff();
    device.seed(0);
    let points: Vec<f32> = (0..128).map(|i| -3.0 + 6.0 * i as f32 / 127.0).collect();
    let x = Tensor::<2>::from_data(TensorData::new(points, [128, 1]), &device);
    let y = x.clone().sin();
    let mut model = Mlp::new(32, &device);
    let mut optimizer = AdamConfig::new().init();
    for step in 1..=300 {
        let loss = MseLoss::new().forward(model.forward(x.clone()), y.clone(), Reduction::Mean);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.01, model, gradients);
        if step % 100 == 0 {
            println!("step {step}: loss {:.6}", loss.into_scalar::<f32>());
        }
    }
    let worst = (model.forward(x) - y).abs().max().into_scalar::<f32>();
    println!("largest error: {worst:.3}");
    assert!(worst < 0.1);
}
