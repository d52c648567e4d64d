//! Trains a small language model on a book, from characters to definitions of its own: the job of `examples/text.py`, in Rust.
//!
//! ```sh
//! cargo run --release -p ultramarine-nn --example text
//! ```
//!
//! A transformer learns The Devil's Dictionary (see `examples/data/README.md`) for some seconds, and writes entries. Initial weights,
//! batches and draws are Python's: with `--steps N` both programs print the same losses. The weights are left in `out/`.
#![allow(clippy::print_stdout)] // It tells its results.

use flate2::read::GzDecoder;
use lexopt::{Arg, ValueExt};
use std::error::Error;
use std::f64::consts::LN_2;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;
use ultramarine::fast::{AttentionMask, scaled_dot_product_attention};
use ultramarine::random::{self, Samples};
use ultramarine::{Array, Device, Dtype, Result, concatenate, eval, index, set_default_device};
use ultramarine_nn::losses::{Reduction, cross_entropy};
use ultramarine_nn::optimizers::{AdamW, Optimizer, cosine_decay, join_schedules, linear_schedule};
use ultramarine_nn::{
    CompiledStep, Embedding, Layer, Linear, Module, RMSNorm, RoPE, gelu_approx, value_and_grad,
};

const DIMS: usize = 128;
const HEADS: usize = 4;
const LAYERS: usize = 3;
/// Characters that the model sees at a time.
const CONTEXT: usize = 64;
const BATCH: usize = 8;
/// The highest learning rate.
const RATE: f64 = 2e-3;
/// The beginning of samples: an entry begins a line.
const BEGINNINGS: [&str; 4] = ["\nLOVE, n.", "\nCOMPUTER, n.", "\nWISDOM, n.", "\n"];

// --- Text ---

/// A text in two parts, as the numbers of its characters.
struct Corpus {
    characters: Vec<char>,
    train: Vec<i32>,
    held_out: Vec<i32>,
}

impl Corpus {
    /// The book: one entry a line, of which a tenth, drawn at random, is held out.
    fn read(path: &Path) -> Result<Corpus, Box<dyn Error>> {
        let mut text = String::new();
        GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
        let entries: Vec<&str> = text.split_inclusive('\n').collect();
        let mixed = random::permutation(entries.len(), Some(&random::key(2026)?))?;
        let mixed = mixed.to_vec::<u32>()?;
        let mut corpus =
            Corpus { characters: text.chars().collect(), train: vec![], held_out: vec![] };
        corpus.characters.sort_unstable();
        corpus.characters.dedup();
        let (held_out, train) = mixed.split_at(entries.len() / 10);
        let encode =
            |part: &[u32]| part.iter().flat_map(|&i| corpus.encode(entries[i as usize])).collect();
        (corpus.train, corpus.held_out) = (encode(train), encode(held_out));
        Ok(corpus)
    }

    /// The numbers of a text's characters.
    fn encode(&self, text: &str) -> Vec<i32> {
        let number = |c| self.characters.binary_search(&c).unwrap_or_default() as i32;
        text.chars().map(number).collect()
    }

    /// The text of some numbers.
    fn decode(&self, numbers: &[i32]) -> String {
        numbers.iter().map(|&i| self.characters[i as usize]).collect()
    }

    /// Bits a character of the held-out part under two guesses: all alike, and by frequency in the other part.
    fn guesses(&self) -> (f64, f64) {
        let mut counts = vec![1.0; self.characters.len()];
        self.train.iter().for_each(|&i| counts[i as usize] += 1.0);
        let all: f64 = counts.iter().sum();
        let bits = self.held_out.iter().map(|&i| -(counts[i as usize] / all).log2());
        ((counts.len() as f64).log2(), bits.sum::<f64>() / self.held_out.len() as f64)
    }
}

// --- Model ---

/// A layer's keys and values of the characters that came last, at most `CONTEXT` of them.
#[derive(Default)]
struct Cache {
    position: usize,
    kept: Option<(Array, Array)>,
}

