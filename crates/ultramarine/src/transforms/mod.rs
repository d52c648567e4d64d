//! Function transforms. A transform runs a function on traced arguments, walks the resulting graph,
//! and builds a new graph with the rules of the operations.
//!
//! The rules build ordinary lazy arrays, so transforms can be nested in any order.

mod checkpoint;
pub mod compile;
mod custom;
mod enclosed;
mod grad;
mod jvp;
#[cfg(test)]
mod multi_output_tests;
mod slices;
mod trace;
mod tree;
mod vjp;
mod vmap;

pub use checkpoint::{checkpoint, checkpointed};
pub use compile::{Compiled, compile, compile_enabled, compiles_here, set_compile};
pub use custom::CustomFunction;
pub(crate) use enclosed::Function;
pub use grad::{grad, value_and_grad};
pub use jvp::{jvp, jvp_with};
pub use tree::Tree;
pub use vjp::{vjp, vjp_with};
pub use vmap::{MappedAxes, vmap, vmap_with};
pub(crate) use vmap::{batch, stand_in};
