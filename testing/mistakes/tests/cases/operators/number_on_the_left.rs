use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    (2.0f32 * &x)?;
    Ok(())
}
