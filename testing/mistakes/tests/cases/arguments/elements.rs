use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    Array::from_slice(&[[1.0f32, 2.0], [3.0, 4.0]], &[2, 2])?;
    let total = x.sum(..)?.item()?;
    println!("{total}");
    Ok(())
}
