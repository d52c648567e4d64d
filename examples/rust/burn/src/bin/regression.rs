//! Linear regression by gradient descent.

use burn::prelude::*;

fn main() {
    let device = Device::flex().autodiff();
    let data: Vec<f32> = (0..300).map(|i| ((i * i) as f32).sin()).collect();
    let x = Tensor::<2>::from_data(TensorData::new(data, [100, 3]), &device);
    // Matrices of one column: products and sums take tensors of one rank.
    let truth = Tensor::<2>::from_floats([[1.0], [-2.0], [3.0]], &device);
    let y = x.clone().matmul(truth.clone()) + 0.5;

    let mut w = Tensor::<2>::zeros([3, 1], &device);
    let mut b = Tensor::<2>::zeros([1, 1], &device);
    for step in 1..=100 {
        (w, b) = (w.require_grad(), b.require_grad());
        let error = x.clone().matmul(w.clone()) + b.clone() - y.clone();
        let loss = error.square().mean();
        let gradients = loss.backward();
        let (dw, db) = (w.grad(&gradients).unwrap(), b.grad(&gradients).unwrap());
        w = Tensor::from_inner(w.inner() - dw * 0.1);
        b = Tensor::from_inner(b.inner() - db * 0.1);
        if step % 25 == 0 {
            println!("step {step}: loss {:.6}", loss.into_scalar::<f32>());
        }
    }
    let found = w.clone().into_data().try_to_vec::<f32>().unwrap();
    println!("w = {found:.3?}, b = {:.3}", b.into_scalar::<f32>());
    assert!((w - truth).abs().max().into_scalar::<f32>() < 1e-3);
}
