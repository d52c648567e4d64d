//! Arrays written to and read from files: safetensors and NumPy's npz.

use candle_core::{Device, Result, Tensor, safetensors};
use std::{collections::HashMap, env::temp_dir};

fn main() -> Result<()> {
    let device = Device::Cpu;
    let weight = Tensor::arange(0.0f32, 6.0, &device)?.reshape((2, 3))?;
    let steps = Tensor::new(&[10i64, 20, 30], &device)?;
    let tensors = HashMap::from([("weight", weight), ("steps", steps)]);

    // It writes no metadata.
    let path = temp_dir().join("candle-six.safetensors");
    safetensors::save(&tensors, &path)?;
    let loaded = safetensors::load(&path, &device)?;
    check(&tensors, &loaded)?;
    println!("{}: {:?}", path.display(), loaded.keys());

    let path = temp_dir().join("candle-six.npz");
    let pairs: Vec<_> = tensors.iter().collect();
    Tensor::write_npz(&pairs, &path)?;
    let loaded = Tensor::read_npz(&path)?.into_iter().collect();
    check(&tensors, &loaded)?;
    println!("{}: {:?}", path.display(), loaded.keys());

    match Tensor::read_npz("missing.npz") {
        Err(error) if error.to_string().contains("No such file") => println!("{error}"),
        _ => panic!("there is a file that is missing"),
    }
    Ok(())
}

fn check(saved: &HashMap<&str, Tensor>, loaded: &HashMap<String, Tensor>) -> Result<()> {
    assert_eq!(saved.len(), loaded.len());
    for (name, tensor) in saved {
        let differences = tensor.ne(&loaded[*name])?.sum_all()?.to_scalar::<u8>()?;
        assert!(differences == 0 && tensor.dtype() == loaded[*name].dtype(), "{name} differs");
    }
    Ok(())
}
