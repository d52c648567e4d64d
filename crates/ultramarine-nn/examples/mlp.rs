//! Trains a small network to tell the arms of two spirals apart, saves it, and loads it again.
//!
//! ```sh
//! cargo run --release -p ultramarine-nn --example mlp
//! ```
#![allow(clippy::print_stdout)] // It prints its results.

use std::f64::consts::TAU;
use ultramarine::{Array, Dtype, Result, random};
use ultramarine_nn::losses::{Reduction, cross_entropy};
use ultramarine_nn::optimizers::{Adam, Optimizer, cosine_decay};
use ultramarine_nn::{Layer, Linear, Module, gelu, value_and_grad};

const POINTS: usize = 200;
const STEPS: u64 = 400;

#[derive(Module, Clone)]
struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    fn new(sizes: &[usize]) -> Result<Mlp> {
        let layers = sizes.windows(2).map(|pair| Linear::new(pair[0], pair[1]));
        Ok(Mlp { layers: layers.collect::<Result<_>>()? })
    }
}

impl Layer for Mlp {
    fn forward(&self, x: &Array) -> Result<Array> {
        let Some((last, hidden)) = self.layers.split_last() else { return Ok(x.clone()) };
        let hidden = hidden.iter().try_fold(x.clone(), |x, layer| gelu(&layer.forward(&x)?))?;
        last.forward(&hidden)
    }
}

/// Points of both arms, (2 POINTS, 2), and the arm of each.
fn spirals() -> Result<(Array, Array)> {
    let (mut points, mut arms) = (Vec::new(), Vec::new());
    for i in 0..2 * POINTS {
        let (arm, radius) = (i % 2, i as f64 / (2 * POINTS) as f64);
        let angle = radius * 1.5 * TAU + arm as f64 * TAU / 2.0;
        points.extend([(radius * angle.cos()) as f32, (radius * angle.sin()) as f32]);
        arms.push(arm as i32);
    }
    Ok((Array::from_slice(&points, &[2 * POINTS, 2])?, Array::from_slice(&arms, &[2 * POINTS])?))
}

/// The part of the points whose arm is found.
fn accuracy(model: &Mlp, x: &Array, y: &Array) -> Result<f32> {
    let found = model.forward(x)?.argmax(Some(-1))?.equal(y)?;
    found.astype(Dtype::Float32).mean(None)?.item()
}

fn main() -> Result<()> {
    random::seed(0)?;
    let (x, y) = spirals()?;
    let mut model = Mlp::new(&[2, 64, 64, 2])?;
    let mut optimizer = Adam::new(cosine_decay(1e-2, STEPS, 0.0));
    println!("{} parameters", model.num_parameters());
    for step in 1..=STEPS {
        let (loss, gradients) = value_and_grad(&mut model, |model| {
            cross_entropy(model.forward(&x), &y, Reduction::Mean)
        })?;
        optimizer.step(&mut model, &gradients)?;
        if step % 100 == 0 {
            println!("step {step}: loss {:.4}", loss.item::<f32>()?);
        }
    }

    let path = std::env::temp_dir().join("ultramarine-mlp.safetensors");
    model.save_weights(&path)?;
    let mut loaded = Mlp::new(&[2, 64, 64, 2])?;
    loaded.load_weights(&path)?;
    let accuracy = accuracy(&loaded, &x, &y)?;
    println!("loaded {}: {:.1} % of the points are right", path.display(), 100.0 * accuracy);
    assert!(accuracy > 0.97, "the network has not learned the spirals");
    Ok(())
}
