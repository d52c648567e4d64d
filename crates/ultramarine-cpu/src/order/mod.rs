//! Kernels in which the order of elements along an axis counts.

pub mod arg_reduce;
mod keys;
mod lane;
mod radix;
pub mod scan;
pub mod sort;
#[cfg(target_arch = "x86_64")]
mod vector;

#[cfg(test)]
mod tests;
