//! Linear regression by gradient descent.

use ultramarine::{Array, Dtype, Result, eval, transforms::value_and_grad};

fn main() -> Result<()> {
    let data: Vec<f32> = (0..300).map(|i| ((i * i) as f32).sin()).collect();
    let x = Array::from_slice(&data, &[100, 3])?;
    let truth = Array::from_slice(&[1.0f32, -2.0, 3.0], &[3])?;
    let y = (x.matmul(&truth)? + 0.5)?;

    let loss = value_and_grad(|(w, b): &(Array, Array)| {
        (x.matmul(w)? + b - &y)?.square()?.mean(..)
    });
    let mut model = (Array::zeros(&[3], Dtype::Float32)?, Array::scalar(0.0f32));
    for step in 1..=100 {
        let (value, (dw, db)) = loss(&model)?;
        model = ((model.0 - dw * 0.1)?, (model.1 - db * 0.1)?);
        eval(&[&model.0, &model.1])?;
        if step % 25 == 0 {
            println!("step {step}: loss {:.6}", value.item::<f32>()?);
        }
    }
    let (w, b) = (model.0.to_vec::<f32>()?, model.1.item::<f32>()?);
    println!("w = {w:.3?}, b = {b:.3}");
    assert!(model.0.allclose(truth, 1e-3, 1e-3, false)?.item::<bool>()?);
    Ok(())
}
