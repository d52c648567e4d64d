//! CPU kernels of Ultramarine, behind the backend contract.
//!
//! The crate knows no graphs and no arrays: it is reached through the function
//! table that [`backend_init`] fills. Memory, streams and threads are the host's.
//!
//! * [`level`]: instruction sets, chosen at run time; [`par`]: the host's pool;
//! * [`kernel`]: the traits that families implement; `table`: the contract's side;
//! * `tile`: elementwise functions over contiguous tiles that fit the L1 cache;
//! * `fused`: runs programs of tile functions over strided tensors, and
//!   reductions, copies and fills, which are programs too;
//! * `gemm`: matrix products; `conv`: convolutions; `index`: gather and scatter; `order`: sort, scans
//!   and arg-reductions; `fft`: Fourier transforms; `random`: Threefry bits.

#[macro_use]
pub mod dtype;

mod arith;
mod conv;
mod fft;
mod fused;
pub mod gemm;
mod index;
pub mod kernel;
pub mod level;
mod linalg;
mod order;
pub mod par;
mod random;
mod strided;
mod table;
#[cfg(test)]
mod testing;
pub mod tile;

pub use table::{backend_init, backend_init_at};