impl Cache {
    /// Appends keys and values, (batch, heads, positions, size), and returns those that are kept.
    fn update(&mut self, keys: Array, values: Array) -> Result<(Array, Array)> {
        self.position += keys.shape()[2];
        let (keys, values) = match self.kept.take() {
            Some((k, v)) => (concatenate(&[k, keys], 2)?, concatenate(&[v, values], 2)?),
            None => (keys, values),
        };
        let last = |x: Array| x.index(index![.., .., -(CONTEXT as i64)..]);
        let kept = (last(keys)?, last(values)?);
        self.kept = Some(kept.clone());
        Ok(kept)
    }
}

/// Causal attention; rotations of queries and keys tell it distances (rotary encoding).
#[derive(Module)]
struct Attention {
    project: Linear,
    rotate: RoPE,
    out: Linear,
}

impl Attention {
    fn new() -> Result<Attention> {
        Ok(Attention {
            project: Linear::without_bias(DIMS, 3 * DIMS)?,
            rotate: RoPE::new(DIMS / HEADS),
            out: Linear::without_bias(DIMS, DIMS)?,
        })
    }

    fn forward(&self, x: &Array, cache: Option<&mut Cache>) -> Result<Array> {
        let parts = self.project.forward(x)?.unflatten(-1, &[3 * HEADS, DIMS / HEADS])?;
        let parts = parts.swapaxes(1, 2)?.split(3, 1)?;
        let offset = Array::scalar(cache.as_ref().map_or(0, |cache| cache.position) as i32);
        let queries = self.rotate.forward_at(&parts[0], &offset)?;
        let (mut keys, mut values) =
            (self.rotate.forward_at(&parts[1], &offset)?, parts[2].clone());
        if let Some(cache) = cache {
            (keys, values) = cache.update(keys, values)?;
        }
        let mask = if x.shape()[1] > 1 { AttentionMask::Causal } else { AttentionMask::None };
        let scale = ((DIMS / HEADS) as f64).powf(-0.5);
        let y = scaled_dot_product_attention(&queries, &keys, &values, scale, mask, None, None)?;
        self.out.forward(&y.swapaxes(1, 2)?.flatten(-2, -1)?)
    }
}

/// Attention and two linear layers, each behind a norm and added to its input.
#[derive(Module)]
struct Block {
    attention_norm: RMSNorm,
    norm: RMSNorm,
    attention: Attention,
    up: Linear,
    down: Linear,
}

impl Block {
    fn new() -> Result<Block> {
        let mut block = Block {
            attention_norm: RMSNorm::new(DIMS)?,
            norm: RMSNorm::new(DIMS)?,
            attention: Attention::new()?,
            up: Linear::without_bias(DIMS, 4 * DIMS)?,
            down: Linear::without_bias(4 * DIMS, DIMS)?,
        };
        // At first each block is the identity: deep models learn faster from there.
        for weight in [&mut block.attention.out.weight, &mut block.down.weight] {
            weight.set(weight.zeros_like());
        }
        Ok(block)
    }

    fn forward(&self, x: &Array, cache: Option<&mut Cache>) -> Result<Array> {
        let x = (x + self.attention.forward(&self.attention_norm.forward(x)?, cache)?)?;
        let up = gelu_approx(&self.up.forward(&self.norm.forward(&x)?)?)?;
        &x + self.down.forward(&up)?
    }
}

/// Characters, (batch, positions), to scores of the next one, (batch, positions, characters).
#[derive(Module)]
struct Writer {
    embedding: Embedding,
    blocks: Vec<Block>,
    norm: RMSNorm,
    out: Linear,
}

impl Writer {
    fn new(characters: usize) -> Result<Writer> {
        Ok(Writer {
            embedding: Embedding::new(characters, DIMS)?,
            blocks: (0..LAYERS).map(|_| Block::new()).collect::<Result<_>>()?,
            norm: RMSNorm::new(DIMS)?,
            out: Linear::new(DIMS, characters)?,
        })
    }

