//! Function transforms: they run a function on traced arguments, walk the graph
//! that it built, and build another one with the rules that stand with each op.
//!
//! Since the rules build ordinary lazy arrays, transforms nest in any order.

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
