use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    (&x + vec![1.0f32, 2.0, 3.0])?;
    Ok(())
}
