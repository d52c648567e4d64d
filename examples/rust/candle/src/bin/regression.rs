//! Linear regression by gradient descent.

use candle_core::{DType, Device, Result, Tensor, Var};

fn main() -> Result<()> {
    let device = Device::Cpu;
    let data: Vec<f32> = (0..300).map(|i| ((i * i) as f32).sin()).collect();
    let x = Tensor::from_slice(&data, (100, 3), &device)?;
    // A matrix of one column: `matmul` takes no vectors.
    let truth = Tensor::new(&[[1.0f32], [-2.0], [3.0]], &device)?;
    let y = (x.matmul(&truth)? + 0.5)?;

    let w = Var::zeros((3, 1), DType::F32, &device)?;
    let b = Var::zeros(1, DType::F32, &device)?;
    for step in 1..=100 {
        let loss = (x.matmul(&w)?.broadcast_add(&b)? - &y)?.sqr()?.mean_all()?;
        let gradients = loss.backward()?;
        for var in [&w, &b] {
            let gradient = gradients.get(var).expect("the loss depends on it");
            var.set(&(var.as_tensor() - (gradient * 0.1)?)?)?;
        }
        if step % 25 == 0 {
            println!("step {step}: loss {:.6}", loss.to_scalar::<f32>()?);
        }
    }
    let (found, b) = (w.flatten_all()?.to_vec1::<f32>()?, b.to_vec1::<f32>()?);
    println!("w = {found:.3?}, b = {:.3}", b[0]);
    let error = (w.as_tensor() - &truth)?.abs()?.max_all()?.to_scalar::<f32>()?;
    assert!(error < 1e-3);
    Ok(())
}
