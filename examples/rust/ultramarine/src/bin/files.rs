//! Arrays written to and read from files: safetensors and NumPy's npz.

use std::{env::temp_dir, io::ErrorKind};
use ultramarine::io::{Arrays, Metadata, npz, safetensors};
use ultramarine::{Array, Dtype, Result};

fn main() -> Result<()> {
    let weight = Array::arange(0.0, 6.0, 1.0, Dtype::Float32)?.reshape(&[2, 3])?;
    let steps = Array::from_slice(&[10i64, 20, 30], &[3])?;
    let arrays = Arrays::from([("weight".into(), weight), ("steps".into(), steps)]);

    let path = temp_dir().join("ultramarine-six.safetensors");
    let metadata = Metadata::from([("made by".into(), "ultramarine".into())]);
    safetensors::save(&path, &arrays, &metadata)?;
    let (loaded, metadata) = safetensors::load(&path)?;
    check(&arrays, &loaded)?;
    println!("{}: {:?}, {metadata:?}", path.display(), loaded.keys());

    let path = temp_dir().join("ultramarine-six.npz");
    npz::save(&path, &arrays)?;
    let loaded = npz::load(&path)?;
    check(&arrays, &loaded)?;
    println!("{}: {:?}", path.display(), loaded.keys());

    match npz::load("missing.npz") {
        Err(error) if error.io_kind() == Some(ErrorKind::NotFound) => println!("{error}"),
        _ => panic!("there is a file that is missing"),
    }
    Ok(())
}

fn check(saved: &Arrays, loaded: &Arrays) -> Result<()> {
    assert_eq!(saved.len(), loaded.len());
    for (name, array) in saved {
        let same = array.array_equal(&loaded[name], false)?.item::<bool>()?;
        assert!(same && array.dtype() == loaded[name].dtype(), "{name} differs");
    }
    Ok(())
}
