//! Functions as files: what is exported comes back with the same bits, whatever it is made of; and, in the other files, what
//! goes wrong.

mod every;
mod files;
mod foreign;
mod hostile;
mod transformed;

use std::io::Cursor;
use ultramarine::{Array, Arrays, Exporter, Function, Result};

/// Bytes of an array with its type: what has to be the same.
fn content(a: &Array) -> (Vec<usize>, String, Vec<u8>) {
    let bytes = a.with_bytes(|b| b.to_vec()).expect("it has a value");
    (a.shape().to_vec(), a.dtype().to_string(), bytes)
}

/// The file of a function.
fn exported(
    f: impl Fn(&[Array]) -> Result<Vec<Array>>,
    arguments: impl Arrays,
    shapeless: bool,
) -> Result<Vec<u8>> {
    let mut exporter = Exporter::new().shapeless(shapeless);
    exporter.trace(f, arguments)?;
    let mut file = Vec::new();
    exporter.write(&mut file, "a test")?;
    Ok(file)
}

fn read(file: &[u8]) -> Result<Function> {
    Function::read(&mut Cursor::new(file), "a test")
}

/// The program of a file, as text.
fn program(file: &[u8]) -> String {
    let (arrays, _) =
        ultramarine::io::safetensors::read(&mut Cursor::new(file), "a test").expect("a file");
    String::from_utf8(arrays["program"].to_vec::<u8>().expect("bytes")).expect("text")
}

/// Checks that a function gives the same bits when it has been in a file, and that a file of the file's function is the same.
/// Returns its program.
#[track_caller]
fn check(name: &str, f: impl Fn(&[Array]) -> Result<Vec<Array>>, arguments: impl Arrays) -> String {
    let arguments = &arguments.owned()[..];
    let run = || -> Result<String> {
        let wanted = f(arguments)?;
        let file = exported(&f, arguments, false)?;
        let function = read(&file)?;
        let got = function.call(arguments)?;
        assert_eq!(got.len(), wanted.len(), "{name}");
        for (got, wanted) in got.iter().zip(&wanted) {
            assert_eq!(content(got), content(wanted), "{name}");
        }
        let again = exported(|x| function.call(x), arguments, false)?;
        assert_eq!(program(&again), program(&file), "{name}, exported again");
        Ok(program(&file))
    };
    run().unwrap_or_else(|e| panic!("{name}: {e}"))
}
