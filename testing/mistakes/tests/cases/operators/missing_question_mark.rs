use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    (&x * 2.0).reshape(&[6])?;
    (&x * 2.0).sum(..)?;
    Ok(())
}
