//! Trains a classifier of handwritten digits: the job of `examples/digits.py`, in Rust.
//!
//! ```sh
//! cargo run --release --example digits
//! ```
//!
//! Reads the 1,797 real images of `examples/data` (see the README there), trains a small
//! network, tells its accuracy on images that it has not seen, and leaves a figure and
//! the weights in `out/`.
#![allow(clippy::print_stdout)] // It tells its results.

use flate2::read::GzDecoder;
use indicatif::{ProgressBar, ProgressStyle};
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Instant;
use ultramarine::transforms::value_and_grad;
use ultramarine::{Array, Dtype, Result, backends, eval, index, io, random};

const LAYERS: [usize; 4] = [64, 128, 64, 10];
const EPOCHS: usize = 40;
const BATCH: usize = 64;
const HELD_OUT: usize = 360;
const WANTED: f32 = 0.97;

/// Weights (inputs, outputs) and bias (outputs) of each layer.
type Params = Vec<(Array, Array)>;

/// Images of 64 pixels between 0 and 1, and the digit that each shows.
struct Digits {
    images: Vec<f32>,
    labels: Vec<i32>,
}

impl Digits {
    fn read(path: &Path) -> Result<Digits, Box<dyn Error>> {
        let mut text = String::new();
        GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
        let mut digits = Digits { images: Vec::new(), labels: Vec::new() };
        for line in text.lines() {
            let row: Vec<f32> = line.split(',').map(str::parse).collect::<Result<_, _>>()?;
            let [pixels @ .., label] = &row[..] else { continue };
            digits.images.extend(pixels.iter().map(|p| p / 16.0));
            digits.labels.push(*label as i32);
        }
        Ok(digits)
    }

    fn pick(&self, rows: &[u32]) -> Digits {
        let image = |r: &u32| &self.images[*r as usize * 64..][..64];
        Digits {
            images: rows.iter().flat_map(image).copied().collect(),
            labels: rows.iter().map(|r| self.labels[*r as usize]).collect(),
        }
    }

    /// float32 of shape (n, 64), int32 of shape (n).
    fn arrays(&self) -> Result<(Array, Array)> {
        let n = self.labels.len();
        Ok((Array::from_slice(&self.images, &[n, 64])?, Array::from_slice(&self.labels, &[n])?))
    }
}

/// Weights drawn as He et al. (2015) advise for ReLU, biases of zero.
fn new_params() -> Result<Params> {
    LAYERS
        .windows(2)
        .map(|pair| {
            let scale = (2.0 / pair[0] as f64).sqrt();
            let weights = random::normal(pair, None, scale, Dtype::Float32, None)?;
            Ok((weights, Array::zeros(&pair[1..], Dtype::Float32)?))
        })
        .collect()
}

/// One score per digit, (n, 10), for x of shape (n, 64).
fn logits(params: &Params, x: &Array) -> Result<Array> {
    let mut x = x.clone();
    for (i, (weights, bias)) in params.iter().enumerate() {
        x = (x.matmul(weights)? + bias)?;
        if i + 1 < params.len() {
            x = x.relu()?;
        }
    }
    Ok(x)
}

/// Mean cross-entropy of the scores against the digits y.
fn loss(params: &Params, x: &Array, y: &Array) -> Result<Array> {
    let scores = logits(params, x)?;
    let right = scores.take_along_axis(&y.expand_dims(1)?, 1)?.squeeze(1)?;
    (scores.logsumexp(1, false)? - right)?.mean(.., false)
}

/// Every array of the parameters, in order.
fn flat(params: &Params) -> impl Iterator<Item = &Array> {
    params.iter().flat_map(|(weights, bias)| [weights, bias])
}

/// Adam (Kingma and Ba, 2015): the moments of each parameter.
struct Adam {
    first: Vec<Array>,
    second: Vec<Array>,
    steps: i32,
}

impl Adam {
    fn new(params: &Params) -> Adam {
        let zeros: Vec<Array> = flat(params).map(Array::zeros_like).collect();
        Adam { first: zeros.clone(), second: zeros, steps: 0 }
    }