    fn forward(&self, x: &Array, mut caches: Option<&mut [Cache]>) -> Result<Array> {
        let mut x = self.embedding.forward(x)?;
        for (i, block) in self.blocks.iter().enumerate() {
            x = block.forward(&x, caches.as_mut().map(|caches| &mut caches[i]))?;
        }
        self.out.forward(&self.norm.forward(&x)?)
    }

    /// Mean cross-entropy of each character after those before it, in nats; windows are (n, CONTEXT + 1).
    fn loss(&self, windows: &Array) -> Result<Array> {
        let scores = self.forward(&windows.index(index![.., ..-1])?, None)?;
        cross_entropy(&scores, &windows.index(index![.., 1..])?, Reduction::Mean)
    }

    /// Bits a character of a text that was not trained on, in windows side by side.
    fn held_out_bits(&self, text: &[i32]) -> Result<f64> {
        let starts = (0..text.len() - CONTEXT).step_by(CONTEXT);
        let windows: Vec<i32> =
            starts.clone().flat_map(|i| &text[i..=i + CONTEXT]).copied().collect();
        let windows = Array::from_slice(&windows, &[starts.len(), CONTEXT + 1])?;
        Ok(f64::from(self.loss(&windows)?.item::<f32>()?) / LN_2)
    }

    /// Continues a text until the end of a line; the numbers of all its characters.
    ///
    /// Keys and values of earlier characters are kept, so that each new one is computed alone.
    fn write(&self, beginning: Vec<i32>, length: usize, temperature: f64) -> Result<Vec<i32>> {
        let mut caches: Vec<Cache> = self.blocks.iter().map(|_| Cache::default()).collect();
        let mut x = Array::from_slice(&beginning, &[1, beginning.len()])?;
        let mut numbers = beginning;
        while numbers.len() < length {
            let scores = self.forward(&x, Some(&mut caches))?.index(index![.., -1])?;
            let next = random::categorical(&(scores / temperature)?, -1, Samples::One, None)?;
            numbers.push(next.item::<u32>()? as i32);
            if numbers.last() == Some(&0) {
                break; // The end of the line is the first of the characters.
            }
            x = next.expand_dims(1)?;
        }
        Ok(numbers)
    }
}

// --- Training ---

/// How long to train.
#[derive(Clone, Copy)]
enum Length {
    Seconds(f64),
    Steps(usize),
}

/// Trains, and returns the number of steps, and seconds.
///
/// The learning rate is a function of the share of the whole that has passed, in thousandths, so that it ends where it should on
/// any machine.
fn train(model: &mut Writer, corpus: &Corpus, length: Length) -> Result<(usize, f64)> {
    let warm_up = linear_schedule(0.0, RATE, 50);
    let schedule = join_schedules(vec![warm_up, cosine_decay(RATE, 950, RATE / 20.0)], vec![50]);
    let mut optimizer = AdamW::new(RATE).betas((0.9, 0.99)).weight_decay(0.1);
    let text = Array::from_slice(&corpus.train, &[corpus.train.len()])?;
    let last = (corpus.train.len() - CONTEXT) as i32;
    let step = CompiledStep::new();
    let (mut steps, mut passed, mut shown, mut recent) = (0, 0.0, 0, Vec::new());
    println!(
        "Before: {:.4} bits a character",
        model.held_out_bits(&corpus.held_out[..16 * CONTEXT])?
    );
    let started = Instant::now();
    while passed < 1.0 {
        let rate = schedule.at(&Array::scalar((1000.0 * passed) as f32))?;
        optimizer.set_learning_rate(rate.item::<f32>()?.into());
        let loss: Array = step.call(model, &mut optimizer, &[], |model, optimizer, _| {
            let starts = random::randint(&[BATCH, 1], 0, last, Dtype::Int32, None)?;
            let offsets = Array::arange(0.0, (CONTEXT + 1) as f64, 1.0, Dtype::Int32)?;
            let windows = text.take(&(starts + offsets)?, None)?;
            let (loss, gradients) = value_and_grad(model, |model| model.loss(&windows))?;
            optimizer.update(model, &gradients)?;
            Ok(loss)
        })?;
        eval(&[model.arrays(), optimizer.arrays(), vec![loss.clone(), random::state()?]].concat())?;
        recent.push(f64::from(loss.item::<f32>()?) / LN_2);
        steps += 1;
        passed = match length {
            Length::Seconds(seconds) => started.elapsed().as_secs_f64() / seconds,
            Length::Steps(all) => steps as f64 / all as f64,
        };
        if passed * 10.0 >= f64::from(shown + 1) {
            shown += 1;
            let bits = recent.iter().sum::<f64>() / recent.len() as f64;
            let held_out = model.held_out_bits(&corpus.held_out[..64 * CONTEXT])?;
            println!("{shown:3}0 %: {bits:.4} bits a character, held out {held_out:.4}");
            recent.clear();
        }
    }
    Ok((steps, started.elapsed().as_secs_f64()))
}

