use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    x.index(0)?;
    x.index([0..2])?;
    x.index((0..2, ..))?;
    Ok(())
}
