//! Runs elementwise programs and reductions over strided tensors.
//!
//! A command's tensors share an iteration space (`layout`), which is cut into
//! tiles that stay in the L1 cache. A program (`program`) runs all its steps on a
//! tile before it goes on: operands are read in place where they are contiguous,
//! else loaded by `strided` and `transpose`; the last step writes straight into
//! the output where it can (`tile`). Single ops are programs of one step, so that
//! fused and unfused evaluation give the same bits.
//!
//! `closing` and `reduce`: reductions; `prepare`: the ops of the contract that end here.

mod arange;
mod closing;
mod layout;
mod prepare;
mod program;
mod reduce;
mod run;
mod scratch;
mod strided;
#[cfg(test)]
mod tests;
mod tile;
mod transpose;

pub use prepare::{prepare_op, prepare_program};
