//! Kernels in which the order of elements along an axis counts.

pub mod arg_reduce;
mod keys;
mod radix;
pub mod scan;
pub mod sort;

#[cfg(test)]
mod tests;
