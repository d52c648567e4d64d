use ultramarine::{Array, Dtype, Result};
use ultramarine_nn::{Layer, Linear};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    Linear::new(3, 2)?.forward(&x * 2.0)?;
    Ok(())
}
