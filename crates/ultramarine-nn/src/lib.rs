//! Neural networks on [`ultramarine`].

// The derive macro names this crate.
extern crate self as ultramarine_nn;

pub mod init;
pub mod layers;
pub mod losses;
pub mod optimizers;
pub mod utils;

pub use layers::*;
pub use utils::value_and_grad;

/// Parameters by their names, in the names' order.
pub type Parameters = ultramarine::io::Arrays;
/// Gradients by the names of their parameters.
pub type Gradients = Parameters;
