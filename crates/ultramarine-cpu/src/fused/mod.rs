//! Runs elementwise programs and reductions over strided tensors.
//!
//! A command's tensors share an iteration space (`layout`), which is divided into tiles that stay
//! in the L1 cache. A program (`program`) runs all its steps on a tile before it continues with the
//! next. Contiguous operands are read in place; others are loaded by the kernels of `copy`. The
//! last step writes directly to the output if possible (`tile`). Single operations are programs of
//! one step, so that fused and unfused results are bitwise identical.
//!
//! * `anchored`: programs with a norm as anchor;
//! * `epilogue`: reductions at the end of a program, with the accumulators of `reduce`;
//! * `prepare`: the ops of the contract that are programs of one step or none.

mod anchored;
mod epilogue;
mod layout;
mod pairs;
mod prepare;
mod program;
mod run;
mod scratch;
mod slots;
mod source;
mod tile;

pub use anchored::prepare_anchored;
pub use prepare::{build, prepare_op, prepare_program};
pub use source::{Instruction, Source};
