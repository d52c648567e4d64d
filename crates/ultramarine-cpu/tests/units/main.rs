//! The kernels of each family, by way of `ultramarine_cpu::tested`.

#[macro_use(for_dtype)]
extern crate ultramarine_cpu;

mod arg_reduce;
mod conv;
mod create;
mod elementwise;
#[cfg(feature = "fft")]
mod fft;
mod fused;
mod index;
#[cfg(feature = "linalg")]
mod linalg;
mod matmul;
mod random;
mod scan;
mod sort;
mod testing;
#[cfg(all(target_arch = "x86_64", debug_assertions))]
mod tiles;
