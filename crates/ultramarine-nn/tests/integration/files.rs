//! Files that Python wrote are read, and what Rust writes is the same, byte by byte.

use crate::support::path;
use std::fs;
use std::path::PathBuf;
use ultramarine::{Array, Dtype, Quantization, Result};
use ultramarine_nn::optimizers::{Adam, Optimizer};
use ultramarine_nn::*;

/// The model of the files.
fn model() -> Result<Sequential> {
    Ok(sequential![Linear::new(3, 4)?, ReLU, BatchNorm::new(4)?, Linear::without_bias(4, 2)?])
}

/// A path that is removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        Temporary(std::env::temp_dir().join(format!("nn-{}-{name}", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn weights_are_read_and_written_as_python_does() -> Result<()> {
    let mut parameters = Vec::new();
    for name in ["model.safetensors", "model.npz"] {
        let mut model = model()?;
        model.load_weights(path(name))?;
        assert_eq!(model.num_parameters(), 16 + 16 + 8, "{name}");
        parameters.push(model.parameters());
        let written = Temporary::new(name);
        model.save_weights(&written.0)?;
        if name.ends_with("safetensors") {
            let read = |path: &PathBuf| fs::read(path).expect("a file");
            assert_eq!(read(&written.0), read(&path(name)), "{name}");
        }
        let mut again = self::model()?;
        again.load_weights(&written.0)?;
        for (name, array) in again.parameters() {
            assert_eq!(
                array.to_vec::<f32>()?,
                model.parameters()[&name].to_vec::<f32>()?,
                "{name}"
            );
        }
    }
    // Python trained for a step.
    assert_ne!(parameters[0]["layers.2.running_mean"].to_vec::<f32>()?, [0.0; 4]);
    for (name, array) in &parameters[0] {
        assert_eq!(array.to_vec::<f32>()?, parameters[1][name].to_vec::<f32>()?, "{name}");
    }
    Ok(())
}

#[test]
fn training_goes_on_where_python_stopped() -> Result<()> {
    let mut optimizer = Adam::new(0.1);
    optimizer.load_state(path("adam.safetensors"))?;
    let written = Temporary::new("adam.safetensors");
    optimizer.save_state(&written.0)?;
    let read = |path: &PathBuf| fs::read(path).expect("a file");
    assert_eq!(read(&written.0), read(&path("adam.safetensors")));

    let mut model = model()?;
    model.load_weights(path("model.safetensors"))?;
    let x = Array::ones(&[5, 3], Dtype::Float32)?;
    let (_, gradients) = value_and_grad(&mut model, |m| m.forward(&x)?.square()?.mean(None))?;
    optimizer.update(&mut model, &gradients)?;
    assert_eq!(optimizer.state()["step"].item::<u64>()?, 2);
    assert!(optimizer.state().contains_key("layers.3.weight.v"));
    Ok(())
}

#[test]
fn errors_name_the_file_and_the_names() -> Result<()> {
    let file = path("model.safetensors");
    let name = file.display();
    let error = |outcome: Result<()>| outcome.expect_err("an error").to_string();
    let mut other = sequential![Linear::new(3, 4)?, BatchNorm::new(4)?, Linear::new(9, 9)?];
    let before = other.parameters();
    assert_eq!(
        error(other.load_weights(&file)),
        format!(
            "[load_weights] {name}: not parameters of the model: layers.2.running_mean, \
             layers.2.running_var, layers.3.weight. missing: layers.1.bias, \
             layers.1.running_mean, layers.1.running_var, layers.1.weight. not of the shape of their parameters: \
             layers.2.bias [4] for [9], layers.2.weight [4] for [9, 9]. Check that the file is this model's."
        )
    );
    // Nothing was changed.
    assert!(other.parameters().iter().all(|(name, array)| array.is_same(&before[name])));

    let mut fewer = sequential![Linear::new(3, 4)?];
    assert_eq!(
        error(fewer.load_weights(&file)),
        format!(
            "[load_weights] {name}: not parameters of the model: layers.2.bias, layers.2.running_mean, \
             layers.2.running_var, layers.2.weight, layers.3.weight. Check that the file is this model's, or use \
             `load_known_weights`."
        )
    );
    fewer.load_known_weights(&file)?;
    let mut whole = model()?;
    whole.load_weights(&file)?;
    let loaded = &fewer.parameters()["layers.0.weight"];
    assert_eq!(loaded.to_vec::<f32>()?, whole.parameters()["layers.0.weight"].to_vec::<f32>()?);

    assert_eq!(
        error(whole.save_weights("weights.txt")),
        "[save_weights] weights.txt has an unknown extension. Use .safetensors or .npz."
    );
    assert!(error(whole.load_weights("missing.safetensors")).contains("missing.safetensors"));
    Ok(())
}

#[test]
fn weights_of_few_bits_have_files_too() -> Result<()> {
    #[derive(Module, Clone)]
    struct Model {
        table: MaybeQuantized<Embedding>,
        head: MaybeQuantized<Linear>,
    }
    let make = || -> Result<Model> {
        Ok(Model { table: Embedding::new(6, 64)?.into(), head: Linear::new(64, 3)?.into() })
    };
    let call = |m: &Model, ids: &Array| m.head.forward(&m.table.forward(ids)?);
    let ids = Array::from_slice(&[0i32, 5], &[2])?;

    ultramarine::random::seed(0)?;
    let mut model = make()?;
    let whole = call(&model, &ids)?.to_vec::<f32>()?;
    let how = Quantization::affine(8, 32);
    // Only what the function selects.
    quantize_where(&mut model, |path, shape| (path == "head" && *shape == [3, 64]).then_some(how))?;
    assert!(model.parameters().contains_key("head.scales"));
    assert!(!model.parameters().contains_key("table.scales"));
    quantize(&mut model, how)?;
    assert!(model.parameters().contains_key("table.scales"));
    assert_eq!(model.trainable_parameters().into_keys().collect::<Vec<_>>(), ["head.bias"]);
    let rounded = call(&model, &ids)?.to_vec::<f32>()?;
    assert!(whole.iter().zip(&rounded).all(|(a, b)| (a - b).abs() < 0.02), "{whole:?} {rounded:?}");

    let written = Temporary::new("quantized.safetensors");
    model.save_weights(&written.0)?;
    let mut again = make()?;
    assert!(again.load_weights(&written.0).is_err());
    quantize(&mut again, how)?;
    again.load_weights(&written.0)?;
    assert_eq!(call(&again, &ids)?.to_vec::<f32>()?, rounded);
    Ok(())
}
