use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    (&x * 2.0 + 1.0)?;
    (&x * 2.0 + &x * 3.0)?;
    Ok(())
}
