//! Trains a classifier of handwritten digits: the job of `examples/digits.py`, in Rust.
//!
//! ```sh
//! cargo run --release -p ultramarine-nn --example digits
//! ```
//!
//! Reads the 1,797 real images of `examples/data` (see the README there), trains a small network, tells its accuracy on images that
//! it has not seen, and leaves the weights in `out/`. Initial weights and batches are Python's, and so are the losses.
#![allow(clippy::print_stdout)] // It tells its results.

use flate2::read::GzDecoder;
use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Instant;
use ultramarine::{Array, Dtype, Result, backends, eval, index, random};
use ultramarine_nn::losses::{Reduction, cross_entropy};
use ultramarine_nn::optimizers::{Adam, Optimizer};
use ultramarine_nn::{Layer, Linear, Module, init, relu, value_and_grad};

const LAYERS: [usize; 4] = [64, 128, 64, 10];
const EPOCHS: usize = 40;
const BATCH: usize = 64;
const HELD_OUT: usize = 360;
const WANTED: f32 = 0.97;

/// Images, float32 of shape (1797, 64) between 0 and 1, and their digits, int32.
fn read_digits(path: &Path) -> Result<(Array, Array), Box<dyn Error>> {
    let mut text = String::new();
    GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
    let numbers: Vec<f32> = text.split([',', '\n']).flat_map(str::parse).collect();
    let table = Array::from_slice(&numbers, &[numbers.len() / 65, 65])?;
    let (images, digits) = (table.index(index![.., ..64])?, table.index(index![.., 64])?);
    Ok(((images / 16.0)?, digits.astype(Dtype::Int32)))
}

/// The network: x of shape (n, 64) to one score per digit, (n, 10).
#[derive(Module)]
struct Network {
    layers: Vec<Linear>,
}

impl Network {
    /// Weights drawn as He et al. (2015) advise for ReLU, biases of zero.
    fn new() -> Result<Network> {
        let layers = LAYERS.windows(2).map(|sizes| Linear::new(sizes[0], sizes[1]));
        let mut layers: Vec<Linear> = layers.collect::<Result<_>>()?;
        for layer in &mut layers {
            layer.weight.set(init::he_normal(init::Fan::In, 2f64.sqrt())(&layer.weight)?);
            layer.bias = layer.bias.as_ref().map(|bias| bias.zeros_like().into());
        }
        Ok(Network { layers })
    }
}

impl Layer for Network {
    fn forward(&self, x: &Array) -> Result<Array> {
        let mut x = self.layers[0].forward(x)?;
        for layer in &self.layers[1..] {
            x = layer.forward(&relu(&x)?)?;
        }
        Ok(x)
    }
}

/// Trains for EPOCHS passes; the mean loss of the last one.
fn train(network: &mut Network, images: &Array, digits: &Array) -> Result<f32> {
    let mut optimizer = Adam::new(2e-3).betas((0.9, 0.99)).bias_correction(true);
    let batches = images.shape()[0] / BATCH;
    let mut loss = f32::NAN;
    for epoch in 0..EPOCHS {
        optimizer.set_learning_rate(2e-3 * (1.0 - epoch as f64 / EPOCHS as f64));
        let shuffled = random::permutation(images.shape()[0], None)?;
        let mut total = Array::scalar(0.0f32);
        for i in 0..batches {
            let rows = shuffled.index(index![i * BATCH..(i + 1) * BATCH])?;
            let (x, y) = (images.take(&rows, 0)?, digits.take(&rows, 0)?);
            let (value, gradients) = value_and_grad(network, |network| {
                cross_entropy(&network.forward(&x)?, &y, Reduction::Mean)
            })?;
            optimizer.update(network, &gradients)?;
            total = (total + value)?;
            eval(&[network.arrays(), optimizer.arrays(), vec![total.clone()]].concat())?;
        }
        loss = total.item::<f32>()? / batches as f32;
        if (epoch + 1) % 10 == 0 {
            println!("epoch {}: loss {loss:.4}", epoch + 1);
        }
    }
    Ok(loss)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("Backends found:");
    for backend in backends() {
        let devices: Vec<String> = backend.devices.iter().map(ToString::to_string).collect();
        println!("  {}: {}, devices {}", backend.name, backend.device_type, devices.join(", "));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let (images, digits) = read_digits(&root.join("examples/data/digits.csv.gz"))?;

    // A fixed split: the permutation of a fixed key.
    let n = images.shape()[0];
    let mixed = random::permutation(n, Some(&random::key(2026)?))?;
    let (test, rest) = (mixed.index(index![..HELD_OUT])?, mixed.index(index![HELD_OUT..])?);
    println!("{n} images: {} to train on, {HELD_OUT} held out", n - HELD_OUT);

    random::seed(7)?;
    let started = Instant::now();
    let mut network = Network::new()?;
    let loss = train(&mut network, &images.take(&rest, 0)?, &digits.take(&rest, 0)?)?;
    let seconds = started.elapsed().as_secs_f64();

    let guessed = network.forward(&images.take(&test, 0)?)?.argmax(1)?;
    let right = guessed.equal(&digits.take(&test, 0)?)?;
    let accuracy = right.astype(Dtype::Float32).mean(..)?.item::<f32>()?;
    println!(
        "Trained in {seconds:.2} s to a loss of {loss:.6}. Held-out accuracy: {:.2}%",
        100.0 * accuracy
    );

    let out = root.join("out");
    fs::create_dir_all(&out)?;
    let weights = out.join("digits-rust.safetensors");
    network.save_weights(&weights)?;
    println!("Weights: {}", weights.display());
    if accuracy < WANTED {
        return Err(format!("expected an accuracy of {WANTED} or better").into());
    }
    Ok(())
}
