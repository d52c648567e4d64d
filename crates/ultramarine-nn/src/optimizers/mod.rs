//! Optimizers, and schedules of their learning rates.
//!
//! ```
//! use ultramarine::{Array, Dtype, eval};
//! use ultramarine_nn::optimizers::{AdamW, Optimizer, cosine_decay};
//! use ultramarine_nn::{Layer, Linear, Module, value_and_grad};
//! let mut model = Linear::new(3, 1)?;
//! let mut optimizer = AdamW::new(cosine_decay(0.1, 100, 0.0)).weight_decay(0.1);
//! let x = Array::ones(&[4, 3], Dtype::Float32)?;
//! for _ in 0..3 {
//!     let (_, gradients) = value_and_grad(&mut model, |m| m.forward(&x)?.square()?.mean(None))?;
//!     optimizer.update(&mut model, &gradients)?;
//!     eval(&[model.arrays(), optimizer.arrays()].concat())?;
//! }
//! assert_eq!(optimizer.state()["step"].item::<u64>()?, 3);
//! assert!(optimizer.state().contains_key("weight.m"));
//! # Ok::<(), ultramarine::Error>(())
//! ```

mod adafactor;
mod adagrad;
mod adam;
mod base;
mod clipping;
mod lion;
mod multi;
mod muon;
mod schedulers;
mod sgd;

pub use adafactor::Adafactor;
pub use adagrad::{AdaDelta, Adagrad, RMSprop};
pub use adam::{Adam, AdamW, Adamax};
pub use base::{Common, Optimizer, Slots, Step, UpdateRule};
pub use clipping::clip_grad_norm;
pub use lion::Lion;
pub use multi::MultiOptimizer;
pub use muon::Muon;
pub use schedulers::{
    Schedule, cosine_decay, exponential_decay, join_schedules, linear_schedule, step_decay,
};
pub use sgd::SGD;
