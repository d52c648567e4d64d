//! Neural networks on [`ultramarine`]: modules by a derive macro, layers, losses, initialisers and optimizers.
//!
//! Names of parameters, defaults and formulas are those of the Python package `ultramarine.nn`. Each package can load
//! the weights and optimizer states that the other saves.
//!
//! ```
//! use ultramarine::{Array, Result, random};
//! use ultramarine_nn::losses::{Reduction, mse_loss};
//! use ultramarine_nn::optimizers::{Adam, Optimizer};
//! use ultramarine_nn::{Layer, Linear, Module, relu, value_and_grad};
//!
//! #[derive(Module, Clone)]
//! struct Mlp {
//!     hidden: Linear,
//!     out: Linear,
//! }
//!
//! impl Layer for Mlp {
//!     fn forward(&self, x: &Array) -> Result<Array> {
//!         self.out.forward(&relu(&self.hidden.forward(x)?)?)
//!     }
//! }
//!
//! random::seed(0)?;
//! let mut model = Mlp { hidden: Linear::new(2, 16)?, out: Linear::new(16, 1)? };
//! let mut optimizer = Adam::new(0.05);
//! let x = Array::from_slice(&[0.0f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], &[4, 2])?;
//! let y = Array::from_slice(&[0.0f32, 1.0, 1.0, 0.0], &[4, 1])?;
//! let mut losses = Vec::new();
//! for _ in 0..100 {
//!     let (loss, gradients) =
//!         value_and_grad(&mut model, |m| mse_loss(m.forward(&x), &y, Reduction::Mean))?;
//!     optimizer.step(&mut model, &gradients)?;
//!     losses.push(loss.item::<f32>()?);
//! }
//! assert!(losses[99] < losses[0] / 4.0);
//!
//! let path = std::env::temp_dir().join("ultramarine-nn-front-page.safetensors");
//! model.save_weights(&path)?;
//! let mut loaded = Mlp { hidden: Linear::new(2, 16)?, out: Linear::new(16, 1)? };
//! loaded.load_weights(&path)?;
//! assert_eq!(loaded.forward(&x)?.to_vec::<f32>()?, model.forward(&x)?.to_vec::<f32>()?);
//! # let _ = std::fs::remove_file(&path);
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # What is where
//! - [`Module`] and its derive macro: parameters by name, freezing, modes, files. [`Param`], [`State`] and [`Training`]
//!   are its leaves.
//! - [`Layer`]: a part with one input and one output; [`Sequential`] chains them. Layers with other inputs have their
//!   own method `forward`.
//! - [`value_and_grad`]: gradients with respect to a model's parameters. [`CompiledStep`] compiles a whole training
//!   step to one graph.
//! - [`losses`], [`init`], [`optimizers`] with their schedules.
//! - [`checkpoints`]: models and optimizers in files that any number of processes can write and read.
//! - [`quantize`]: quantized weights, for the layers that a model holds as [`MaybeQuantized`].
//! - The example `generate` is a language model made of this crate's layers (Llama, Qwen2, Qwen3). It reads weights in
//!   the form of Hugging Face and MLX: `cargo run --release -p ultramarine-nn --example generate -- --help`.
//!
//! # Names
//! A field's name is part of its parameter's name: `hidden.weight`, `layers.0.bias`. Maps of parameters and gradients
//! are ordered by name. Files keep Python's names where Rust does not allow them: `wxh` of [`RNN`] is `Wxh` in files.
//!
//! # Randomness
//! Layers draw initial values in the same way as Python's: after `ultramarine::random::seed`, both have the same
//! values.

// The derive macro refers to this crate by name.
extern crate self as ultramarine_nn;

pub mod checkpoints;
mod compiled;
pub mod init;
pub mod layers;
pub mod losses;
pub mod optimizers;
pub mod utils;

pub use compiled::CompiledStep;
pub use layers::*;
pub use utils::value_and_grad;

/// Tests the page's examples.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
pub struct RustPage;

/// Tests the examples of the quick start.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/quick-start.md")]
pub struct QuickStart;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// Tests the examples of the README of the crate `ultramarine`.
#[cfg(doctest)]
#[doc = include_str!("../../ultramarine/README.md")]
pub struct CoreReadme;

/// Parameters by name, in the order of the names: what [`Module::parameters`] returns and files
/// hold.
pub type Parameters = ultramarine::io::Arrays;
/// Gradients by the names of their parameters, as [`value_and_grad`] returns them.
pub type Gradients = Parameters;
