//! Calls a function from a file, which was exported in Python or in Rust:
//!
//! ```sh
//! python -c 'import ultramarine as um; um.export_function("f.um", lambda x: um.exp(x) + 1, um.zeros(3))'
//! cargo run --example function -- f.um
//! ```
//!
//! Without a file it exports one first.

#![allow(clippy::print_stdout, reason = "an example")]

use ultramarine::shape::Shape;
use ultramarine::{Array, Dtype, Function, Result, export_function};

fn main() -> Result<()> {
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => exported()?,
    };
    let function = Function::load(path)?;
    if let Some(text) = function.metadata() {
        println!("metadata: {text}");
    }
    for signature in function.signatures() {
        println!("{signature}");
        // Ones for all arguments.
        let ones = |(shape, dtype): &(Shape, Dtype)| Array::ones(shape, *dtype);
        let arguments = signature.positional.iter().map(ones).collect::<Result<Vec<_>>>()?;
        let keywords = signature.keywords.iter().map(|(name, of)| Ok((name.clone(), ones(of)?)));
        let results = function.call_keywords(&arguments, &keywords.collect::<Result<_>>()?)?;
        for result in results {
            println!("{result}");
        }
    }
    Ok(())
}

/// A file of a function that closes over an array.
fn exported() -> Result<std::path::PathBuf> {
    let path = std::env::temp_dir().join("ultramarine-example-function.um");
    let weights = Array::from_slice(&[0.5f32, -1.0, 2.0, 0.25, 1.5, -0.75], &[3, 2])?;
    let classify = |x: &[Array]| Ok(vec![x[0].matmul(&weights)?.softmax(-1, false)?]);
    export_function(&path, classify, [Array::zeros(&[2, 3], Dtype::Float32)?])?;
    Ok(path)
}
