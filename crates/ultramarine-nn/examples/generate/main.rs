//! Generates text with a language model, without Python.
//!
//! ```sh
//! cargo run --release -p ultramarine-nn --example generate -- --model DIR --prompt "What is the capital of France?"
//! ```
//!
//! `DIR` is a folder in Hugging Face's layout: Llama (SmolLM, too), Qwen2 or Qwen3, as floats or as MLX quantises them.
#![allow(clippy::print_stdout)] // The text is this program's output.

mod cache;
mod config;
mod generation;
mod model;
mod options;
mod sampling;
mod text;
mod weights;

use options::{HELP, Options, Stop};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;
use text::Text;
use ultramarine::{random, set_default_device};

/// One thread makes the nodes of a graph, and that of their stream frees them: with the system's allocator they wait for each
/// other's lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = match Options::parse() {
        Ok(options) => options,
        Err(Stop::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(Stop::Wrong(text)) => {
            eprintln!("generate: {text}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers one prompt.
fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    set_default_device(options.device)?;
    let model = weights::load(&options.model)?;
    let text = Text::read(&options.model)?;
    let prompt = text.encode(&options.prompt, options.raw, options.system.as_deref())?;
    random::seed(options.seed)?;

    let started = Instant::now();
    let tokens = generation::generate(&model, &prompt, options.max_tokens, options.sampler)?;
    let mut pieces = text.stream();
    let mut output = io::stdout().lock();
    let (mut count, mut first) = (0usize, started);
    for token in tokens {
        let token = token?;
        if count == 0 {
            first = Instant::now();
        }
        count += 1;
        if text.is_end(token) {
            break;
        }
        if let Some(piece) = pieces.step(token)? {
            output.write_all(piece.as_bytes())?;
            output.flush()?;
        }
    }
    writeln!(output)?;

    let before = (first - started).as_secs_f64();
    let after = first.elapsed().as_secs_f64();
    let rate = |tokens: usize, seconds: f64| if tokens > 0 { tokens as f64 / seconds } else { 0.0 };
    eprintln!(
        "Prompt: {} tokens, {:.1} a second. Generation: {count} tokens, {:.1} a second.",
        prompt.len(),
        rate(prompt.len(), before),
        rate(count.saturating_sub(1), after),
    );
    Ok(())
}