    fn step(&mut self, params: &Params, gradients: &Params, rate: f64) -> Result<Params> {
        self.steps += 1;
        let rate = rate / (1.0 - 0.9f64.powi(self.steps));
        let scale = 1.0 / (1.0 - 0.99f64.powi(self.steps));
        let mut updated = Vec::new();
        for (i, (p, g)) in flat(params).zip(flat(gradients)).enumerate() {
            self.first[i] = ((&self.first[i] * 0.9)? + g * 0.1)?;
            self.second[i] = ((&self.second[i] * 0.99)? + g.square()? * 0.01)?;
            let size = (&self.second[i] * scale)?.sqrt()? + 1e-8;
            updated.push((p - (&self.first[i] * rate)? / size)?);
        }
        Ok(updated.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
    }
}

/// Trains for EPOCHS passes; the parameters and the mean loss of each pass.
fn train(images: &Array, labels: &Array) -> Result<(Params, Vec<f32>)> {
    let mut params = new_params()?;
    let mut adam = Adam::new(&params);
    let n = images.shape()[0];
    let batches = n / BATCH;
    let mut history = Vec::new();
    let bar = ProgressBar::new((EPOCHS * batches) as u64);
    if let Ok(style) = ProgressStyle::with_template("training {bar:40} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    for epoch in 0..EPOCHS {
        let rate = 2e-3 * (1.0 - epoch as f64 / EPOCHS as f64);
        let order = random::permutation(n, None)?;
        let mut total = Array::scalar(0.0f32);
        for i in 0..batches {
            let rows = order.index(index![i * BATCH..(i + 1) * BATCH])?;
            let (x, y) = (images.take(&rows, 0)?, labels.take(&rows, 0)?);
            let (value, gradients) = value_and_grad(|p: &Params| loss(p, &x, &y))(&params)?;
            params = adam.step(&params, &gradients, rate)?;
            total = (total + value)?;
            let moments = adam.first.iter().chain(&adam.second);
            let outputs: Vec<&Array> = flat(&params).chain(moments).chain([&total]).collect();
            eval(&outputs)?;
            bar.inc(1);
        }
        history.push(total.item::<f32>()? / batches as f32);
        bar.set_message(format!("loss {:.4}", history[epoch]));
    }
    bar.finish();
    Ok((params, history))
}

/// Saves the loss curve above ten held-out images with their predictions.
fn draw(
    path: &Path,
    history: &[f32],
    digits: &Digits,
    guessed: &[u32],
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (900, 520)).into_drawing_area();
    area.fill(&WHITE)?;
    let (curve, below) = area.split_vertically(400);
    let low = history.iter().copied().fold(f32::MAX, f32::min);
    let high = history.iter().copied().fold(f32::MIN, f32::max);
    let mut chart = ChartBuilder::on(&curve)
        .caption("Training loss", ("sans-serif", 20))
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(60)
        .build_cartesian_2d(1..history.len(), (low..high).log_scale())?;
    chart.configure_mesh().x_desc("epoch").y_desc("mean cross-entropy").draw()?;
    let points = history.iter().enumerate().map(|(i, v)| (i + 1, *v));
    chart.draw_series(LineSeries::new(points, &BLUE))?;
    const SIZE: i32 = 8;
    for (k, cell) in below.split_evenly((1, 10)).iter().enumerate() {
        cell.draw(&Text::new(format!("says {}", guessed[k]), (15, 5), ("sans-serif", 14)))?;
        for (i, v) in digits.images[k * 64..][..64].iter().enumerate() {
            let (x, y) = (10 + (i % 8) as i32 * SIZE, 25 + (i / 8) as i32 * SIZE);
            let gray = (255.0 * (1.0 - v)) as u8;
            let color = RGBColor(gray, gray, gray).filled();
            cell.draw(&Rectangle::new([(x, y), (x + SIZE, y + SIZE)], color))?;
        }
    }
    area.present()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("Backends found:");
    for backend in backends() {
        let devices: Vec<String> = backend.devices.iter().map(ToString::to_string).collect();
        println!(
            "  {}: {} ({})",
            backend.name,
            devices.join(", "),
            backend.descriptions.join(", ")
        );
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let digits = Digits::read(&root.join("examples/data/digits.csv.gz"))?;

    // A fixed split: the permutation of a fixed key.
    let n = digits.labels.len();
    let mixed = random::permutation(n, Some(&random::key(2026)?))?.to_vec::<u32>()?;
    let (test, rest) = (digits.pick(&mixed[..HELD_OUT]), digits.pick(&mixed[HELD_OUT..]));
    println!("{n} images: {} to train on, {HELD_OUT} held out", n - HELD_OUT);

    random::seed(7)?;
    let started = Instant::now();
    let (images, labels) = rest.arrays()?;
    let (params, history) = train(&images, &labels)?;
    let seconds = started.elapsed().as_secs_f64();

    let (images, labels) = test.arrays()?;
    let guessed = logits(&params, &images)?.argmax(1, false)?;
    let right = guessed.astype(Dtype::Int32).equal(&labels)?;
    let accuracy = right.astype(Dtype::Float32).mean(.., false)?.item::<f32>()?;
    println!("Trained in {seconds:.1} s. Held-out accuracy: {:.2} %", 100.0 * accuracy);

    let out = root.join("out");
    fs::create_dir_all(&out)?;
    let (figure, weights) = (out.join("digits-rust.svg"), out.join("digits-rust.safetensors"));
    draw(&figure, &history, &test, &guessed.to_vec::<u32>()?)?;
    let mut arrays = BTreeMap::new();
    for (i, (w, b)) in params.iter().enumerate() {
        arrays.insert(format!("w{i}"), w.clone());
        arrays.insert(format!("b{i}"), b.clone());
    }
    io::safetensors::save(&weights, &arrays, &BTreeMap::new())?;
    println!("Figure:  {}", figure.display());
    println!("Weights: {}", weights.display());
    if accuracy < WANTED {
        return Err(format!("expected an accuracy of {WANTED} or better").into());
    }
    Ok(())
}
