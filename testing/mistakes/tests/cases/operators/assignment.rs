use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    let mut y = x;
    y += 1.0;
    Ok(())
}