// --- Program ---

struct Options {
    length: Length,
    device: Device,
    out: PathBuf,
}

impl Options {
    fn parse(root: &Path) -> Result<Options, lexopt::Error> {
        let mut options =
            Options { length: Length::Seconds(45.0), device: Device::CPU, out: root.join("out") };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("seconds") => {
                    options.length = Length::Seconds(arguments.value()?.parse()?)
                }
                Arg::Long("steps") => options.length = Length::Steps(arguments.value()?.parse()?),
                Arg::Long("device") => options.device = arguments.value()?.parse()?,
                Arg::Long("out") => options.out = arguments.value()?.into(),
                other => return Err(other.unexpected()),
            }
        }
        let positive = match options.length {
            Length::Seconds(seconds) => seconds > 0.0,
            Length::Steps(steps) => steps > 0,
        };
        if !positive {
            return Err("--seconds or --steps is not positive. Pass more than 0.".into());
        }
        Ok(options)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let Options { length, device, out } = Options::parse(&root)?;
    set_default_device(device)?;
    random::seed(7)?;
    let corpus = Corpus::read(&root.join("examples/data/devil.txt.gz"))?;
    let mut model = Writer::new(corpus.characters.len())?;
    println!("{} characters to train on, {} held out", corpus.train.len(), corpus.held_out.len());
    println!("A transformer of {LAYERS} layers, {} parameters", model.num_parameters());

    let (steps, seconds) = train(&mut model, &corpus, length)?;
    let (uniform, unigram) = corpus.guesses();
    let bits = model.held_out_bits(&corpus.held_out)?;
    println!(
        "{steps} steps of {} characters in {seconds:.1} s, {:.1} steps a second.",
        BATCH * CONTEXT,
        steps as f64 / seconds
    );
    println!(
        "Held-out loss: {bits:.3} bits a character. Guessing by frequency takes {unigram:.3}, all characters alike {uniform:.3}."
    );

    println!("\nIt writes:");
    let (started, mut written) = (Instant::now(), 0);
    for beginning in BEGINNINGS {
        let numbers = model.write(corpus.encode(beginning), 300, 0.6)?;
        written += numbers.len() - beginning.len();
        println!("  {}", corpus.decode(&numbers).trim());
    }
    println!(
        "{written} characters, {:.0} a second.\n",
        written as f64 / started.elapsed().as_secs_f64()
    );

    fs::create_dir_all(&out)?;
    let weights = out.join("text-rust.safetensors");
    model.save_weights(&weights)?;
    println!("Weights: {}", weights.display());
    if bits >= unigram {
        return Err("That is no better than frequencies of characters.".into());
    }
    Ok(())
}
