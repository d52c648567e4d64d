use ultramarine::transforms::grad;
use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    grad(|x| x.square()?.sum(..))(&x)?;
    Ok(())
}
