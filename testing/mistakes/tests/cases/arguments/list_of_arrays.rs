use ultramarine::{Array, Dtype, Result, concatenate, eval};

fn main() -> Result<()> {
    let x = Array::ones(&[2, 3], Dtype::Float32)?;
    concatenate((&x, &x), 0)?;
    eval(&x)?;
    Ok(())
}
